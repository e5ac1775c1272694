"""Means and covariances of channels, mergeable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transpl.windows import Windows

_CHUNK = 4096  # windows that become float64 at once


@dataclass(frozen=True, eq=False)
class Moments:
    r"""n, m = (1 / n) \sum x, S = \sum (x - m)(x - m)^T, over all time steps x of all windows; `a + b` merges.

    count : n, of time steps; mean : m, (D,); scatter : S, (D, D)
    """

    count: int
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]

    @classmethod
    def empty(cls, n_channels: int) -> Moments:
        """Return the identity of addition: nothing seen."""
        return cls(0, np.zeros(n_channels), np.zeros((n_channels, n_channels)))

    @classmethod
    def of_windows(cls, windows: Windows) -> Moments:
        """Those of windows, without what lies behind the end of shorter ones; one chunk is in memory."""
        parts = (cls._of_part(part) for _, part in windows.chunks(_CHUNK))
        return sum(parts, start=cls.empty(windows.n_channels))

    @classmethod
    def _of_part(cls, windows: Windows) -> Moments:
        real = np.arange(windows.values.shape[2]) < windows.lengths[:, None]
        x = windows.values.swapaxes(1, 2)[real].astype(np.float64)
        centred = x - x.mean(axis=0)
        return cls(len(x), x.mean(axis=0), centred.T @ centred)

    def __add__(self, other: object) -> Moments:
        r"""S = S_a + S_b + (n_a n_b / n) (m_b - m_a)(m_b - m_a)^T."""
        if not isinstance(other, Moments):
            return NotImplemented
        n, apart = self.count + other.count, other.mean - self.mean
        share = other.count / max(n, 1)
        scatter = self.scatter + other.scatter + self.count * share * np.outer(apart, apart)
        return Moments(n, self.mean + share * apart, scatter)

    @property
    def covariance(self) -> NDArray[np.float64]:
        """S / n, (D, D)."""
        return self.scatter / max(self.count, 1)
