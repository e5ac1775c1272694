"""The source as codes of patches: by them is told what shifted, and which source windows are most alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl.council.patch_codes import PatchCodes
from transpl.markov import SourceCodes, TransitionCounts
from transpl.windows import CHUNK, Labelled, Windows


@dataclass(frozen=True, eq=False)
class CodedSource:
    """A codebook over the source's windows as recorded, their codes, and which code follows which in each class.

    class_counts : (K, D, n_c, n_c)
    """

    book: PatchCodes
    codes: SourceCodes
    class_counts: TransitionCounts

    @classmethod
    def of(cls, source: Labelled, *, n_codes: int, patch_length: int, seed: int) -> Self:
        """Learn a codebook; patches are shorter where windows are too short for two of this length."""
        longest = max(1, int(source.windows.lengths.min()) // 2)
        book = PatchCodes.fit(source.windows, n_codes=n_codes, patch_length=min(patch_length, longest), seed=seed)
        codes = _codes(book, source.windows)
        counts = TransitionCounts.from_codes(codes, book.n_codes, source.y, source.n_classes)
        return cls(book, SourceCodes.numbered(codes, source.y, source.n_classes), counts)

    def of_rows(self, rows: NDArray[np.integer]) -> Self:
        """The same windows under other row numbers."""
        return replace(self, codes=self.codes.of_rows(rows))

    @property
    def class_shares(self) -> NDArray[np.float64]:
        """Of the source's windows, (K,)."""
        counted = np.bincount(self.codes.labels, minlength=len(self.class_counts.counts))
        return counted / counted.sum()

    def encode(self, windows: Windows) -> NDArray[np.integer]:
        """Codes (n, D, N)."""
        return _codes(self.book, windows)

    def count(self, windows: Windows) -> TransitionCounts:
        """Transition counts (D, n_c, n_c); codes of one chunk of windows are in memory."""
        n_codes = self.book.n_codes
        parts = (TransitionCounts.from_codes(self.encode(part), n_codes) for _, part in windows.chunks(CHUNK))
        return sum(parts, TransitionCounts.empty(windows.n_channels, n_codes))

    def cost(self) -> NDArray[np.float64]:
        """As `transport_cost`; a centre of zeros, which a constant channel leaves, is as far as can be from others."""
        centres = self.book.centres
        points = np.flatnonzero((centres**2).sum(axis=1) > 0)
        cost = 1.0 - np.eye(len(centres))
        if len(points):
            cost[np.ix_(points, points)] = markov.transport_cost(centres[points])
        return cost


def _codes(book: PatchCodes, windows: Windows) -> NDArray[np.integer]:
    """In the smallest type that holds them."""
    kind = np.min_scalar_type(-book.n_codes)
    return np.concatenate([book.codes(part).astype(kind) for _, part in windows.chunks(CHUNK)])
