"""Codes without a network: each patch of each channel gets the number of the nearest k-means centre."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_int, invalid
from transpl.markov import SourceCodes, TransitionCounts, transport_cost
from transpl.windows import CHUNK, Labelled, Windows, as_windows

_PATCHES_TO_LEARN_FROM = 6000  # more of them move the centres less than another seed does
_PATCHES_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class PatchCodes:
    """s = argmin_i |p - c_i|^2 for a patch p of standardised samples; one codebook of centres c_i for all channels.

    Attributes
    ----------
    centres : (codes, patch length) array
    mean, deviation : (channels,) arrays
        For standardising windows.
    """

    centres: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def fit(cls, X: Any, *, n_codes: int = 8, patch_length: int = 8, seed: int = 0) -> PatchCodes:
        """Learn a codebook from windows in any form that `as_windows` accepts."""
        check_int("n_codes", n_codes, least=1)
        check_int("patch_length", patch_length, least=1)
        windows = as_windows(X)
        _check_patch_length(windows, patch_length)
        mean, deviation = _channel_statistics(windows)
        patches = _patches(_standardised(windows, mean, deviation), patch_length)
        inside = _inside(windows, patch_length, patches.shape[2])
        learnt_from = patches.transpose(0, 2, 1, 3)[inside].reshape(-1, patch_length)
        rng = np.random.default_rng(seed)
        learnt_from = learnt_from[np.sort(rng.permutation(len(learnt_from))[:_PATCHES_TO_LEARN_FROM])]
        return cls(_centres(learnt_from, n_codes, seed), mean, deviation)

    @property
    def n_codes(self) -> int:
        return len(self.centres)

    @property
    def patch_length(self) -> int:
        return int(self.centres.shape[1])

    def codes(self, X: Any) -> NDArray[np.int64]:
        """Return the code of every patch, (windows, channels, N); -1 behind the end of a shorter window."""
        windows = as_windows(X, n_channels=len(self.mean))
        _check_patch_length(windows, self.patch_length)
        patches = _patches(_standardised(windows, self.mean, self.deviation), self.patch_length)
        n, D, N, m = patches.shape
        codes = self._nearest(patches.reshape(-1, m)).reshape(n, D, N)
        if windows.ragged:
            inside = _inside(windows, m, N)
            codes = np.where(inside[:, None, :], codes, -1)
        return codes

    def class_counts(self, X: Any, y: ArrayLike, n_classes: int) -> TransitionCounts:
        """Count the transitions between the codes of labelled windows by class and channel."""
        return TransitionCounts.from_codes(self.codes(X), self.n_codes, y, n_classes)

    def _nearest(self, patches: NDArray[np.float64]) -> NDArray[np.int64]:
        # |p - c|^2 = |p|^2 - 2 p.c + |c|^2, and |p|^2 is the same for all centres.
        lengths = (self.centres**2).sum(axis=1)
        nearest = np.empty(len(patches), np.int64)
        for first in range(0, len(patches), _PATCHES_AT_ONCE):
            part = slice(first, first + _PATCHES_AT_ONCE)
            nearest[part] = (lengths - 2 * patches[part] @ self.centres.T).argmin(axis=1)
        return nearest


@dataclass(frozen=True, eq=False)
class CodedSource:
    """The source as codes of patches, which show what shifted and which source windows are most similar.

    Attributes
    ----------
    book : PatchCodes
        The codebook, learnt from the source's windows as recorded.
    codes : SourceCodes
    class_counts : TransitionCounts
        (K, D, n_c, n_c).
    """

    book: PatchCodes
    codes: SourceCodes
    class_counts: TransitionCounts

    @classmethod
    def of(cls, source: Labelled, *, n_codes: int, patch_length: int, seed: int) -> Self:
        """Learn a codebook; patches are shortened if two of this length do not fit a window."""
        longest = max(1, int(source.windows.lengths.min()) // 2)
        book = PatchCodes.fit(source.windows, n_codes=n_codes, patch_length=min(patch_length, longest), seed=seed)
        codes = _codes(book, source.windows)
        counts = TransitionCounts.from_codes(codes, book.n_codes, source.y, source.n_classes)
        return cls(book, SourceCodes.numbered(codes, source.y, source.n_classes), counts)

    def of_rows(self, rows: NDArray[np.integer]) -> Self:
        """Return the same windows under other row numbers."""
        return replace(self, codes=self.codes.of_rows(rows))

    @property
    def class_shares(self) -> NDArray[np.float64]:
        """Class proportions of the source's windows, (K,)."""
        counted = np.bincount(self.codes.labels, minlength=len(self.class_counts.counts))
        return counted / counted.sum()

    def encode(self, windows: Windows) -> NDArray[np.integer]:
        """Return codes (n, D, N)."""
        return _codes(self.book, windows)

    def count(self, windows: Windows) -> TransitionCounts:
        """Count transitions, (D, n_c, n_c), a chunk of windows at a time."""
        n_codes = self.book.n_codes
        parts = (TransitionCounts.from_codes(self.encode(part), n_codes) for _, part in windows.chunks(CHUNK))
        return sum(parts, TransitionCounts.empty(windows.n_channels, n_codes))

    def cost(self) -> NDArray[np.float64]:
        """Return the `transport_cost` of the codebook; a zero centre (a constant channel) has cost 1 to all others."""
        centres = self.book.centres
        points = np.flatnonzero((centres**2).sum(axis=1) > 0)
        cost = 1.0 - np.eye(len(centres))
        if len(points):
            cost[np.ix_(points, points)] = transport_cost(centres[points])
        return cost


