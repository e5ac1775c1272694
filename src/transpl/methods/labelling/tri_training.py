"""ATT: two heads label a target row where they agree and one is sure (Saito et al., 2017)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_fraction, check_int
from transpl.methods.labelling.checks import check_pair
from transpl.windows import PseudoLabels


def agreed(p1: ArrayLike, p2: ArrayLike, threshold: float = 0.9) -> NDArray[np.bool_]:
    r"""argmax p1_i = argmax p2_i and max(max_k p1_ik, max_k p2_ik) > threshold; p1, p2 (n, K), returns (n,)."""
    check_fraction("threshold", threshold, zero=True)
    first, second = check_pair(p1, p2)
    return _same(first, second) & (_surer(first, second) > threshold)


def tri_training_labels(p1: ArrayLike, p2: ArrayLike) -> PseudoLabels:
    r"""\hat y_i = argmax_k (p1_ik + p2_ik); confidence max(max_k p1_ik, max_k p2_ik) if both agree, else 0.

    p1, p2 : (n, K) of the two labelling heads
    returns : a label for every row, with probabilities (p1 + p2) / 2
    """
    first, second = check_pair(p1, p2)
    mean = (first + second) / 2
    return PseudoLabels(mean.argmax(axis=1), np.where(_same(first, second), _surer(first, second), 0.0), mean)


def candidate_share(k: int, rounds: int = 20) -> float:
    """min(1, (k + 1) / rounds): the share of target rows that round k draws to label."""
    check_int("k", k, least=0)
    check_int("rounds", rounds, least=1)
    return min(1.0, (k + 1) / rounds)


def _same(p1: NDArray[np.float64], p2: NDArray[np.float64]) -> NDArray[np.bool_]:
    return p1.argmax(axis=1) == p2.argmax(axis=1)


def _surer(p1: NDArray[np.float64], p2: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(p1, p2).max(axis=1)
