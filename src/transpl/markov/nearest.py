r"""Source windows whose codes are most similar to those of a window.

distance(s, r) = 1 - \sum_d share_d (1 / max(N_s, N_r)) \sum_t [s_{d,t} = r_{d,t}]

0 means the same code everywhere, 1 nowhere. A patch that only the longer window has never agrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_int, invalid

_COMPARED_AT_ONCE = 1 << 18  # pairs of windows; their temporaries stay in the processor's cache
_DIGITS = 12  # further digits depend on the order of additions
_PADDING = -2  # of the source, unlike the -1 of the windows, so that patches absent on both sides do not agree


@dataclass(frozen=True, eq=False)
class SourceCodes:
    """What a model keeps of its source: coarse codes (m, D, N), class indices (m,), row numbers (m,) in `fit`."""

    codes: NDArray[np.integer]
    labels: NDArray[np.integer]
    rows: NDArray[np.integer]

    def __post_init__(self) -> None:
        m = len(self.codes)
        if self.codes.ndim != 3 or self.labels.shape != (m,) or self.rows.shape != (m,):
            got = f"{self.codes.shape}, {self.labels.shape} and {self.rows.shape}"
            raise invalid("source codes", expected="(m, D, N), (m,) and (m,)", got=got, advice="Fit the model again.")

    @classmethod
    def numbered(cls, codes: NDArray[np.integer], labels: NDArray[np.integer], n_classes: int) -> Self:
        """Number the rows from 0; labels and row numbers use the smallest sufficient type."""
        rows = np.arange(len(codes), dtype=np.min_scalar_type(-len(codes)))
        return cls(codes, labels.astype(np.min_scalar_type(-n_classes)), rows)

    def of_rows(self, rows: NDArray[np.integer]) -> Self:
        """The same windows under other row numbers."""
        return type(self)(self.codes, self.labels, rows.astype(np.min_scalar_type(-1 - int(rows.max()))))


@dataclass(frozen=True, eq=False)
class NearestWindows:
    """The nearest source windows of each window, the nearest first; of equally near ones the first in the source.

    Attributes
    ----------
    rows : (n, k) int array
        Row numbers in the X that the model was fitted with.
    labels : (n, k) array
        Their classes.
    distances : (n, k) array
        0 means the same codes everywhere, 1 nowhere.
    """

    rows: NDArray[np.int64]
    labels: NDArray
    distances: NDArray[np.float64]

    def __post_init__(self) -> None:
        shapes = {self.rows.shape, self.labels.shape, self.distances.shape}
        if len(shapes) != 1 or self.rows.ndim != 2:
            expected = "three arrays of one shape (n, k)"
            raise invalid("nearest", expected=expected, got=shapes, advice="Use TransPL.explain.")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.rows[rows], self.labels[rows], self.distances[rows])


def nearest_windows(
    codes: NDArray[np.integer], source: SourceCodes, shares: NDArray[np.float64], classes: NDArray, n: int
) -> NearestWindows | None:
    """Find the n nearest source windows of each window with codes (windows, D, N); None if n is 0.

    shares : (D,) the weight of each channel, sum 1; classes : (K,) labels
    """
    check_int("nearest", n, least=0)
    n, m = min(n, len(source.codes)), len(source.codes)
    if n == 0:
        return None
    found, distances = np.empty((len(codes), n), np.int64), np.empty((len(codes), n))
    by_position = np.array(source.codes.transpose(1, 2, 0), order="C")  # (D, N, m): one position side by side
    by_position[by_position < 0] = _PADDING
    lengths, source_lengths = ((each[:, 0] >= 0).sum(axis=-1) for each in (codes, source.codes))
    at_once = max(1, _COMPARED_AT_ONCE // m)
    for first in range(0, len(codes), at_once):
        rows = slice(first, first + at_once)
        longer = np.maximum(lengths[rows, None], source_lengths)
        away = np.round(1.0 - _agreement(codes[rows], by_position, shares) / longer, _DIGITS)
        row = np.arange(len(away))
        for i in range(n):  # argmin takes the first of equally near windows
            found[rows, i] = nearest = away.argmin(axis=1)
            distances[rows, i] = away[row, nearest]
            away[row, nearest] = np.inf
    numbers = source.rows[found].astype(np.int64)
    return NearestWindows(numbers, classes[source.labels[found]], np.maximum(distances, 0.0))


def _agreement(
    codes: NDArray[np.integer], by_position: NDArray[np.integer], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""\sum_d share_d \sum_t [s_{d,t} = r_{d,t}] of some windows with all source windows, (rows, m)."""
    shape, N = (len(codes), by_position.shape[-1]), min(codes.shape[-1], by_position.shape[1])
    total = np.zeros(shape)
    for d, share in enumerate(shares):
        alike = np.zeros(shape, np.uint8 if N < 256 else np.uint32)
        for t in range(N):
            alike += (codes[:, d, t, None] == by_position[d, t]).view(np.uint8)
        total += share * alike
    return total
