r"""Which windows a person should check first, from their class probabilities alone.

u_{i,k} \propto w_k q_{i,k}, with w such that \frac{1}{n} \sum_i u_i = \pi,
s_i = logit q_{i,l_i} + \frac{1}{2} logit u_{i,l_i}.

q are the probabilities, l_i is the label of window i and \pi the expected class shares. u are the probabilities if the
classes were as common as expected: a label whose class was given too often is doubtful however confident it is, because
a class that is confused with it was given too seldom. Windows are checked in ascending order of s, which ranks wrong
labels before right ones better than the confidence does (docs/beyond.md). Windows that may belong to a class that no
window was given come before all others. Windows at a change of label come last: they may hold both, and then no single
label is right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

Floats = NDArray[np.float64]
_WEIGHT = 0.5  # of the probabilities under the expected shares; chosen on the development pairs
_PER_MISSING_CLASS = 2  # windows that lead the list for a class that no window was given
_ROUNDS = 50
_LEAST_SHARE = 1e-3  # of an expected class
_TINY = 1e-12


def check_order(
    probabilities: Floats, shares: Floats, at_changes: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Rows of `probabilities` in the order in which to check them.

    Parameters
    ----------
    probabilities : (n, K) array
    shares : (K,) array
        Expected class shares: those of the source, or the prior.
    at_changes : (n,) bool array, optional
        True for windows between two of different labels in the same recording.

    Examples
    --------
    >>> import numpy as np
    >>> from transpl.jobs import check_order
    >>> check_order(np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]), np.array([0.5, 0.5])).tolist()
    [1, 2, 0]
    """
    expected = with_expected_shares(probabilities, shares)
    label = probabilities.argmax(axis=1)
    rows = np.arange(len(label))
    own, other = (logit(np.clip(p[rows, label], _TINY, 1 - _TINY)) for p in (probabilities, expected))
    first = [row for candidates in missing_class_windows(probabilities, shares).values() for row in candidates]
    leads = np.isin(rows, first)
    last = np.zeros(len(rows), np.bool_) if at_changes is None else at_changes
    return np.lexsort((rows, own + _WEIGHT * other, last, ~leads))


def missing_class_windows(probabilities: Floats, shares: Floats) -> dict[int, list[int]]:
    """For each expected class that no window was given, the likeliest windows: {class: rows}."""
    given = np.bincount(probabilities.argmax(axis=1), minlength=len(shares))
    expected = with_expected_shares(probabilities, shares)
    missing = np.flatnonzero((given == 0) & (shares > 0)).tolist()
    return {k: np.argsort(-expected[:, k], kind="stable")[:_PER_MISSING_CLASS].tolist() for k in missing}


def with_expected_shares(probabilities: Floats, shares: Floats) -> Floats:
    """u, (n, K): probabilities (n, K) scaled per class until their mean is `shares`."""
    weights = np.ones(len(shares))
    for _ in range(_ROUNDS):
        scaled = probabilities * weights
        scaled /= np.maximum(scaled.sum(axis=1, keepdims=True), _TINY)
        weights *= np.maximum(shares, _LEAST_SHARE) / np.maximum(scaled.mean(axis=0), _TINY)
        weights /= weights.max()
    return scaled
