"""Why windows got their labels: every number that the vote is made of, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.markov.evidence import divisors, each_transition, mean_over_transitions
from transpl.markov.explanation.base import BaseExplanation
from transpl.markov.explanation.contributions import Contributions, contributions_of
from transpl.markov.explanation.evidence import Evidence, evidence_of
from transpl.markov.explanation.sentence import sentence_of
from transpl.markov.posterior import CONFIDENCE, LENGTHS, weighted_vote


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(BaseExplanation):
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

    log_probabilities: NDArray[np.float64]
    shares: NDArray[np.float64]
    prior: NDArray[np.float64] | None = None
    prior_temperature: float = 1.0
    length: str = "transitions"
    confidence_rule: str = "max"

    FORMAT: ClassVar[str] = "transpl-explanation-1"
    PER_WINDOW: ClassVar[tuple[str, ...]] = ("codes", "answers", "windows", "signals", "nearest")
    ARRAYS: ClassVar[tuple[str, ...]] = (
        "codes",
        "log_probabilities",
        "distances",
        "weights",
        "shares",
        "answers",
        "windows",
        "prior",
        "signals",
    )
    PLAIN: ClassVar[tuple[str, ...]] = ("mode", "patch_length", "prior_temperature", "length", "confidence_rule")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("length", self.length, LENGTHS)
        check_choice("confidence_rule", self.confidence_rule, CONFIDENCE)
        check_positive("prior_temperature", self.prior_temperature)
        K, D, n_codes = len(self.classes), len(self.channel_names), self.log_probabilities.shape[-1]
        shapes: dict[str, tuple[int, ...]] = {"log_probabilities": (K, D, n_codes, n_codes), "shares": (D,)}
        if self.prior is not None:
            shapes["prior"] = (K,)
        self._check(shapes, n_codes)

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
    def confidence(self) -> NDArray[np.float64]:
        """How sure the vote is, (n,), by `confidence_rule`; for ranking."""
        return markov.confidence(self.probabilities, self.confidence_rule)

    def contributions(self, window: int, label: Any = None, against: Any = None) -> Contributions:
        """Split the lead y_label - y_against of a label in one window over channels and transitions; exact sums.

        window : position in this explanation
        label, against : classes; by default the label of the vote, and the most probable of the others
        """
        return contributions_of(self.only(window), label, against)

    def top_evidence(self, window: int, n: int = 5, label: Any = None, against: Any = None) -> Evidence:
        """Name the channels, and the n transitions on either side, that spoke most for `label` and most for `against`.

        window, label, against : as in `contributions`
        """
        check_int("n", n, least=0)
        return evidence_of(self.only(window), n, label, against)

    def sentence(self, window: int) -> str:
        """Say why the window at this position got its label, in plain words."""
        return sentence_of(self.only(window))
