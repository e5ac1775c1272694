"""Class matrices that follow the target: its windows, as they are labelled so far, are counted to the classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transpl.markov import TransitionCounts

TARGET_IS_WORTH = 10  # times the source; see `weighed_against_source`


def weighed_against_source(found: TransitionCounts, class_counts: TransitionCounts) -> TransitionCounts:
    r"""w count_k(i, j), w = max(1, round(10 S / t)), (K, D, n, n).

    S and t are the numbers of transitions in the source and in the target: together the target's count ten times as
    much as the source's, whichever has more windows. The source still speaks where the target is silent. w is whole,
    so that counts stay counts.

    found : of the target's windows by class; class_counts : of the source's
    """
    w = np.rint(TARGET_IS_WORTH * class_counts.counts.sum() / max(1, found.counts.sum()))
    return TransitionCounts(found.counts * max(1, int(w)))


def surest_of_each_class(
    labels: NDArray[np.integer], confidence: NDArray[np.float64], share: float
) -> NDArray[np.bool_]:
    """Which windows are among the `share` of their class with the highest confidence, (n,).

    At least one of each class is, and all whose confidence is infinite; of equal ones the first come first.
    """
    chosen = np.isposinf(confidence)
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        order = np.argsort(-confidence[rows], kind="stable")
        chosen[rows[order[: int(np.ceil(share * len(rows)))]]] = True
    return chosen
