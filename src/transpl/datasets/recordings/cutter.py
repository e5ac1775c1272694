"""Cutting the rows of a table into windows: the one path for `adapt`, `predict` and `datasets make`.

A recording is a (domain, group) of a file; recordings may take turns in it. Within a recording, a run ends at a missing
value, a change of label or a gap. With a clock, a gap is where time stands still, goes back or jumps; without one, it
is where rows of other recordings lie between. Every run is cut from its own start. Rows may arrive in pieces of any
size: the windows do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import invalid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CLOCK_ROWS = 1000  # first rows of a recording, from which its usual time step is taken
MAX_PAUSE = 1_000_000  # rows of other recordings after which a recording with a clock ends
_TOLERANCE = 1.5  # a step longer than this many usual ones is a gap, as in transpl.windows.time_breaks
_MAX_SAMPLES_PER_ROW = 10  # a higher rate would mostly invent samples
_UNITS = {3: "milliseconds", 6: "microseconds", 9: "nanoseconds"}
_ROUNDING = 1e-6  # samples: a last row this close before a point of the resampling grid counts as on it


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table, in order.

    number : row of the file, from 0 after the header; increasing
    values : (rows, channels), NaN where missing
    time : from any origin; None without a clock
    label : index of the row's label, -1 for a row without one
    domain, group : indices, or None
    """

    number: Ints
    values: Floats
    time: Floats | None
    label: Ints
    domain: Ints | None = None
    group: Ints | None = None

    def at(self, rows: Any) -> TableRows:
        columns = (self.number, self.values, self.time, self.label, self.domain, self.group)
        return TableRows(*(None if column is None else column[rows] for column in columns))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.number)


class Sizes(NamedTuple):
    """Window and step in samples, and the samples per unit of time if runs are resampled."""

    window: int
    step: int
    rate: float | None = None


class Pieces(NamedTuple):
    """Windows (n, channels, window), and the rows of the file that hold the first and last sample of each."""

    X: NDArray[np.float32]
    first: Ints
    last: Ints


class Found(NamedTuple):
    """Windows of one recording that share a label."""

    domain: int
    group: int
    label: int
    pieces: Pieces


@dataclass
class Tally:
    """How many rows are in no window, by reason; samples instead of rows where runs are resampled."""

    rows: int = 0
    missing: int = 0
    unlabelled: int = 0
    backwards: int = 0
    standing: int = 0
    gaps: int = 0
    before_gap: int = 0
    before_label: int = 0
    at_end: int = 0
    between: int = 0
    longest_run: int = 0

    def add(self, other: Tally) -> None:
        longest = max(self.longest_run, other.longest_run)
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        self.longest_run = longest

    @property
    def left_out(self) -> int:
        return sum((self.missing, self.unlabelled, self.before_gap, self.before_label, self.at_end, self.between))


class Clock(NamedTuple):
    """The usual time step of a recording, NaN if time never advances, and the longest step that is no gap."""

    step: float
    gap: float


def measure_clock(times: Floats, gap: float | None = None) -> Clock:
    """Take the median of the forward steps as the usual one."""
    steps = np.diff(times)
    forward = steps[steps > 0]
    usual = float(np.median(forward)) if len(forward) else math.nan
    return Clock(usual, gap if gap is not None else _TOLERANCE * usual if len(forward) else 0.0)


class FileCutter:
    """Cuts the rows of a file, recording by recording, as they stream by."""

    def __init__(self, name: str, sizes: Sizes, gap: float | None) -> None:
        self.tally = Tally()
        self.clocks: list[Clock] = []
        self._name, self._sizes, self._gap = name, sizes, gap
        self._open: dict[tuple[int, int], RecordingCutter] = {}

    def feed(self, rows: TableRows) -> Iterator[Found]:
        """Yield the windows that these rows complete."""
        max_pause = 0 if rows.time is None else MAX_PAUSE
        for key, own in _by_recording(rows):
            pauses = np.flatnonzero(np.diff(own.number) > max_pause + 1) + 1
            for part in _slices([0, *pauses.tolist(), len(own)]):
                piece = own.at(part)
                if key in self._open and piece.number[0] - self._open[key].last_row > max_pause + 1:
                    yield from self._open.pop(key).finish()
                if key not in self._open:
                    self._open[key] = RecordingCutter(key, self._sizes, self.tally, self._measure_gap)
                yield from self._open[key].feed(piece)
        for key in [key for key, cutter in self._open.items() if rows.number[-1] - cutter.last_row > max_pause]:
            yield from self._open.pop(key).finish()

    def finish(self) -> Iterator[Found]:
        """Yield the windows that the end of the file completes."""
        for cutter in self._open.values():
            yield from cutter.finish()
        self._open.clear()

    def _measure_gap(self, times: Floats) -> float:
        clock = measure_clock(times[:CLOCK_ROWS], self._gap)
        self.clocks.append(clock)
        if self._sizes.rate is not None:
            _check_rate(self._sizes.rate, clock, self._name)
        return clock.gap


