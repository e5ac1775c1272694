"""Class matrices that follow the target: its windows, as they are labelled so far, are counted to the classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from transpl.markov import TransitionCounts
from transpl.markov.evidence import class_log_probabilities
from transpl.methods.few_labels import UNKNOWN
from transpl.methods.vote import Chunks, Vote
from transpl.shares import at_least
from transpl.training.adaptation import CERTAIN

TARGET_IS_WORTH = 10  # times the source; see `weighed_against_source`


def following(
    vote: Vote,
    chunks: Callable[[], Chunks],
    source: TransitionCounts,
    known: TransitionCounts,
    few_labels: NDArray[np.int64] | None = None,
) -> TransitionCounts:
    """Counts (K, V, n, n) of the target by class after `refine_rounds`: label it, count its surest windows, and again.

    vote : by the counts `known` alone: the `source`'s, and those of windows that a person labelled
    chunks : gives the target's windows, twice for every round; few_labels : as in `counted_to_classes`
    """
    settings, found = vote.settings, None
    for _ in range(settings.refine_rounds):
        counts = counted_to_classes(vote, chunks, settings.refine_share, few_labels)
        before, found = found, weighed_against_source(counts, source)
        if found == before:
            break
        log_p = class_log_probabilities(known + found, settings.smoothing, settings.epsilon)
        vote = replace(vote, log_probabilities=log_p)
    assert found is not None, "there is a round at least"
    return found


def counted_to_classes(
    vote: Vote, chunks: Callable[[], Chunks], share: float, few_labels: NDArray[np.int64] | None = None
) -> TransitionCounts:
    """Counts (K, D, n, n) of the surest `share` of every class, and of all windows whose label is known.

    chunks : gives the windows, twice; few_labels : (n,) class indices that a person gave, -1 for the others
    """
    K, D, n_codes, _ = vote.log_probabilities.shape
    labels, confidence = _labelled(vote, chunks())
    if few_labels is not None:
        known = few_labels != UNKNOWN
        labels[known], confidence[known] = few_labels[known], CERTAIN
    chosen = surest_of_each_class(labels, confidence, share)
    counts = TransitionCounts.empty(D, n_codes, K)
    for rows, coded in chunks():
        codes, y = coded.codes[chosen[rows]], labels[rows][chosen[rows]]
        if len(codes):
            counts += TransitionCounts.from_codes(codes, n_codes, y, K)
    return counts


def _labelled(vote: Vote, chunks: Chunks) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels of all windows and how sure they are; their probabilities are not kept, for there may be millions."""
    labels, sureness = zip(*(_label_and_sureness(vote.probabilities(coded)) for _, coded in chunks), strict=True)
    return np.concatenate(labels), np.concatenate(sureness)


def _label_and_sureness(y: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""argmax_k y_k and -\sum_{j \neq k} y_j, which is max_k y_k - 1 but still tells windows apart where that is 0."""
    labels = y.argmax(axis=1)
    others = y.copy()
    np.put_along_axis(others, labels[:, None], 0.0, axis=1)
    return labels, -others.sum(axis=1)


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
        chosen[rows[order[: at_least(share, len(rows))]]] = True
    return chosen
