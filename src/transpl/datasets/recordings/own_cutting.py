"""The rows of one file, as they stream by, into windows of its recordings.

A recording is a (domain, group) of the file; recordings may take turns in it. A run of a recording ends at a missing
value, a change of label or a gap. With a clock a gap is where time stands still, goes back or jumps, or where the
recording rests for more than a million rows of the file; without one it is where rows of others lie between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl.datasets.recordings.own_clock import Clock, look_at, refuse_rate
from transpl.datasets.recordings.own_rows import Steps
from transpl.datasets.recordings.own_runs import Floats, Pieces, Run, Sizes

Flags = NDArray[np.bool_]
LOOK = 1000  # rows of a recording from which its usual time step is taken
REACH = 1_000_000  # rows of others after which a recording with a clock is given up


class Found(NamedTuple):
    """Windows of one recording that share a label."""

    domain: int
    group: int
    label: int
    pieces: Pieces


@dataclass
class Tally:
    """Where rows went that are in no window; samples instead of rows where runs are resampled."""

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

    def add(self, other: Tally) -> None:
        """Add the numbers of another tally."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class FileCutter:
    """Shares the rows of a file out among its recordings."""

    def __init__(self, name: str, sizes: Sizes, gap: float | None) -> None:
        self.tally = Tally()
        self.clocks: list[Clock] = []
        self._name, self._sizes, self._gap = name, sizes, gap
        self._open: dict[tuple[int, int], Recording] = {}

    def feed(self, steps: Steps) -> Iterator[Found]:
        """Yield the windows that these rows complete."""
        self.tally.rows += len(steps)
        reach = 0 if steps.time is None else REACH
        for key, rows in _by_recording(steps):
            for part in _split_at_rests(rows, reach):
                if key in self._open and part.number[0] - self._open[key].last_row > reach + 1:
                    yield from self._open.pop(key).finish()
                recording = self._open.setdefault(key, Recording(key, self._sizes, self._settle, self.tally))
                yield from recording.feed(part)
        for key in [k for k, r in self._open.items() if steps.number[-1] - r.last_row > reach]:
            yield from self._open.pop(key).finish()

    def finish(self) -> Iterator[Found]:
        """Yield what the end of the file completes."""
        for recording in self._open.values():
            yield from recording.finish()
        self._open.clear()

    def _settle(self, times: Floats) -> float:
        """Return the longest step that is no gap, for a recording that begins with these times."""
        clock = look_at(times, self._gap)
        self.clocks.append(clock)
        if self._sizes.rate is not None:
            refuse_rate(self._sizes.rate, clock, self._name)
        return clock.gap


