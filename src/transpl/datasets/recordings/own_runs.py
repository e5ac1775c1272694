"""Windows from one uninterrupted run of samples that arrives in pieces; the same however it is pieced."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl.windows import cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_ROUNDING = 1e-6  # of a sample: a last sample this close before a point of the grid is on it


class Sizes(NamedTuple):
    """Window and step in samples; samples per unit of time if the run is to be resampled."""

    window: int
    step: int
    rate: float | None


class Pieces(NamedTuple):
    """Windows, and the rows of the file that hold the first and last sample of each."""

    X: NDArray[np.float32]  # (n, channels, window)
    first: Ints
    last: Ints


class Run:
    """An uninterrupted run: holds no more than the samples that a later window may still need."""

    def __init__(self, sizes: Sizes, n_channels: int) -> None:
        self.sizes = sizes
        self.samples = 0
        self.windows = 0
        self._resampler = Resampler(sizes.rate) if sizes.rate is not None else None
        self._values: Floats = np.empty((0, n_channels))
        self._rows: Ints = np.empty(0, np.int64)
        self._skip = 0

    def feed(self, values: Floats, rows: Ints, time: Floats | None) -> Pieces:
        """Take the next rows and return the windows they complete."""
        if self._resampler is not None and time is not None:
            values, rows = self._resampler.feed(values, rows, time)
        return self._cut(values, rows)

    def finish(self) -> Pieces:
        """Return what the end of the run completes."""
        if self._resampler is None:
            return self._cut(self._values[:0], self._rows[:0])
        return self._cut(*self._resampler.finish())

    @property
    def between(self) -> int:
        """Samples between windows, where the step is longer than the window."""
        return max(0, self.windows - 1) * max(0, self.sizes.step - self.sizes.window)

    @property
    def left_over(self) -> int:
        """Samples behind the last window."""
        window, step = self.sizes.window, self.sizes.step
        return self.samples - ((self.windows - 1) * step + window if self.windows else 0)

    def _cut(self, values: Floats, rows: Ints) -> Pieces:
        self.samples += len(values)
        skipped = min(self._skip, len(values))
        self._skip -= skipped
        values = np.concatenate([self._values, values[skipped:]])
        rows = np.concatenate([self._rows, rows[skipped:]])
        window, step, _ = self.sizes
        if len(values) < window:
            self._values, self._rows = values, rows
            return Pieces(np.empty((0, values.shape[1], window), np.float32), rows[:0], rows[:0])
        windows, starts = cut(values.T, window, step)
        self.windows += len(starts)
        following = len(starts) * step
        self._skip = max(0, following - len(values))
        self._values, self._rows = values[following:].copy(), rows[following:].copy()
        return Pieces(windows, rows[starts], rows[starts + window - 1])


class Resampler:
    """Linear interpolation of one run at its first time + k / rate; points are settled as soon as they are passed."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._start = 0.0
        self._next = 0
        self._values: Floats | None = None  # the last row fed, (1, channels)
        self._rows: Ints = np.empty(0, np.int64)
        self._time: Floats = np.empty(0)

    def feed(self, values: Floats, rows: Ints, time: Floats) -> tuple[Floats, Ints]:
        """Return the samples up to the last row, and the row at or before each."""
        if self._values is None:
            self._start = float(time[0])
        else:
            values = np.concatenate([self._values, values])
            rows, time = np.concatenate([self._rows, rows]), np.concatenate([self._time, time])
        self._values, self._rows, self._time = values[-1:], rows[-1:], time[-1:]
        beyond = int((time[-1] - self._start) * self.rate) + 2
        grid = self._start + np.arange(self._next, beyond) / self.rate
        return self._interpolated(grid[grid <= time[-1]], values, rows, time)

    def finish(self) -> tuple[Floats, Ints]:
        """Return the point that the last row misses by rounding only, if there is one."""
        assert self._values is not None
        grid = np.array([self._start + self._next / self.rate])
        near = grid <= self._time[-1] + _ROUNDING / self.rate
        return self._interpolated(grid[near], self._values, self._rows, self._time)

    def _interpolated(self, grid: Floats, values: Floats, rows: Ints, time: Floats) -> tuple[Floats, Ints]:
        self._next += len(grid)
        samples = np.empty((len(grid), values.shape[1]))
        for c in range(values.shape[1]):
            samples[:, c] = np.interp(grid, time, values[:, c])
        before = np.searchsorted(time, grid, side="right") - 1
        return samples, rows[np.minimum(before, len(rows) - 1)]
