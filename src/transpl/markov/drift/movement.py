"""How far a channel's codes have moved, as the drift watch judges it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl.markov.alignment import row_distances
from transpl.markov.counts import TransitionCounts


def movements(source: TransitionCounts, target: TransitionCounts, cost: ArrayLike) -> NDArray[np.float64]:
    r"""\sum_i \pi_{d,i} r_{d,i} with r_{d,i} = EMD(p^S_{d,i}, p^T_{d,i}), (channels,).

    \pi_{d,i} is the share of transitions, of both sides together, that start at code i. At a code that only one side
    has, r_{d,i} is how far it is from the nearest code of the other side: min_j M_ij.

    The paper's `channel_distances` is (1 / n) \sum_i of the same rows. It weighs channels well enough, but is no alarm:
    a code seen three times counts as much as one seen thousands of times, so that chance hides what moved; and a code
    that only one side has counts nothing, so that a sensor stuck at a value never seen before would go unnoticed.
    """
    M = np.asarray(cost, dtype=np.float64)
    rows = row_distances(source, target, M)
    starts = [counts.counts.sum(axis=-1) for counts in (source, target)]  # (channels, n)
    for ours, theirs in (starts, starts[::-1]):
        for d, i in np.argwhere((ours > 0) & (theirs == 0)):
            if theirs[d].any():
                rows[d, i] = M[i, theirs[d] > 0].min()
    both = starts[0] + starts[1]
    return (both * rows).sum(axis=-1) / np.maximum(both.sum(axis=-1), 1)
