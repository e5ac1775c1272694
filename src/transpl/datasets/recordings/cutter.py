"""Cutting the rows of a table into windows: the one path for `adapt`, `predict` and `datasets make`.

A recording is a (domain, group) of a file; recordings may take turns in it. Within a recording, a run ends at a change
of label or a gap. Up to three samples on end that are missing are filled in on a straight line, be it that a row is not
there or that a channel has no value in it; more are a gap. With a clock, a gap is also where time goes back, and rows
of uneven times are interpolated at the usual rate; without one, it is also where rows of other recordings lie between.
Every run is cut from its own start. Rows may arrive in pieces of any size: the windows do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl.datasets.recordings.clocks import MAX_BRIDGED, Clock, Floats, Ints, measure_clock
from transpl.datasets.recordings.samplers import check_rate, sampler_of
from transpl.datasets.recordings.table_rows import TableRows, Tally
from transpl.datasets.recordings.window_sizes import Sizes

Flags = NDArray[np.bool_]

CLOCK_ROWS = 1000  # first rows of a recording, from which its usual time step is taken
MAX_PAUSE = 1_000_000  # rows of other recordings after which a recording with a clock ends
_ROW_COUNT = Clock(1.0, MAX_BRIDGED + 1.5)  # where there is no clock, rows are counted
_ELSEWHERE = 1e6  # what rows of others between two rows add to that count


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
                    self._open[key] = RecordingCutter(key, self._sizes, self.tally, self._measure)
                yield from self._open[key].feed(piece)
        for key in [key for key, cutter in self._open.items() if rows.number[-1] - cutter.last_row > max_pause]:
            yield from self._open.pop(key).finish()

    def finish(self) -> Iterator[Found]:
        """Yield the windows that the end of the file completes."""
        for cutter in self._open.values():
            yield from cutter.finish()
        self._open.clear()

    def _measure(self, times: Floats) -> Clock:
        clock = measure_clock(times[:CLOCK_ROWS], self._gap)
        self.clocks.append(clock)
        if self._sizes.rate is not None:
            check_rate(self._sizes.rate, clock, self._name)
        return clock


class RecordingCutter:
    """Cuts one recording.

    measure : returns the clock, given the times of the first CLOCK_ROWS rows or more
    """

    def __init__(self, key: tuple[int, int], sizes: Sizes, tally: Tally, measure: Callable[[Floats], Clock]) -> None:
        self.last_row = -1
        self._domain, self._group = key
        self._sizes, self._tally, self._measure = sizes, tally, measure
        self._clock: Clock | None = None
        self._waiting: list[TableRows] = []  # for enough rows to know the clock
        self._cells = CellFiller(tally)
        self._position = 0.0  # of the last row, if there is no clock
        self._previous: TableRows | None = None  # the last row without a missing value
        self._missing = 0  # rows since then
        self._run: Run | None = None
        self._label = -1

    def feed(self, rows: TableRows) -> Iterator[Found]:
        """Yield the windows that these rows complete."""
        before, self.last_row = self.last_row, int(rows.number[-1])
        self._tally.rows += len(rows)
        if rows.time is None:
            self._clock = _ROW_COUNT
            rows = replace(rows, time=self._count_rows(rows.number, before))
        if self._clock is not None:
            yield from self._take(rows, self._clock)
            return
        self._waiting.append(rows)
        if sum(map(len, self._waiting)) >= CLOCK_ROWS:
            yield from self._take_waiting()

    def finish(self) -> Iterator[Found]:
        """Yield the windows that the end of the recording completes."""
        if self._waiting:
            yield from self._take_waiting()
        if self._clock is not None:
            yield from self._cut(self._cells.finish(), self._clock)
        yield from self._end_run("at_end")

    def _count_rows(self, number: Ints, before: int) -> Floats:
        """Number the rows one by one, with a jump where rows of other recordings lie between."""
        apart = np.where(np.diff(number, prepend=before) == 1, 1.0, _ELSEWHERE)
        positions = self._position + np.cumsum(apart)
        self._position = float(positions[-1])
        return np.asarray(positions)

    def _take_waiting(self) -> Iterator[Found]:
        waiting, self._waiting = self._waiting, []
        clock = self._measure(np.concatenate([rows.time for rows in waiting if rows.time is not None]))
        self._clock = clock
        for rows in waiting:
            yield from self._take(rows, clock)

    def _take(self, rows: TableRows, clock: Clock) -> Iterator[Found]:
        yield from self._cut(self._cells.feed(rows, clock.gap), clock)

    def _cut(self, rows: TableRows | None, clock: Clock) -> Iterator[Found]:
        if rows is None:
            return
        rows, gaps = self._complete_rows(rows, clock)
        if rows.time is None or not len(rows):
            return
        times = rows.time
        previous = self._previous or rows.at(slice(0, 1))
        changes = np.diff(rows.label, prepend=previous.label) != 0
        self._previous = rows.at(slice(len(rows) - 1, None))
        usable = rows.label >= 0
        self._tally.unlabelled += int((~usable).sum())
        before = np.concatenate([[self._run is not None], usable[:-1]])
        begins = usable & (gaps | changes | ~before)
        reasons = np.where(changes & ~gaps, "before_label", "before_gap")  # why a run ends before a row
        inner = np.flatnonzero(begins | (~usable & before))
        for stretch in _slices(np.unique(np.concatenate([[0], inner, [len(rows)]])).tolist()):
            first, end = stretch.start, stretch.stop
            if begins[first] or not usable[first]:
                yield from self._end_run(reasons[first])
            time = times[stretch]
            # Files with millions of runs shorter than a window exist: such runs are only counted.
            if begins[first] and end < len(rows) and (short := self._is_short(time, clock)):
                self._count(short, short, reasons[end])
            elif usable[first]:
                if self._run is None:
                    run = Run(self._sizes, rows.values.shape[1], clock)
                    self._run, self._label = run, int(rows.label[first])
                yield from self._found(self._run.feed(rows.values[stretch], rows.number[stretch], time))

    def _complete_rows(self, rows: TableRows, clock: Clock) -> tuple[TableRows, Flags]:
        """Leave out rows that lack a value or repeat a time; mark those of the others that follow a gap."""
        complete = np.flatnonzero(~np.isnan(rows.values).any(axis=1))
        self._tally.missing += len(rows) - len(complete)
        lacking = np.diff(complete, prepend=-1) - 1
        if len(complete):
            lacking[0] += self._missing
            self._missing = len(rows) - 1 - int(complete[-1])
        else:
            self._missing += len(rows)
        rows = rows.at(complete)
        if not len(rows):
            return rows, np.zeros(0, np.bool_)
        assert rows.time is not None
        previous = self._previous
        begin = rows.time[:1] if previous is None or previous.time is None else previous.time
        ahead = np.diff(rows.time, prepend=begin)
        standing = ahead == 0
        standing[0] &= previous is not None
        gaps = (ahead < 0) | (ahead > clock.gap)
        if clock.coarse:
            gaps |= standing  # which of the rows comes when is not known
        self._tally.standing += int(standing.sum())
        self._tally.backwards += int((ahead < 0).sum())
        self._tally.gaps += int((ahead > clock.gap).sum())
        bridged = ~gaps
        bridged[0] &= previous is not None
        self._tally.bridged += int(lacking[bridged].sum())
        self._tally.uneven += 0 if clock.even else len(rows)
        kept = slice(None) if clock.coarse else ~standing
        return rows.at(kept), gaps[kept]

    def _is_short(self, time: Floats, clock: Clock) -> int:
        """Return the samples of a run if they are fewer than a window, else 0."""
        if self._sizes.rate is not None or not clock.even or not clock.step > 0:
            return 0
        samples = 1 + round(float(time[-1] - time[0]) / clock.step)
        return samples if samples < self._sizes.window else 0

    def _end_run(self, reason: str) -> Iterator[Found]:
        run, self._run = self._run, None
        if run is not None:
            yield from self._found(run.finish())
            self._tally.filled += run.filled
            self._tally.between += run.between
            self._count(run.left_over, run.samples, reason)

    def _count(self, left_over: int, samples: int, reason: str) -> None:
        setattr(self._tally, reason, getattr(self._tally, reason) + left_over)
        self._tally.longest_run = max(self._tally.longest_run, samples)

    def _found(self, pieces: Pieces) -> Iterator[Found]:
        if len(pieces.X):
            yield Found(self._domain, self._group, self._label, pieces)


class CellFiller:
    """Fills in the empty cells of rows, each on a straight line between its neighbours in time, unless these are apart.

    Rows whose empty cells may yet be filled in are kept back.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._kept: TableRows | None = None
        self._time: Floats = np.empty(0)  # by channel, of the last value before the rows that are kept
        self._value: Floats = np.empty(0)

    def feed(self, rows: TableRows, gap: float) -> TableRows | None:
        """Return the rows that are ready; `gap` is the longest time between neighbours."""
        if self._kept is not None:
            rows, self._kept = self._kept.followed_by(rows), None
        assert rows.time is not None
        if not len(self._time):
            self._time = self._value = np.full(rows.values.shape[1], np.nan)
        empty = np.isnan(rows.values)
        ready = len(rows)
        if empty.any():
            values = rows.values.copy()
            for c in np.flatnonzero(empty.any(axis=0)).tolist():
                ready = min(ready, self._fill(values, rows.time, c, gap))
            self._tally.filled += int((empty.any(axis=1) & ~np.isnan(values).any(axis=1)).sum())
            rows = replace(rows, values=values)
        done, self._kept = rows.at(slice(0, ready)), rows.at(slice(ready, None)) if ready < len(rows) else None
        self._remember(done)
        return done if len(done) else None

    def finish(self) -> TableRows | None:
        """Return the rows that were kept back."""
        kept, self._kept = self._kept, None
        return kept

    def _fill(self, values: Floats, time: Floats, c: int, gap: float) -> int:
        """Fill in a channel; return the number of rows, from the first on, that later rows cannot change."""
        known = np.flatnonzero(~np.isnan(values[:, c]))
        empty = np.flatnonzero(np.isnan(values[:, c]))
        at = np.concatenate([self._time[c : c + 1], time[known]])
        value = np.concatenate([self._value[c : c + 1], values[known, c]])
        after = np.searchsorted(known, empty) + 1
        inner = after < len(at)
        after, rows = after[inner], empty[inner]
        apart = at[after] - at[after - 1]
        near = (apart > 0) & (apart <= gap)
        after, rows, apart = after[near], rows[near], apart[near]
        share = (time[rows] - at[after - 1]) / apart
        values[rows, c] = value[after - 1] + share * (value[after] - value[after - 1])
        first = int(known[-1]) + 1 if len(known) else 0  # of the empty cells at the end
        return first if 0 <= time[-1] - at[-1] <= gap else len(time)

    def _remember(self, rows: TableRows) -> None:
        if not len(rows):
            return
        assert rows.time is not None
        known = ~np.isnan(rows.values)
        last = len(rows) - 1 - known[::-1].argmax(axis=0)
        has = known.any(axis=0)
        self._time = np.asarray(np.where(has, rows.time[last], self._time))
        self._value = np.asarray(np.where(has, rows.values[last, np.arange(len(last))], self._value))


class Run:
    """Cuts an uninterrupted run; keeps only the samples that a later window may need."""

    def __init__(self, sizes: Sizes, n_channels: int, clock: Clock) -> None:
        self.sizes = sizes
        self.samples = 0
        self.windows = 0
        self._sampler = sampler_of(clock, sizes.rate)
        self._values: Floats = np.empty((0, n_channels))
        self._rows: Ints = np.empty(0, np.int64)
        self._skip = 0

    def feed(self, values: Floats, rows: Ints, time: Floats) -> Pieces:
        """Return the windows that these rows complete."""
        return self._cut(*self._sampler.feed(values, rows, time))

    def finish(self) -> Pieces:
        """Return the windows that the end of the run completes."""
        return self._cut(*self._sampler.finish())

    @property
    def filled(self) -> int:
        """Samples that stand for missing rows."""
        return self._sampler.filled

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