class Recording:
    """One recording as its rows come in."""

    def __init__(self, key: tuple[int, int], sizes: Sizes, settle: Callable[[Floats], float], tally: Tally) -> None:
        self.last_row = -1
        self._domain, self._group = key
        self._sizes, self._tally = sizes, tally
        self._settle = settle
        self._gap: float | None = None
        self._waiting: list[Steps] = []  # until there are enough rows to know the usual time step
        self._last: Steps | None = None  # the row before
        self._run: Run | None = None
        self._label = -1

    def feed(self, steps: Steps) -> Iterator[Found]:
        """Yield the windows that these rows complete."""
        self.last_row = int(steps.number[-1])
        if steps.time is None or self._gap is not None:
            yield from self._take(steps)
            return
        self._waiting.append(steps)
        if sum(map(len, self._waiting)) >= LOOK:
            yield from self._settle_gap()

    def finish(self) -> Iterator[Found]:
        """Yield what the end of the recording completes."""
        if self._waiting:
            yield from self._settle_gap()
        yield from self._end_run("at_end")

    def _settle_gap(self) -> Iterator[Found]:
        """Settle by the first times what a gap is, and take the rows that waited for it."""
        waiting, self._waiting = self._waiting, []
        times = np.concatenate([steps.time for steps in waiting if steps.time is not None])[:LOOK]
        self._gap = self._settle(times)
        for steps in waiting:
            yield from self._take(steps)

    def _take(self, steps: Steps) -> Iterator[Found]:
        missing = np.isnan(steps.values).any(axis=1)
        usable = ~missing & (steps.label >= 0)
        self._tally.missing += int(missing.sum())
        self._tally.unlabelled += int((~missing & (steps.label < 0)).sum())
        gaps, changes = self._breaks(steps)
        self._last = steps.at(slice(len(steps) - 1, None))
        before = np.concatenate([[self._run is not None], usable[:-1]])
        begins = usable & (gaps | changes | ~before)
        # A row that cannot be used ends a run too: by its label, if that is what is wrong with it.
        by_label = np.where(usable, changes & ~gaps, ~missing)
        inner = np.flatnonzero(begins | (~usable & before))
        for stretch in _slices(np.unique(np.concatenate([[0], inner, [len(steps)]])).tolist()):
            first, end = stretch.start, stretch.stop
            if begins[first] or not usable[first]:
                yield from self._end_run(_why(by_label[first]))
            # Files with millions of runs shorter than a window exist: these are counted and no more.
            if begins[first] and end < len(steps) and self._sizes.rate is None and end - first < self._sizes.window:
                self._count(end - first, _why(by_label[end]))
            elif usable[first]:
                yield from self._go_on(steps.at(stretch))

    def _go_on(self, steps: Steps) -> Iterator[Found]:
        if self._run is None:
            self._run, self._label = Run(self._sizes, steps.values.shape[1]), int(steps.label[0])
        yield from self._found(self._run.feed(steps.values, steps.number, steps.time))

    def _end_run(self, why: str) -> Iterator[Found]:
        run, self._run = self._run, None
        if run is not None:
            yield from self._found(run.finish())
            self._tally.between += run.between
            self._count(run.left_over, why)

    def _count(self, n: int, why: str) -> None:
        setattr(self._tally, why, getattr(self._tally, why) + n)

    def _found(self, pieces: Pieces) -> Iterator[Found]:
        if len(pieces.X):
            yield Found(self._domain, self._group, self._label, pieces)

    def _breaks(self, steps: Steps) -> tuple[Flags, Flags]:
        """Mark rows that do not continue the one before: for a gap, for another label."""
        last = self._last if self._last is not None else steps.at(slice(0, 1))
        changes = np.diff(steps.label, prepend=last.label) != 0
        if steps.time is None or last.time is None:
            gaps = np.diff(steps.number, prepend=last.number) > 1
        else:
            ahead = np.diff(steps.time, prepend=last.time)
            gaps = ~((ahead > 0) & (ahead <= (self._gap or 0.0)))
            self._tally.backwards += int((ahead < 0).sum())
            self._tally.standing += int((ahead == 0).sum()) - (self._last is None)
            self._tally.gaps += int((ahead > (self._gap or 0.0)).sum())
        if self._last is None:
            gaps[0] = False
        return gaps, changes


def _why(by_label: np.bool_) -> str:
    return "before_label" if by_label else "before_gap"


def _by_recording(steps: Steps) -> list[tuple[tuple[int, int], Steps]]:
    """Return the rows of each (domain, group), in order of first appearance."""
    none = np.zeros(len(steps), np.int64)
    domain = none if steps.domain is None else steps.domain
    group = none if steps.group is None else steps.group
    codes, _ = pd.factorize(domain * (1 << 32) + group)
    if codes.max() == 0:
        return [((int(domain[0]), int(group[0])), steps)]
    order = np.argsort(codes, kind="stable")
    edges = np.flatnonzero(np.diff(codes[order])) + 1
    parts = [order[rows] for rows in _slices([0, *edges.tolist(), len(order)])]
    return [((int(domain[rows[0]]), int(group[rows[0]])), steps.at(rows)) for rows in parts]


def _split_at_rests(steps: Steps, reach: int) -> list[Steps]:
    edges = np.flatnonzero(np.diff(steps.number) > reach + 1) + 1
    return [steps.at(rows) for rows in _slices([0, *edges.tolist(), len(steps)])]


def _slices(edges: list[int]) -> list[slice]:
    return [slice(b, e) for b, e in pairwise(edges)]
