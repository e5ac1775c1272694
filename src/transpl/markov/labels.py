"""Labels of windows: those of the source, those a method gives, and the few that a person gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl.markov.counts import TransitionCounts
from transpl.windows import Windows

UNKNOWN = -1
SOURCE_IS_WORTH = 10  # labelled target windows of a class; see `counts_of_labels`


@dataclass(frozen=True)
class Labelled:
    """Windows with class indices 0..n_classes-1; a class may have no windows."""

    windows: Windows
    y: NDArray[np.int64]
    n_classes: int

    def __post_init__(self) -> None:
        if not isinstance(self.windows, Windows):
            got = type(self.windows).__name__
            raise invalid("windows", expected="Windows", got=got, advice="Wrap them: as_windows(X).")
        y = np.asarray(self.y)
        if y.shape != (len(self.windows),):
            raise invalid("y", expected=f"shape ({len(self.windows)},)", got=y.shape, advice="Give one label a window.")
        if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= self.n_classes:
            expected = f"class indices 0..{self.n_classes - 1}"
            raise invalid("y", expected=expected, got=f"{y.dtype} {y.min()}..{y.max()}", advice="Number the classes.")


class LearntRows(NamedTuple):
    """The target rows that a method learnt from when its training ended, and what it took them for."""

    rows: NDArray[np.int64]  # (m,), indices
    labels: NDArray[np.int64]  # (m,)


class PseudoLabels(NamedTuple):
    """Labels given to unlabelled windows."""

    labels: NDArray  # (n,)
    confidence: NDArray[np.float64]  # (n,), for ranking
    probabilities: NDArray[np.float64]  # (n, K), rows sum to 1

    @classmethod
    def from_probabilities(cls, p: NDArray[np.float64]) -> PseudoLabels:
        """Label argmax_k p_k, confidence max_k p_k."""
        return cls(p.argmax(axis=1), p.max(axis=1), p)


def counts_of_labels(
    codes: NDArray[np.integer], y: NDArray[np.int64], class_counts: TransitionCounts
) -> TransitionCounts:
    r"""w_k count_k(i, j), w_k = max(1, round(S_k / (10 t_k))), (K, D, n, n): what labels add to the class counts.

    S_k is the number of transitions of class k in the source, t_k that of one labelled window of class k (the mean).
    So ten labelled windows of a class count as much as all of its source windows, however many these are: a source of
    thousands does not drown them, and a single one does not decide. w_k is whole, so that counts stay counts.

    codes : (rows, D, N) of the labelled windows; y : (rows,) their class indices; class_counts : of the source
    """
    K = class_counts.counts.shape[0]
    found = TransitionCounts.from_codes(codes, class_counts.n_codes, y, K).counts
    windows = np.bincount(y, minlength=K)
    one_window = found.sum(axis=(1, 2, 3)) / np.maximum(windows, 1)
    w = np.rint(class_counts.counts.sum(axis=(1, 2, 3)) / np.maximum(SOURCE_IS_WORTH * one_window, 1))
    return TransitionCounts(found * np.maximum(w, 1).astype(np.int64)[:, None, None, None])


def obeying(labels: PseudoLabels, y: NDArray[np.int64] | None) -> PseudoLabels:
    """Put known labels in the place of pseudo-labels, with confidence and probability 1; y (n,) is -1 where unknown."""
    if y is None:
        return labels
    known = y != UNKNOWN
    return PseudoLabels(
        np.where(known, y, labels.labels),
        np.where(known, 1.0, labels.confidence),
        certain_where_known(labels.probabilities, y),
    )


def certain_where_known(probabilities: NDArray[np.float64], y: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Probabilities (n, K) with 1 for the known label; y (n,) is -1 where unknown, or None if there is no label."""
    if y is None:
        return probabilities
    one_hot = np.eye(probabilities.shape[1])[y]
    return np.where((y != UNKNOWN)[:, None], one_hot, probabilities)
