"""What goes into a method and comes out of it: labelled windows, pseudo-labels, rows it learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl.errors import wrong
from transpl.training.rows import Rows, label_tensor, window_rows
from transpl.windows import Windows


@dataclass(frozen=True)
class Labelled:
    """Windows with class indices 0..n_classes-1; a class may have no windows."""

    windows: Windows
    y: NDArray[np.int64]
    n_classes: int

    def __post_init__(self) -> None:
        if not isinstance(self.windows, Windows):
            got = type(self.windows).__name__
            raise wrong("windows", expected="Windows", got=got, advice="Wrap them: as_windows(X).")
        y = np.asarray(self.y)
        if y.shape != (len(self.windows),):
            raise wrong("y", expected=f"shape ({len(self.windows)},)", got=y.shape, advice="Give one label a window.")
        if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= self.n_classes:
            expected = f"class indices 0..{self.n_classes - 1}"
            raise wrong("y", expected=expected, got=f"{y.dtype} {y.min()}..{y.max()}", advice="Number the classes.")

    def rows(self) -> Rows:
        """Tensors to train on: x, y, and lengths if they differ."""
        return {**window_rows(self.windows.in_memory()), "y": label_tensor(self.y)}


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
