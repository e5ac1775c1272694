"""TransPL: pseudo-labels from code transition matrices (Kim and Lee, ICML 2025)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as serialize

from transpl import markov
from transpl._utils.clock import work_seconds
from transpl._utils.errors import InputError, check_choice, invalid
from transpl._utils.hashing import hash_bytes
from transpl.markov import (
    CodebookUsage,
    Explanation,
    SourceCodes,
    TransitionCounts,
    check_prior,
    class_log_probabilities,
    few_label_counts,
    voting_weights,
)
from transpl.methods.contract import Floats, History
from transpl.methods.explainable import MODES, ExplainableMethod, TargetStream
from transpl.methods.network_method import NetworkMethod
from transpl.methods.pseudo_labelling import as_tensors
from transpl.methods.registry import register
from transpl.methods.source_model import SourceModel
from transpl.methods.transpl.paper_explanations import explain
from transpl.methods.transpl.paper_settings import TransPLSettings
from transpl.methods.transpl.transpl_state import Chunks, Codes, TransPLState, Vote
from transpl.nn import (
    CERTAIN,
    Execution,
    Network,
    adapt_network,
    class_probabilities,
    coarse_codes,
    code_type,
    codes_by_book,
    decoded_codes,
    in_batches,
    labelled_rows,
    reconstruction_error,
    resolve_device,
    window_rows,
)
from transpl.windows import CHUNK, UNKNOWN, Labelled, PseudoLabels, TargetInfo, Windows, override_labels


@register(
    "transpl",
    family="pseudo-labels",
    needs="source, target",
    reference="Kim and Lee 2025, TransPL: VQ-code transition matrices for pseudo-labeling of time series",
)
class TransPLMethod(NetworkMethod, ExplainableMethod):
    """Labels by the transitions of codes, with channels weighted by how little they moved.

    The source network encodes windows as codes, and the transitions from code to code are counted: per class on the
    source, without classes on the target. `adapt` labels the target by Bayes' rule on these counts and, in mode
    "finetune", trains a copy of the network on the labels.
    """

    Settings = TransPLSettings
    settings: TransPLSettings
    uses = frozenset({"prior", "few_labels"})
    variant: ClassVar[str] = "paper"
    needs_validation: ClassVar[bool] = True
    only_patches: ClassVar[bool] = True
    adapt_mode = "finetune"

    def __init__(self, settings: TransPLSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, execution)
        self._state: TransPLState | None = None
        self._rows: tuple[Labelled, Labelled] | None = None

    # made of parameters

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        return cls(_settings(params), _execution(params))

    def with_params(self, params: Mapping[str, Any]) -> Self:
        settings = _settings(params)
        if settings.network(self.n_classes) != self.state.source_network.settings:
            expected, advice = "the network's parameters as in fit", "Call fit again, or set them back."
            raise invalid("set_params", expected=expected, got="others", advice=advice)
        other = copy.copy(self)
        other.settings, other.execution = settings, _execution(params)
        return other

    def set_execution(self, params: Mapping[str, Any]) -> None:
        self.execution = _execution(params)

    def check_machine(self) -> None:
        resolve_device(self.execution.device)

    def source_settings(self) -> dict[str, Any]:
        return {**asdict(self.settings.source()), "devices": self.execution.devices}

    # the source

    def start_from(self, model: SourceModel) -> None:
        """Take a trained source network, count the transitions of the source's codes, and keep the source rows."""
        super().start_from(model)
        network, source = model.network, model.source
        assert isinstance(network, Network), "TransPL's settings name no other backbone"
        start = work_seconds()
        with self.on_device(network):
            codes = codes_by_book(network, source.windows)
        usage = {book: markov.codebook_usage(codes[book], n) for book, n in network.settings.book_sizes.items()}
        coarse = codes["coarse"]
        counts = TransitionCounts.from_codes(coarse, self.settings.n_coarse, source.y, source.n_classes)
        source_codes = SourceCodes.numbered(coarse, source.y, source.n_classes)
        self.state = TransPLState(network, counts, usage, source_codes, history={"source": model.history})
        self.state.seconds = {"source": model.seconds, "count_source": work_seconds() - start}
        self.remember_source(model.source, model.validation)

    @property
    def state(self) -> TransPLState:
        """Networks and counts."""
        if self._state is None:
            raise self._not_fitted()
        return self._state

    @state.setter
    def state(self, state: TransPLState) -> None:
        self._state = state

    def number_source_rows(self, rows: NDArray[np.integer]) -> None:
        if self.state.source_codes is not None:
            self.state = replace(self.state, source_codes=self.state.source_codes.of_rows(rows))

    def remember_source(self, source: Labelled, validation: Labelled | None) -> None:
        assert validation is not None
        self._rows = source, validation

    def adapts_with_source(self, mode: str) -> bool:
        return mode == "finetune"

    @property
    def holds_source_rows(self) -> bool:
        return self._rows is not None

    def source_rows(self) -> tuple[Labelled, Labelled]:
        if self._rows is None:
            raise InputError(
                "adapt: mode='finetune' also trains on source rows, and a loaded model does not hold them. "
                "Pass X_source and y_source, or use mode='markov'."
            )
        return self._rows

    @property
    def n_classes(self) -> int:
        return int(self.state.class_counts.counts.shape[0])

    @property
    def n_channels(self) -> int:
        return self.state.class_counts.n_channels

    # codes and counts

    def codes(self, windows: Windows) -> Codes:
        """Coarse codes (n, D, N) by the source network."""
        network = self.state.source_network
        with self.on_device(network):
            return coarse_codes(network, windows)

    def count(self, windows: Windows) -> TransitionCounts:
        """Transition counts (D, n_c, n_c) of windows, with the codes of one chunk in memory."""
        first, *others = (self.count_codes(codes) for _, codes in self._encoded(windows))
        return sum(others, start=first)

    def count_codes(self, codes: Codes) -> TransitionCounts:
        """Transition counts (D, n_c, n_c) of codes."""
        return TransitionCounts.from_codes(codes, self.settings.n_coarse)

    def _encoded(self, windows: Windows) -> Chunks:
        return ((rows, self.codes(part)) for rows, part in windows.chunks(CHUNK))

    @property
    def codebook(self) -> Floats:
        """Coarse code vectors (n_c, d)."""
        return self.state.source_network.quantizer.coarse.vectors.detach().cpu().double().numpy()

    @property
    def codebook_usage(self) -> dict[str, CodebookUsage]:
        return self.state.codebook_usage

    @property
    def decoded_codes(self) -> dict[str, Floats]:
        """What the decoder makes of each code alone: "coarse" (n_c, m) and, with two books, "fine" (n_f, m)."""
        network = self.state.source_network
        with self.on_device(network):
            return decoded_codes(network)

    def reconstruction_error(self, windows: Windows) -> float:
        """Mean of (X - D(q))^2 by the source network."""
        network = self.state.source_network
        with self.on_device(network):
            return reconstruction_error(network, windows)

    @property
    def shift_settings(self) -> TransPLSettings:
        return self.settings

    @property
    def source_codes(self) -> Codes:
        if self.state.source_codes is None:
            raise InputError(
                "drift: this model was saved without the codes of its source. Fit and save it again, or pass a "
                "reference."
            )
        return self.state.source_codes.codes

    @property
    def source_shares(self) -> Floats:
        """Class shares of the source's windows; an old model without source codes takes those of its transitions."""
        state = self.state
        if state.source_codes is None:
            counted = state.class_counts.counts.sum(axis=(1, 2, 3))
        else:
            counted = np.bincount(state.source_codes.labels, minlength=self.n_classes)
        return counted / counted.sum()

    @property
    def target_shares(self) -> Floats | None:
        return self.state.target_shares

    @property
    def code_distances(self) -> Floats:
        return markov.transport_cost(self.codebook)

    @property
    def class_counts(self) -> TransitionCounts:
        return self.state.voting_counts

    @property
    def source_counts(self) -> TransitionCounts:
        return self.state.class_counts.pooled()

    @property
    def target_counts(self) -> TransitionCounts | None:
        return self.state.target_counts

    def channel_weights(self, target_counts: TransitionCounts) -> Floats:
        """The weight of each channel, (D,); all ones without channel alignment."""
        if not self.settings.channel_alignment:
            return np.ones(target_counts.n_channels)
        return self.weights_from(self.channel_distances(target_counts), target_counts)

    # adapting and answering

    def check_info(self, info: TargetInfo, n: int, *, complete: bool = True) -> TargetInfo:
        check_choice("mode", self.adapt_mode, MODES)
        return super().check_info(info, n, complete=complete)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        start, finetune = work_seconds(), self.adapt_mode == "finetune"
        if finetune:
            self.source_rows()  # raises before anything is computed
        codes = self.codes(target) if finetune else None
        state = replace(
            self.state.unadapted(),
            target_counts=self.count(target) if codes is None else self.count_codes(codes),
            labelled_counts=self._labelled_counts(target, codes, info.few_labels),
            prior=info.prior,
            mode="markov",
        )
        record = {}
        if codes is not None:
            labels = override_labels(self._label(_in_chunks(codes), len(codes), state), info.few_labels)
            state.target_shares, record = labels.probabilities.mean(axis=0), {"initial": labels}
        state.seconds["label"] = work_seconds() - start
        if codes is not None:
            self._finetune(target, labels, state, info.few_labels)
        # Only a finished adaptation replaces the last one.
        self.state, self.label_record = state, record

    def _labelled_counts(
        self, target: Windows, codes: Codes | None, few_labels: NDArray[np.int64] | None
    ) -> TransitionCounts | None:
        if few_labels is None:
            return None
        rows = np.flatnonzero(few_labels != UNKNOWN)
        of_rows = self.codes(target[rows]) if codes is None else codes[rows]
        return few_label_counts(of_rows, few_labels[rows], self.state.class_counts)

    def _finetune(
        self, target: Windows, labels: PseudoLabels, state: TransPLState, few_labels: NDArray[np.int64] | None
    ) -> None:
        """Train a copy of the source network on source rows and pseudo-labels; the result goes into `state`."""
        start = work_seconds()
        y, confidence = as_tensors(labels)
        if few_labels is not None:
            confidence[few_labels != UNKNOWN] = CERTAIN
        source, validation = self.source_rows()
        state.adapted_network, state.history["adapt"] = adapt_network(
            state.source_network,
            labelled_rows(source),
            {**window_rows(target.in_memory()), "y": y, "confidence": confidence},
            labelled_rows(validation),
            self.settings.adaptation(),
            self.settings.adapt_loop(),
            self.execution,
            seed=self.seed,
        )
        state.mode = "finetune"
        state.seconds["adapt"] = work_seconds() - start

    def add_target(self, target: Windows) -> None:
        state, more = self.state, self.count(target)
        self.state = replace(
            state,
            target_counts=more if state.target_counts is None else state.target_counts + more,
            target_shares=None,  # they were of fewer windows
            mode="markov" if state.mode == "source" else state.mode,
        )

    def new_target(self) -> TargetStream:
        return _CodeStream(self)

    def unadapted(self) -> Self:
        alone = copy.copy(self)
        alone.state = self.state.unadapted()
        return alone

    def pseudo_label(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        state = self.state_for(prior)
        if state.target_counts is not None:
            return self._label(self._encoded(target), len(target), state)
        return self._label_as_target(target, state)

    def predict_proba(self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False) -> Floats:
        self.check_info(TargetInfo(groups=groups, smooth=smooth), len(windows), complete=False)
        if self.mode == "markov":
            return self.pseudo_label(windows).probabilities
        network = self.state.answering_network
        with self.on_device(network):
            return class_probabilities(network, windows)

    def one_shot_labels(self, target: Windows, prior: Floats | None = None) -> PseudoLabels:
        self.check_target(target)
        info = self.check_info(TargetInfo(prior=prior), len(target))
        return self._label_as_target(target, replace(self.state.unadapted(), prior=info.prior))

    def features(self, windows: Windows) -> Floats:
        """z (n, d) of the network that answers; of the source's in mode "markov"."""
        network = self.state.answering_network
        with self.on_device(network):
            return in_batches(network, windows, network.features)

    def state_for(self, prior: Floats | None) -> TransPLState:
        """The state that labels windows, with another prior if one is given."""
        return self.state if prior is None else replace(self.state, prior=check_prior(prior, self.n_classes))

    def vote(self, state: TransPLState, channel_weights: Floats | None = None) -> Vote:
        """The vote of a state with target counts.

        channel_weights : (D,), those of the state's target counts if they are known already
        """
        assert state.target_counts is not None
        settings = self.settings
        weights = self.channel_weights(state.target_counts) if channel_weights is None else channel_weights
        weights = voting_weights(weights, state.target_counts.n_channels)
        log_p = class_log_probabilities(state.voting_counts, settings.smoothing, settings.epsilon)
        return Vote(settings, log_p, weights / weights.sum(), state.prior)

    def _label_as_target(self, windows: Windows, state: TransPLState) -> PseudoLabels:
        """Label windows that are themselves the target sample."""
        codes = self.codes(windows)
        return self._label(_in_chunks(codes), len(codes), replace(state, target_counts=self.count_codes(codes)))

    def _label(self, chunks: Chunks, n: int, state: TransPLState) -> PseudoLabels:
        """Labels of n windows, with one chunk in memory besides the result."""
        vote = self.vote(state)
        labels = PseudoLabels(np.empty(n, np.int64), np.empty(n), np.empty((n, self.n_classes)))
        for rows, codes in chunks:
            for values, found in zip(labels, vote(codes), strict=True):
                values[rows] = found
        return labels

    # explaining and storing

    def explain(
        self,
        windows: Windows,
        classes: NDArray,
        channel_names: Sequence[str],
        prior: Floats | None = None,
        nearest: int = 3,
    ) -> Explanation:
        return explain(self, windows, classes, channel_names, prior, nearest)

    def facts(self) -> dict[str, Any]:
        return self.state.facts()

    def arrays(self) -> dict[str, NDArray]:
        return self.state.deciding_arrays() | self.state.explaining_arrays()

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        state = TransPLState.restored(facts, arrays)
        if state.source_network.settings != self.settings.network(len(state.class_counts.counts)):
            raise invalid("network", expected="that of the parameters", got="another", advice="Save the model again.")
        self.state = state

    def fingerprint(self) -> str:
        arrays = {name: np.ascontiguousarray(array) for name, array in self.state.deciding_arrays().items()}
        prior = None if self.state.prior is None else self.state.prior.tolist()
        about = [self.state.mode, prior, asdict(self.state.source_network.settings), asdict(self.settings)]
        return hash_bytes([serialize(arrays), json.dumps(about)])

    @property
    def expected_shares(self) -> Floats:
        return self.source_shares if self.state.prior is None else self.state.prior

    @property
    def mode(self) -> str:
        return self.state.mode

    @property
    def history(self) -> dict[str, History]:
        return self.state.history

    @property
    def seconds(self) -> dict[str, float]:
        return self.state.seconds


@register(
    "transpl-ws",
    family="pseudo-labels",
    needs="source, target, class proportions of the target",
    reference="Kim and Lee 2025, with weak supervision",
)
class TransPLWS(TransPLMethod):
    """TransPL with the target's class proportions as Bayes' prior."""

    requires = frozenset({"prior"})


@register("transpl-markov", family="own", needs="source, target", reference="our own, after Kim and Lee 2025")
class TransPLMarkov(TransPLMethod):
    """TransPL's labels as the classifier: no gradient step, seconds for a new target."""

    adapt_mode = "markov"


class _CodeStream:
    """A new target as its codes; see `TargetStream`."""

    def __init__(self, method: TransPLMethod) -> None:
        self._method = method
        self._vote: Vote | None = None

    def row(self, n_channels: int, n_steps: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        settings = self._method.settings
        return (n_channels, n_steps // settings.patch_length), code_type(settings.n_coarse)

    def encode(self, windows: Windows) -> Codes:
        return self._method.codes(windows)

    def adapt(self, parts: Iterable[Codes], n: int) -> TransitionCounts:
        method = self._method
        first, *others = (method.count_codes(codes) for codes in parts)
        counts = sum(others, start=first)
        self._vote = method.vote(replace(method.state.unadapted(), target_counts=counts))
        return counts

    def probabilities(self, part: Codes) -> Floats:
        assert self._vote is not None, "adapt comes first"
        return self._vote.probabilities(part)


def _in_chunks(codes: Codes) -> Chunks:
    """Codes one chunk after the other, each with its rows."""
    parts = (slice(first, first + CHUNK) for first in range(0, len(codes), CHUNK))
    return ((rows, codes[rows]) for rows in parts)


def _settings(params: Mapping[str, Any]) -> TransPLSettings:
    values = {each.name: params[each.name] for each in fields(TransPLSettings)}
    if values["smoothing"] is None:
        values["smoothing"] = TransPLSettings.smoothing
    return TransPLSettings(**values)


def _execution(params: Mapping[str, Any]) -> Execution:
    folder = params["checkpoint_dir"]
    return Execution(
        params["device"],
        params["devices"],
        params["n_threads"],
        None if folder is None else Path(folder),
        params["verbose"],
    )