def _codes(book: PatchCodes, windows: Windows) -> NDArray[np.integer]:
    """Return codes in the smallest sufficient type."""
    kind = np.min_scalar_type(-book.n_codes)
    return np.concatenate([book.codes(part).astype(kind) for _, part in windows.chunks(CHUNK)])


def _check_patch_length(windows: Windows, patch_length: int) -> None:
    shortest = int(windows.lengths.min())
    if 2 * patch_length > shortest:
        expected = f"at most half the shortest window ({shortest // 2}), since a transition needs two patches"
        advice = "Use longer windows or a smaller patch_length."
        raise invalid("patch_length", expected=expected, got=patch_length, advice=advice)


def _channel_statistics(windows: Windows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and deviation of each channel over real samples; a constant channel gets deviation 1."""
    real = np.arange(windows.values.shape[2]) < windows.lengths[:, None]  # (windows, time)
    samples = windows.values.transpose(0, 2, 1)[real].astype(np.float64)
    deviation = samples.std(axis=0)
    return samples.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


def _standardised(windows: Windows, mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    return (windows.values - mean[:, None]) / deviation[:, None]


def _patches(values: NDArray[np.float64], patch_length: int) -> NDArray[np.float64]:
    """Cut (n, D, T) into (n, D, N, m), dropping a tail that is shorter than a patch."""
    n, D, T = values.shape
    N = T // patch_length
    return values[..., : N * patch_length].reshape(n, D, N, patch_length)


def _inside(windows: Windows, patch_length: int, N: int) -> NDArray[np.bool_]:
    """Return (n, N), true where a patch lies wholly inside its window."""
    return np.arange(N) < (windows.lengths // patch_length)[:, None]


def _centres(patches: NDArray[np.float64], n_codes: int, seed: int) -> NDArray[np.float64]:
    """Return k-means centres, or the different patches themselves if there are no more than `n_codes`."""
    different = np.unique(patches, axis=0)
    if len(different) <= n_codes:
        return different
    from sklearn.cluster import KMeans  # loads slowly, and labelling needs none of it

    found = KMeans(n_codes, n_init=1, max_iter=50, random_state=seed).fit(patches)
    return np.asarray(found.cluster_centers_, np.float64)
