"""The rows of a table in memory: recording by recording in order of time, and cut into windows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl.datasets.recordings.clocks import Clock, Floats, measure_clock, spread_repeated, units_apart
from transpl.datasets.recordings.cutter import RecordingCutter, Sizes, TableRows, Tally, check_rate
from transpl.datasets.recordings.remarks import count
from transpl.datasets.recordings.tables import Text
from transpl.windows import label_breaks


class Rows(NamedTuple):
    """Columns of one length, in the file's order; None for a column that is not there."""

    number: NDArray[np.int64]  # row of the file
    values: NDArray[np.float64]  # (rows, channels)
    time: NDArray[np.float64] | None
    label: Text | None
    domain: Text | None
    group: Text | None


class Recording(NamedTuple):
    """A recording: its rows of the table in order of time, their times, and its clock."""

    rows: NDArray[np.int64]
    time: Floats | None
    clock: Clock | None


def order_recordings(table: Rows, gap: float | None, known: float | None) -> tuple[list[Recording], tuple[str, ...]]:
    """Sort every recording by time, and say what its clock is like."""
    if table.time is None:
        return [Recording(index, None, None) for index in _groups(table)], ()
    runs, unsorted, spread, repeated = [], 0, 0, 0
    for index in _groups(table):
        order = np.argsort(table.time[index], kind="stable")
        unsorted += int((np.diff(index[order]) < 0).sum())
        index = index[order]
        same = _repeats_row(table, index)
        repeated += int(same.sum())
        index = index[~same]
        times = table.time[index]
        clock = measure_clock(times, gap)
        if clock.coarse and clock.step > 0:
            spread += len(index)
            times = spread_repeated(times)
            clock = measure_clock(times, gap)
        runs.append(Recording(index, times, clock))
    notes = ["rows sorted by time"] if unsorted else []
    notes += [f"{count(repeated, 'row')} that repeat another dropped"] if repeated else []
    notes += [f"{count(spread, 'row')} spread evenly, because the clock is coarser than they are"] if spread else []
    interval = usual_interval(runs)
    if interval is not None and known is not None:
        power = units_apart(interval, known)
        if power:
            notes.append(f"the clock is taken to count in {1000.0**-power:g} s, as its rate is then the source's")
            runs = [_rescaled(run, 1000.0**-power, gap) for run in runs]
    return runs, tuple(notes)


def _repeats_row(table: Rows, index: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark rows with the time and all values of the row before, as logged twice."""
    assert table.time is not None
    same = np.zeros(len(index), np.bool_)
    near = np.flatnonzero(np.diff(table.time[index]) == 0)
    a, b = table.values[index[near]], table.values[index[near + 1]]
    same[near + 1] = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return same


def _rescaled(run: Recording, factor: float, gap: float | None) -> Recording:
    assert run.time is not None
    times = run.time * factor
    return Recording(run.rows, times, measure_clock(times, gap))


def usual_interval(runs: list[Recording]) -> float | None:
    """Return the usual step of the recordings, weighed by their rows."""
    steps = np.array([run.clock.step for run in runs if run.clock is not None and run.clock.step > 0])
    if not len(steps):
        return None
    rows = np.array([len(run.rows) for run in runs if run.clock is not None and run.clock.step > 0])
    order = np.argsort(steps, kind="stable")
    half = np.searchsorted(np.cumsum(rows[order]), rows.sum() / 2)
    return float(steps[order][half])


class CutWindows(NamedTuple):
    """Windows, the rows of the table with their first and last samples, their labels, and what was left out."""

    X: NDArray[np.float32]
    first_rows: NDArray[np.int64]
    last_rows: NDArray[np.int64]
    label: Text | None
    left_out: int
    tally: Tally


def cut_recordings(table: Rows, runs: list[Recording], sizes: Sizes, name: str, *, at_labels: bool) -> CutWindows:
    """Cut every recording; `at_labels` also where labels change."""
    tally, left_out = Tally(), 0
    X, first, last, label = [np.empty((0, table.values.shape[1], sizes.window), np.float32)], [], [], []
    for index, time, clock in runs:
        number: NDArray[np.int64] = table.number[index] if time is None else np.arange(len(index), dtype=np.int64)
        changes = np.zeros(len(index), np.int64)
        if table.label is not None:
            changes = np.cumsum(label_breaks(table.label[index]))
        if clock is not None and sizes.rate is not None:
            check_rate(sizes.rate, clock, name)
        rows = TableRows(number, table.values[index], time, changes if at_labels else np.zeros_like(changes))
        cutter = RecordingCutter((0, 0), sizes, tally, _known(clock))
        covered = np.zeros(len(index) + 1, np.int64)
        for found in chain(cutter.feed(rows), cutter.finish()):
            X.append(found.pieces.X)
            begin, end = (np.searchsorted(number, each) for each in (found.pieces.first, found.pieces.last))
            np.add.at(covered, begin, 1)
            np.add.at(covered, end + 1, -1)
            first.append(index[begin])
            last.append(index[end])
            if table.label is not None:
                label.append(np.where(changes[begin] == changes[end], table.label[index[begin]], ""))
        left_out += int((np.cumsum(covered[:-1]) == 0).sum())
    if not first:
        raise invalid(
            name,
            expected=f"at least {sizes.window} samples on end (the window) without gap or change of label",
            got=f"at most {tally.longest_run}",
            advice="Choose a shorter window, or check time_col, group_col, gap and the channels.",
        )
    labels = None if table.label is None else np.concatenate(label)
    return CutWindows(np.concatenate(X), np.concatenate(first), np.concatenate(last), labels, left_out, tally)


def _known(clock: Clock | None) -> Callable[[Floats], Clock]:
    return lambda times: clock or measure_clock(times)


def _groups(table: Rows) -> list[NDArray[np.int64]]:
    """Return the rows of each (domain, group), in order of first appearance."""
    keys = [key for key in (table.domain, table.group) if key is not None]
    if not keys:
        return [np.arange(len(table.number))]
    frame: pd.DataFrame = pd.DataFrame(dict(enumerate(keys)))
    groups: Any = frame.groupby(list(frame.columns), sort=False).indices
    return sorted(groups.values(), key=lambda index: int(index[0]))