class RecordingCutter:
    """Cuts one recording.

    measure_gap : returns the longest time step that is no gap, given the times of the first CLOCK_ROWS rows or more
    """

    def __init__(
        self, key: tuple[int, int], sizes: Sizes, tally: Tally, measure_gap: Callable[[Floats], float]
    ) -> None:
        self.last_row = -1
        self._domain, self._group = key
        self._sizes, self._tally, self._measure_gap = sizes, tally, measure_gap
        self._gap: float | None = None
        self._waiting: list[TableRows] = []  # for enough rows to know the usual time step
        self._previous: TableRows | None = None  # the last row
        self._run: Run | None = None
        self._label = -1

    def feed(self, rows: TableRows) -> Iterator[Found]:
        """Yield the windows that these rows complete."""
        self.last_row = int(rows.number[-1])
        self._tally.rows += len(rows)
        if rows.time is None or self._gap is not None:
            yield from self._take(rows)
            return
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= CLOCK_ROWS:
            yield from self._take_waiting()

    def finish(self) -> Iterator[Found]:
        """Yield the windows that the end of the recording completes."""
        if self._waiting:
            yield from self._take_waiting()
        yield from self._end_run("at_end")

    def _take_waiting(self) -> Iterator[Found]:
        waiting, self._waiting = self._waiting, []
        self._gap = self._measure_gap(np.concatenate([rows.time for rows in waiting if rows.time is not None]))
        for rows in waiting:
            yield from self._take(rows)

    def _take(self, rows: TableRows) -> Iterator[Found]:
        missing = np.isnan(rows.values).any(axis=1)
        usable = ~missing & (rows.label >= 0)
        self._tally.missing += int(missing.sum())
        self._tally.unlabelled += int((~missing & (rows.label < 0)).sum())
        gaps, changes = self._breaks(rows)
        self._previous = rows.at(slice(len(rows) - 1, None))
        before = np.concatenate([[self._run is not None], usable[:-1]])
        begins = usable & (gaps | changes | ~before)
        # A row that cannot be used ends a run too: because of its label if its values are fine.
        by_label = np.where(usable, changes & ~gaps, ~missing)
        reasons = np.where(by_label, "before_label", "before_gap")
        inner = np.flatnonzero(begins | (~usable & before))
        for stretch in _slices(np.unique(np.concatenate([[0], inner, [len(rows)]])).tolist()):
            first, end = stretch.start, stretch.stop
            if begins[first] or not usable[first]:
                yield from self._end_run(reasons[first])
            # Files with millions of runs shorter than a window exist: such runs are only counted.
            if begins[first] and end < len(rows) and self._sizes.rate is None and end - first < self._sizes.window:
                self._count(end - first, end - first, reasons[end])
            elif usable[first]:
                if self._run is None:
                    self._run, self._label = Run(self._sizes, rows.values.shape[1]), int(rows.label[first])
                time = None if rows.time is None else rows.time[stretch]
                yield from self._found(self._run.feed(rows.values[stretch], rows.number[stretch], time))

    def _end_run(self, reason: str) -> Iterator[Found]:
        run, self._run = self._run, None
        if run is not None:
            if self._sizes.rate is not None:  # else the end completes nothing
                yield from self._found(run.finish())
            self._tally.between += run.between
            self._count(run.left_over, run.samples, reason)

    def _count(self, left_over: int, samples: int, reason: str) -> None:
        setattr(self._tally, reason, getattr(self._tally, reason) + left_over)
        self._tally.longest_run = max(self._tally.longest_run, samples)

    def _found(self, pieces: Pieces) -> Iterator[Found]:
        if len(pieces.X):
            yield Found(self._domain, self._group, self._label, pieces)

    def _breaks(self, rows: TableRows) -> tuple[Flags, Flags]:
        """Mark rows that do not continue the previous one: because of a gap, because of another label."""
        previous = self._previous or rows.at(slice(0, 1))
        changes = np.diff(rows.label, prepend=previous.label) != 0
        if rows.time is None or previous.time is None:
            gaps = np.diff(rows.number, prepend=previous.number) > 1
        else:
            gap = self._gap or 0.0
            ahead = np.diff(rows.time, prepend=previous.time)
            gaps = ~((ahead > 0) & (ahead <= gap))
            self._tally.backwards += int((ahead < 0).sum())
            self._tally.standing += int((ahead == 0).sum()) - (self._previous is None)
            self._tally.gaps += int((ahead > gap).sum())
        if self._previous is None:
            gaps[0] = False
        return gaps, changes


