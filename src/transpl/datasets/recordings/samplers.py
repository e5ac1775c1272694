"""Samples at even times from the rows of an uninterrupted run, which may arrive in pieces of any size."""

from __future__ import annotations

import math

import numpy as np

from transpl._utils.errors import invalid
from transpl.datasets.recordings.clocks import UNITS, Clock, Floats, Ints

_MAX_SAMPLES_PER_ROW = 10  # a higher rate would mostly invent samples
_COARSER = 0.75  # of the recording's own rate: below it, samples are means
_ROUNDING = 1e-6  # samples: a last row this close before a point of the grid counts as on it


def sampler_of(clock: Clock, rate: float | None) -> Filler | Resampler | Averager:
    """Return what samples a run; without a rate, only rows of uneven times are resampled."""
    if rate is None:
        return Filler(clock.step) if clock.even else Resampler(1 / clock.step)
    return Averager(rate) if rate * clock.step < _COARSER else Resampler(rate)


class Filler:
    """Passes rows on and fills in missing samples, each on a straight line between its neighbours."""

    def __init__(self, step: float) -> None:
        self.filled = 0
        self._step = step
        self._last: tuple[Floats, Ints, Floats] | None = None

    def feed(self, values: Floats, rows: Ints, time: Floats) -> tuple[Floats, Ints]:
        """Return the samples since the last row, and the row at or before each."""
        last, self._last = self._last, (values[-1:], rows[-1:], time[-1:])
        if last is not None:
            values, rows, time = (np.concatenate(parts) for parts in zip(last, (values, rows, time), strict=True))
        apart = np.maximum(np.round(np.diff(time) / self._step), 1).astype(np.int64)
        known = int(last is not None)
        if (apart == 1).all():
            return values[known:], rows[known:]
        place = np.concatenate([[0], np.cumsum(apart)])
        every = np.arange(place[-1] + 1)
        samples = np.stack([np.interp(every, place, channel) for channel in values.T], axis=1)
        before = np.searchsorted(place, every, side="right") - 1
        self.filled += len(every) - len(place)
        return samples[known:], rows[before][known:]

    def finish(self) -> tuple[Floats, Ints]:
        """Return nothing: the last row was the last sample."""
        assert self._last is not None
        return self._last[0][:0], self._last[1][:0]


class Resampler:
    """Interpolates one run linearly at its first time + k / rate."""

    filled = 0

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
        return self._interpolate(grid[grid <= time[-1]], values, rows, time)

    def finish(self) -> tuple[Floats, Ints]:
        """Return the point that the last row misses by rounding only, if there is one."""
        assert self._values is not None
        grid = np.array([self._start + self._next / self.rate])
        near = grid <= self._time[-1] + _ROUNDING / self.rate
        return self._interpolate(grid[near], self._values, self._rows, self._time)

    def _interpolate(self, grid: Floats, values: Floats, rows: Ints, time: Floats) -> tuple[Floats, Ints]:
        self._next += len(grid)
        samples = np.empty((len(grid), values.shape[1]))
        for c in range(values.shape[1]):
            samples[:, c] = np.interp(grid, time, values[:, c])
        before = np.searchsorted(time, grid, side="right") - 1
        return samples, rows[np.minimum(before, len(rows) - 1)]


class Averager:
    """x_k = rate * integral of x(t) dt over the 1 / rate seconds about t_k = first time + k / rate.

    x(t) is the straight line between rows, and constant before the first and after the last. Unlike single points of a
    faster recording, means do not turn its fast vibrations into slow ones.
    """

    filled = 0

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._start = 0.0
        self._next = 0
        self._fed: tuple[Floats, Ints, Floats] | None = None  # the rows that the next samples need

    def feed(self, values: Floats, rows: Ints, time: Floats) -> tuple[Floats, Ints]:
        """Return the samples whose time is over, and the row at or before each."""
        if self._fed is None:
            self._start = float(time[0])
        else:
            values, rows, time = (np.concatenate(parts) for parts in zip(self._fed, (values, rows, time), strict=True))
        passed = self._edges(max(self._next, math.ceil((time[-1] - self._start) * self.rate) + 1))[1:] <= time[-1]
        averaged = self._average(self._next + int(passed.sum()), values, rows, time)
        first = max(0, int(np.searchsorted(time, self._edges(self._next)[0], side="right")) - 1)
        self._fed = values[first:], rows[first:], time[first:]
        return averaged

    def finish(self) -> tuple[Floats, Ints]:
        """Return the last samples, whose time reaches beyond the last row."""
        assert self._fed is not None
        values, rows, time = self._fed
        end = math.floor((time[-1] - self._start) * self.rate + _ROUNDING) + 1
        return self._average(end, values, rows, time)

    def _average(self, end: int, values: Floats, rows: Ints, time: Floats) -> tuple[Floats, Ints]:
        if end <= self._next:
            return values[:0], rows[:0]
        edges = self._edges(end)
        inside = time[(time > edges[0]) & (time < edges[-1])]
        corners = np.sort(np.concatenate([edges, inside]))
        lines = np.stack([np.interp(corners, time, channel) for channel in values.T], axis=1)
        areas = np.diff(corners)[:, None] * (lines[1:] + lines[:-1]) / 2
        samples = np.add.reduceat(areas, np.searchsorted(corners, edges[:-1])) / np.diff(edges)[:, None]
        middles = self._start + np.arange(self._next, end) / self.rate
        self._next = end
        before = np.searchsorted(time, middles, side="right") - 1
        return samples, rows[before]

    def _edges(self, end: int) -> Floats:
        return self._start + (np.arange(self._next, end + 1, dtype=np.float64) - 0.5) / self.rate


def check_rate(rate: float, clock: Clock, name: str) -> None:
    """Raise if resampling would invent most samples: usually the clock counts in another unit."""
    per_row = rate * clock.step
    if not (per_row > _MAX_SAMPLES_PER_ROW and clock.step <= clock.gap):
        return
    power = 3 * round(min(math.log10(per_row), 9) / 3)
    unit = next(name for name, per_second in UNITS.items() if per_second == 10.0**power)
    hint = f"If the clock counts in {unit}, say so (--time-unit {unit}). " if unit != "s" else ""
    raise invalid(
        "rate",
        expected=f"at most {_MAX_SAMPLES_PER_ROW} samples per row",
        got=f"{rate:g}, which makes {per_row:,.0f} samples of a row of {name} (usual time step: {clock.step:g} s)",
        advice=f"{hint}Otherwise choose a lower rate, or a gap below that step.",
    )
