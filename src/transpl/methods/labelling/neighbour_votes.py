"""Votes of the nearest neighbours, with a stated rule for ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

_DISTANCES_AT_ONCE = 1 << 21


def neighbour_votes(
    u: NDArray[np.float64], fitting: NDArray[np.float64], labels: NDArray[np.int64], k: int, n_classes: int
) -> NDArray[np.float64]:
    r"""v_ic = number of rows of class c among the k rows of `fitting` nearest to u_i.

    u : (n, d); fitting : (m, d), k <= m; labels : (m,)
    returns : (n, n_classes), rows sum to k; of equally near rows the earlier ones in `fitting` vote
    """
    ballots = np.eye(n_classes)[labels]
    v = np.empty((len(u), n_classes))
    at_once = max(1, _DISTANCES_AT_ONCE // len(fitting))
    for first in range(0, len(u), at_once):
        rows = slice(first, first + at_once)
        v[rows] = nearest(cdist(u[rows], fitting), k) @ ballots
    return v


def nearest(distances: NDArray[np.float64], k: int) -> NDArray[np.bool_]:
    """Mark the k smallest entries of each row, of equal ones the first; (n, m)."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    nearer, tied = distances < kth, distances == kth
    room = k - nearer.sum(axis=1, keepdims=True)
    return nearer | (tied & (tied.cumsum(axis=1) <= room))
