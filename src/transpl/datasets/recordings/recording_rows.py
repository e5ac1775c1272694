"""The rows of a table in memory: recording by recording in order of time, and cut into windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl._utils.wording import counted
from transpl.datasets.recordings.clocks import DAY, Clock, Floats, measure_clock, spread_repeated, units_apart
from transpl.datasets.recordings.cutter import RecordingCutter
from transpl.datasets.recordings.samplers import check_rate
from transpl.datasets.recordings.table_rows import TableRows, Tally
from transpl.datasets.recordings.tables import Text
from transpl.datasets.recordings.window_sizes import Sizes
from transpl.windows import label_breaks

_MOSTLY = 0.5  # of the rows
_TURNS = 4  # per step back in time, if rows that came late are put in their place


class Rows(NamedTuple):
    """Columns of one length, in the file's order; None for a column that is not there."""

    number: NDArray[np.int64]  # row of the file
    values: NDArray[np.float64]  # (rows, channels)
    time: NDArray[np.float64] | None
    label: Text | None
    domain: Text | None
    group: Text | None
    daily: bool = False  # whether the time begins again at midnight


class Recording(NamedTuple):
    """A recording: its rows of the table in order of time, their times, and its clock.

    round : how often the clock of its domain and group began again before
    """

    rows: NDArray[np.int64]
    time: Floats | None
    clock: Clock | None
    round: int = 0


def order_recordings(table: Rows, gap: float | None, known: float | None) -> tuple[list[Recording], tuple[str, ...]]:
    """Sort every recording by time, and say what its clock is like."""
    if table.time is None:
        return [Recording(index, None, None) for index in _groups(table)], ()
    runs: list[Recording] = []
    done: Counter[str] = Counter()
    for index in _groups(table):
        times = np.unwrap(table.time[index], period=DAY) if table.daily else table.time[index]
        rounds = np.split(np.arange(len(index)), _restarts(table, index, times))
        runs += [_sort(table, index[part], times[part], gap, done)._replace(round=n) for n, part in enumerate(rounds)]
        done["restarts"] += len(rounds) - 1
    notes = ["rows sorted by time"] if done["unsorted"] else []
    if done["restarts"]:
        notes.append(f"the clock begins again {counted(done['restarts'], 'time')}, and a recording with it")
    if done["repeated"]:
        notes.append(f"{counted(done['repeated'], 'row')} that repeat another dropped")
    if done["spread"]:
        notes.append(f"{counted(done['spread'], 'row')} spread evenly, because the clock is coarser than they are")
    interval = usual_interval(runs)
    if interval is not None and known is not None:
        power = units_apart(interval, known)
        if power:
            notes.append(f"the clock is taken to count in {1000.0**-power:g} s, as its rate is then the source's")
            runs = [_rescaled(run, 1000.0**-power, gap) for run in runs]
    return runs, tuple(notes)


def _sort(table: Rows, index: NDArray[np.int64], times: Floats, gap: float | None, done: Counter[str]) -> Recording:
    """Sort rows by time, drop those that repeat another, and spread those of a coarse clock; count them in `done`."""
    order = np.argsort(times, kind="stable")
    done["unsorted"] += int((np.diff(order) < 0).sum())
    index, times = index[order], times[order]
    same = _repeats_row(table, index, times)
    if not measure_clock(times[~same]).coarse:  # else they may be rows at rest
        done["repeated"] += int(same.sum())
        index, times = index[~same], times[~same]
    clock = measure_clock(times, gap)
    if clock.coarse and clock.step > 0:
        done["spread"] += len(index)
        times = spread_repeated(times)
        clock = measure_clock(times, gap)
    return Recording(index, times, clock)


def _restarts(table: Rows, index: NDArray[np.int64], time: Floats) -> NDArray[np.int64]:
    """Return where the clock of rows in the file's order begins again.

    Rows that come late fit between the others. Of a clock that begins again, rows of two rounds take turns.
    """
    order = np.argsort(time, kind="stable")
    once = np.sort(order[~_repeats_row(table, index[order], time[order])])
    time = time[once]
    back = np.flatnonzero(np.diff(time) < 0) + 1
    turns = int((np.diff(np.argsort(time, kind="stable")) != 1).sum())
    if turns <= _TURNS * len(back):
        return back[:0]
    return once[back[time[back - 1] - time[back] > measure_clock(time).gap]]


def _repeats_row(table: Rows, index: NDArray[np.int64], times: Floats) -> NDArray[np.bool_]:
    """Mark rows with the time, all values and the label of the row before, as logged twice."""
    same = np.zeros(len(times), np.bool_)
    near = np.flatnonzero(np.diff(times) == 0)
    before, after = index[near], index[near + 1]
    a, b = table.values[before], table.values[after]
    same[near + 1] = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    if table.label is not None:
        same[near + 1] &= table.label[before] == table.label[after]
    return same


def _rescaled(run: Recording, factor: float, gap: float | None) -> Recording:
    assert run.time is not None
    times = run.time * factor
    return run._replace(time=times, clock=measure_clock(times, gap))


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
    """Windows, the rows of the table with their first and last samples, their labels, and what was left out.

    round : of the clock, see `Recording`
    """

    X: NDArray[np.float32]
    first_rows: NDArray[np.int64]
    last_rows: NDArray[np.int64]
    label: Text | None
    round: NDArray[np.int64]
    left_out: int
    tally: Tally


def cut_recordings(
    table: Rows, runs: list[Recording], sizes: Sizes, name: str, channels: Sequence[str], *, at_labels: bool
) -> CutWindows:
    """Cut every recording; `at_labels` also where labels change."""
    tally, left_out = Tally(), 0
    X, first, last, label = [np.empty((0, table.values.shape[1], sizes.window), np.float32)], [], [], []
    rounds = []
    for index, time, clock, which in runs:
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
            rounds.append(np.full(len(begin), which))
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
            advice=_advice(table.values, channels),
        )
    labels = None if table.label is None else np.concatenate(label)
    begins, ends = np.concatenate(first), np.concatenate(last)
    return CutWindows(np.concatenate(X), begins, ends, labels, np.concatenate(rounds), left_out, tally)


def _advice(values: Floats, channels: Sequence[str]) -> str:
    """Say what may help if there is no window."""
    empty = np.isnan(values).mean(axis=0)
    worst = int(empty.argmax())
    if empty[worst] > _MOSTLY:
        name, share = channels[worst], 100 * empty[worst]
        return f"{name!r} is empty in {share:.0f} % of the rows: leave it out (--channels), or bridge them (--gap)."
    return "Choose a shorter window, or check time_col, group_col, gap and the channels."


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
