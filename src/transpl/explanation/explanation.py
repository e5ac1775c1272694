"""Why windows got their labels: every number that the vote is made of, and what follows from them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl.errors import one_of, positive, whole_number, wrong
from transpl.explanation.contributions import Contributions, contributions_of
from transpl.explanation.evidence import Evidence, evidence_of
from transpl.explanation.files import read_explanation, write_explanation
from transpl.explanation.nearest import NearestWindows
from transpl.explanation.sentence import sentence_of
from transpl.markov.counts import check_codes
from transpl.markov.evidence import divisors, each_transition, mean_over_transitions
from transpl.markov.posterior import CONFIDENCE, LENGTHS, weighted_vote

ANSWERING = ("source", "markov", "finetune")


@dataclass(frozen=True, eq=False)
class Explanation:
    r"""The vote over n windows, taken apart. Whatever is not stored is computed from what is, to the last bit.

    y_k = \sum_d share_d softmax_k [ l_{d,k} + log p(k) / \tau ],
    l_{d,k} = (1 / L) \sum_t log p(s_{t+1} | s_t, k, d)

    classes : (K,) labels
    channel_names : D names
    codes : (n, D, N) coarse codes s; -1 behind the end of a shorter window
    log_probabilities : (K, D, n_c, n_c) log p(j | i, k, d) of the classes; -inf for a class without any row
    distances, weights : (D,) how far each channel moved, how far it is trusted
    shares : (D,) each channel's share of the vote; the weights divided by their sum, or alike if all shifted away
    answers : (n, K) what `predict_proba` says; after fine-tuning it can differ from the vote
    mode : which classifier gave these answers: "source", "markov" (the vote itself) or "finetune"
    patch_length : time steps per code
    windows : (n,) row numbers of the windows in the data they were chosen from
    prior, prior_temperature : (K,) p(k) and \tau; None is uniform
    length : L is the number of "transitions" or of "codes"
    confidence_rule : "max" probability, or "kl" from uniform
    signals : (n, D, T) float32, NaN behind the end of a shorter window; None if they were not kept
    nearest : the source windows that are most alike; None if the model does not know its source's codes
    """

    classes: NDArray
    channel_names: tuple[str, ...]
    codes: NDArray[np.integer]
    log_probabilities: NDArray[np.float64]
    distances: NDArray[np.float64]
    weights: NDArray[np.float64]
    shares: NDArray[np.float64]
    answers: NDArray[np.float64]
    mode: str
    patch_length: int
    windows: NDArray[np.int64]
    prior: NDArray[np.float64] | None = None
    prior_temperature: float = 1.0
    length: str = "transitions"
    confidence_rule: str = "max"
    signals: NDArray[np.float32] | None = None
    nearest: NearestWindows | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "channel_names", tuple(self.channel_names))
        one_of("mode", self.mode, ANSWERING)
        one_of("length", self.length, LENGTHS)
        one_of("confidence_rule", self.confidence_rule, CONFIDENCE)
        positive("prior_temperature", self.prior_temperature)
        whole_number("patch_length", self.patch_length, least=1)
        self._check_shapes()

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Self:
        """Choose windows: a position, a slice, positions or a mask. `windows` goes on telling which rows they were."""
        kept = np.atleast_1d(np.arange(len(self))[rows])
        return replace(
            self,
            codes=self.codes[kept],
            answers=self.answers[kept],
            windows=self.windows[kept],
            signals=None if self.signals is None else self.signals[kept],
            nearest=None if self.nearest is None else self.nearest[kept],
        )

    @property
    def transition_log_probabilities(self) -> NDArray[np.float64]:
        r"""log p(s_{t+1} | s_t, k, d), (n, D, N-1, K); 0 behind the end of a shorter window."""
        return each_transition(self.codes, self.log_probabilities)

    @property
    def divisors(self) -> NDArray[np.int64]:
        """L, (n, D): what the sum over transitions is divided by."""
        return divisors(self.codes, self.length)

    @cached_property
    def log_likelihoods(self) -> NDArray[np.float64]:
        r"""log p(X^d | k) = (1 / L) \sum_t log p(s_{t+1} | s_t, k, d), (n, D, K)."""
        return mean_over_transitions(self.codes, self.log_probabilities, self.length)

    @cached_property
    def posteriors(self) -> NDArray[np.float64]:
        r"""p(k | X^d) = softmax_k [ log p(X^d | k) + log p(k) / \tau ], (n, D, K): what each channel says alone."""
        return markov.channel_posteriors(self.log_likelihoods, self.prior, self.prior_temperature)

    @property
    def votes(self) -> NDArray[np.float64]:
        r"""share_d p(k | X^d), (n, D, K): what each channel adds to y."""
        return self.shares[:, None] * self.posteriors

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """y, (n, K): those of `pseudo_label`."""
        return weighted_vote(self.posteriors, self.shares)

    @property
    def labels(self) -> NDArray:
        """The label by the vote, (n,)."""
        return self.classes[self.probabilities.argmax(axis=1)]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """How sure the vote is, (n,), by `confidence_rule`; for ranking."""
        return markov.confidence(self.probabilities, self.confidence_rule)

    @property
    def answer_labels(self) -> NDArray:
        """The label by `predict`, (n,)."""
        return self.classes[self.answers.argmax(axis=1)]

    def contributions(self, window: int, label: Any = None, against: Any = None) -> Contributions:
        """Split the lead y_label - y_against of a label in one window over channels and transitions; exact sums.

        window : position in this explanation
        label, against : classes; by default the label of the vote, and the most probable of the others
        """
        return contributions_of(self[self.position(window)], label, against)

    def top_evidence(self, window: int, n: int = 5, label: Any = None, against: Any = None) -> Evidence:
        """Name the channels, and the n transitions on either side, that spoke most for `label` and most for `against`.

        window, label, against : as in `contributions`
        """
        whole_number("n", n, least=0)
        return evidence_of(self[self.position(window)], n, label, against)

    def sentence(self, window: int) -> str:
        """Say why the window at this position got its label, in plain words."""
        return sentence_of(self[self.position(window)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one npz file, atomically and without pickle."""
        write_explanation(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; a damaged or foreign file is refused, and nothing in it is executed."""
        return read_explanation(path, cls)

    def position(self, window: int) -> int:
        """Return the position of a window, or complain."""
        if isinstance(window, bool) or not isinstance(window, int | np.integer) or not 0 <= window < len(self):
            expected = f"a position 0..{len(self) - 1}"
            raise wrong("window", expected=expected, got=repr(window), advice="`windows` has the row numbers.")
        return int(window)

    def class_index(self, argument: str, label: Any) -> int:
        """Return the position of a label in `classes`, or complain."""
        found = np.flatnonzero(self.classes == label)
        if len(found) != 1:
            raise wrong(argument, expected=f"one of {self.classes.tolist()}", got=repr(label), advice="Check spelling.")
        return int(found[0])

    def _check_shapes(self) -> None:
        n, K, D = len(self), len(self.classes), len(self.channel_names)
        n_codes = self.log_probabilities.shape[-1]
        expected = {
            "codes": (n, D, self.codes.shape[-1]),
            "log_probabilities": (K, D, n_codes, n_codes),
            "distances": (D,),
            "weights": (D,),
            "shares": (D,),
            "answers": (n, K),
            "windows": (n,),
        }
        if self.prior is not None:
            expected["prior"] = (K,)
        if self.signals is not None:
            expected["signals"] = (n, D, self.signals.shape[-1])
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise wrong(
                    name, expected=f"shape {shape}", got=getattr(self, name).shape, advice="Use TransPL.explain."
                )
        check_codes(self.codes, n_codes)
        if self.nearest is not None and len(self.nearest) != n:
            raise wrong("nearest", expected=f"{n} rows", got=len(self.nearest), advice="Use TransPL.explain.")
