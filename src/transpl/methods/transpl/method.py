"""TransPL: pseudo-labels from code transition matrices (Kim and Lee, ICML 2025), on arrays."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl._utils.errors import InputError, check_choice
from transpl.markov import check_prior, class_log_probabilities, few_label_counts, voting_weights
from transpl.methods.adapter import MODES
from transpl.methods.registry import register
from transpl.methods.source_model import SourceModel
from transpl.methods.transpl.codes import CodingMethod, in_chunks
from transpl.methods.transpl.learning import label_rows, learn_labels
from transpl.methods.transpl.settings import TransPLSettings
from transpl.methods.transpl.state import TransPLState
from transpl.methods.transpl.vote import Chunks, Codes, Vote
from transpl.nn import Execution, History, Network, class_probabilities, in_batches, with_gradients
from transpl.windows import UNKNOWN, Labelled, PseudoLabels, Windows, override_labels


@register(
    "transpl",
    family="pseudo-labels",
    needs="source, target",
    reference="Kim and Lee 2025, TransPL: VQ-code transition matrices for pseudo-labeling of time series",
)
class TransPLMethod(CodingMethod):
    """Labels by the transitions of codes, channels weighed by how little they moved."""

    prior = "optional"
    default_mode: ClassVar[str] = "finetune"

    def __init__(self, settings: TransPLSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, execution)
        self._rows: tuple[Labelled, Labelled] | None = None

    def start_from(self, model: SourceModel) -> None:
        """Take a trained source network, count its codes, and keep the source rows for fine-tuning."""
        super().start_from(model)
        self.remember_source(model.source, model.validation)

    def remember_source(self, source: Labelled, validation: Labelled) -> None:
        """Keep the source rows that fine-tuning goes on training with."""
        self._rows = source, validation

    @property
    def holds_source_rows(self) -> bool:
        return self._rows is not None

    def source_rows(self) -> tuple[Labelled, Labelled]:
        """The source rows that fine-tuning trains with and is validated on."""
        if self._rows is None:
            raise InputError(
                "adapt: mode='finetune' also trains on source rows, and a loaded model does not hold them. "
                "Pass X_source and y_source, or use mode='markov'."
            )
        return self._rows

    @with_gradients()
    def adapt(
        self,
        target: Windows,
        prior: NDArray[np.float64] | None = None,
        mode: str | None = None,
        few_labels: NDArray[np.int64] | None = None,
    ) -> None:
        """Count the target's transitions and, in mode "finetune", label it and train on the labels.

        mode : "finetune" or "markov"; None is the method's own
        few_labels : (n,) class indices of the target windows that a person labelled, -1 for the others
        """
        mode = self.default_mode if mode is None else mode
        check_choice("mode", mode, MODES)
        if self._source is not None or self._state is None:  # a loaded model has a state without a source
            self.check_target(target)
        if mode == "finetune":
            self.source_rows()
        self._adapt(target, self.checked_prior(prior), mode, few_labels)

    def _adapt(
        self,
        target: Windows,
        prior: NDArray[np.float64] | None,
        mode: str = "markov",
        few_labels: NDArray[np.int64] | None = None,
    ) -> None:
        start = time.perf_counter()
        codes = self.codes(target) if mode == "finetune" else None
        next_state = replace(
            self.state.unadapted(),
            target_counts=self.count(target) if codes is None else self.count_codes(codes),
            labelled_counts=self._labelled_counts(target, codes, few_labels),
            prior=prior,
            mode="markov",
        )
        labels = (
            None
            if codes is None
            else override_labels(self._label(in_chunks(codes), len(codes), next_state), few_labels)
        )
        next_state.seconds["label"] = time.perf_counter() - start
        if labels is not None:
            next_state.target_shares = labels.probabilities.mean(axis=0)
            self._finetune(target, labels, next_state, few_labels)
        # Only a finished adaptation takes the place of the last one.
        self.state, self.label_record = next_state, {} if labels is None else {"initial": labels}

    def add_target(self, target: Windows) -> None:
        """Add the target's transitions to the counts; no gradient step."""
        state, more = self.state, self.count(target)
        state.target_counts = more if state.target_counts is None else state.target_counts + more
        state.target_shares = None  # they were of fewer windows
        if state.mode == "source":
            state.mode = "markov"

    def pseudo_label(self, target: Windows, prior: NDArray[np.float64] | None = None) -> PseudoLabels:
        """Label windows by their transitions; before any adaptation they are themselves the target sample."""
        state = self.state if prior is None else replace(self.state, prior=check_prior(prior, self.n_classes))
        if state.target_counts is not None:
            return self._label(self.encoded(target), len(target), state)
        state, codes = self.at_home(target, state)
        return self._label(in_chunks(codes), len(codes), state)

    def predict_proba(self, windows: Windows) -> NDArray[np.float64]:
        """Class probabilities (n, K) of the classifier that the last step left."""
        if self.state.mode == "markov":
            return self.pseudo_label(windows).probabilities
        network = self._answering_network
        with self.on_device(network):
            return class_probabilities(network, windows)

    def one_shot_labels(self, target: Windows, prior: NDArray[np.float64] | None = None) -> PseudoLabels:
        """Label windows with the source model alone; they are themselves the target sample."""
        self.check_target(target)
        fresh, codes = self.at_home(target, replace(self.state.unadapted(), prior=self.checked_prior(prior)))
        return self._label(in_chunks(codes), len(codes), fresh)

    def features(self, windows: Windows) -> NDArray[np.float64]:
        """z of the network that answers (n, d); of the source's in mode "markov"."""
        network = self._answering_network
        with self.on_device(network):
            return in_batches(network, windows, network.features)

    @property
    def _answering_network(self) -> Network:
        adapted = self.state.adapted_network
        return self.state.source_network if adapted is None else adapted

    @property
    def history(self) -> dict[str, History]:
        return self.state.history

    def at_home(self, target: Windows, state: TransPLState) -> tuple[TransPLState, Codes]:
        """The state in which these windows are themselves the target sample, and their codes."""
        codes = self.codes(target)
        return replace(state, target_counts=self.count_codes(codes)), codes

    def vote(self, state: TransPLState, channel_weights: NDArray[np.float64] | None = None) -> Vote:
        """The labeller that a state with target counts makes; channels are weighed only once.

        channel_weights : (D,), those of the state's target counts if they are known already
        """
        assert state.target_counts is not None
        settings = self.settings
        known = self.channel_weights(state.target_counts) if channel_weights is None else channel_weights
        weights = voting_weights(known, state.target_counts.n_channels)
        log_p = class_log_probabilities(state.voting_counts, settings.smoothing, settings.epsilon)
        return Vote(settings, log_p, weights / weights.sum(), state.prior)

    def _label(self, chunks: Chunks, n: int, state: TransPLState) -> PseudoLabels:
        """Labels of n windows; beside the result one chunk is in memory."""
        vote = self.vote(state)
        whole = PseudoLabels(np.empty(n, np.int64), np.empty(n), np.empty((n, self.n_classes)))
        for rows, codes in chunks:
            for values, found in zip(whole, vote(codes), strict=True):
                values[rows] = found
        return whole

    def _labelled_counts(
        self, target: Windows, codes: Codes | None, few_labels: NDArray[np.int64] | None
    ) -> markov.TransitionCounts | None:
        if few_labels is None:
            return None
        rows = np.flatnonzero(few_labels != UNKNOWN)
        of_rows = self.codes(target[rows]) if codes is None else codes[rows]
        return few_label_counts(of_rows, few_labels[rows], self.state.class_counts)

    def _finetune(
        self, target: Windows, labels: PseudoLabels, state: TransPLState, few_labels: NDArray[np.int64] | None
    ) -> None:
        """Train a copy of the source network on the labels; the result goes into `state`."""
        start = time.perf_counter()
        rows = label_rows(target, labels, few_labels)
        state.adapted_network, state.history["adapt"] = learn_labels(
            state.source_network, *self.source_rows(), rows, self.settings, self.execution
        )
        state.mode = "finetune"
        state.seconds["adapt"] = time.perf_counter() - start
