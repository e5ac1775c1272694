"""How codes become class probabilities of a window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transpl.markov import channel_posteriors, confidence, mean_over_transitions, weighted_vote
from transpl.methods.transpl.settings import TransPLSettings
from transpl.windows import PseudoLabels

Codes = NDArray[np.integer]  # (n, D, N)
Chunks = Iterable[tuple[slice, Codes]]  # rows, and their codes


@dataclass(frozen=True, eq=False)
class Vote:
    """A labeller of windows; see `markov.label_probabilities` for the equation.

    log_probabilities : (K, D, n_c, n_c) of transitions by class
    shares : (D,) of the channels, sum 1
    prior : (K,) or None
    """

    settings: TransPLSettings
    log_probabilities: NDArray[np.float64]
    shares: NDArray[np.float64]
    prior: NDArray[np.float64] | None = None

    def __call__(self, codes: Codes) -> PseudoLabels:
        y = self.probabilities(codes)
        return PseudoLabels(y.argmax(axis=1), confidence(y, self.settings.confidence), y)

    def probabilities(self, codes: Codes) -> NDArray[np.float64]:
        """y, (n, K)."""
        likelihoods = mean_over_transitions(codes, self.log_probabilities, self.settings.length)
        return weighted_vote(channel_posteriors(likelihoods, self.prior, self.settings.prior_temperature), self.shares)