class Run:
    """Cuts an uninterrupted run; keeps only the samples that a later window may need."""

    def __init__(self, sizes: Sizes, n_channels: int) -> None:
        self.sizes = sizes
        self.samples = 0
        self.windows = 0
        self._resampler = Resampler(sizes.rate) if sizes.rate is not None else None
        self._values: Floats = np.empty((0, n_channels))
        self._rows: Ints = np.empty(0, np.int64)
        self._skip = 0

    def feed(self, values: Floats, rows: Ints, time: Floats | None) -> Pieces:
        """Return the windows that these rows complete."""
        if self._resampler is not None and time is not None:
            values, rows = self._resampler.feed(values, rows, time)
        return self._cut(values, rows)

    def finish(self) -> Pieces:
        """Return the windows that the end of the run completes."""
        if self._resampler is None:
            return self._cut(self._values[:0], self._rows[:0])
        return self._cut(*self._resampler.finish())

    @property
    def between(self) -> int:
        """Samples between windows, where the step is longer than the window."""
        return max(0, self.windows - 1) * max(0, self.sizes.step - self.sizes.window)

    @property
    def left_over(self) -> int:
        """Samples after the last window."""
        window, step, _ = self.sizes
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
        starts = np.arange(0, len(values) - window + 1, step)
        every = np.lib.stride_tricks.sliding_window_view(values.astype(np.float32), window, axis=0)
        self.windows += len(starts)
        following = len(starts) * step
        self._skip = max(0, following - len(values))
        self._values, self._rows = values[following:].copy(), rows[following:].copy()
        return Pieces(np.ascontiguousarray(every[starts]), rows[starts], rows[starts + window - 1])


class Resampler:
    """Interpolates one run linearly at its first time + k / rate."""

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


def _by_recording(rows: TableRows) -> list[tuple[tuple[int, int], TableRows]]:
    """Return the rows of each (domain, group), in order of first appearance."""
    none = np.zeros(len(rows), np.int64)
    domain = none if rows.domain is None else rows.domain
    group = none if rows.group is None else rows.group
    codes, _ = pd.factorize(domain * (1 << 32) + group)
    if codes.max() == 0:
        return [((int(domain[0]), int(group[0])), rows)]
    order = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    parts = [order[part] for part in _slices([0, *edges.tolist(), len(order)])]
    return [((int(domain[part[0]]), int(group[part[0]])), rows.at(part)) for part in parts]


def _slices(edges: list[int]) -> list[slice]:
    return [slice(begin, end) for begin, end in pairwise(edges)]


def _check_rate(rate: float, clock: Clock, name: str) -> None:
    """Raise if resampling would invent most samples: usually the rate is not in the clock's unit."""
    per_row = rate * clock.step
    if not (per_row > _MAX_SAMPLES_PER_ROW and clock.step <= clock.gap):
        return
    power = 3 * round(min(math.log10(per_row), 9) / 3)
    advice = "Choose a lower rate, or a gap below that step."
    if power in _UNITS:
        unit = f"The clock seems to be in {_UNITS[power]}: for {rate:g} samples per second the rate is"
        advice = f"{unit} {rate / 10**power:g}. Otherwise choose a lower rate, or a gap below that step."
    raise invalid(
        "rate",
        expected=f"at most {_MAX_SAMPLES_PER_ROW} samples per row",
        got=f"{rate:g}, which makes {per_row:,.0f} samples of a row of {name} (usual time step: {clock.step:g})",
        advice=advice,
    )
