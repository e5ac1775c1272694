"""A user's file into windows in memory: a table (csv, parquet), or an npz with windows that are already cut.

A table has one row per time step and one column per channel; other columns may name the domain (who, which device), the
group (which recording), the label and the time. An npz has `X` (n, channels, time) and may have `y`, `domain`, `group`,
`class_names` and `channel_names`; prepared data sets are of this kind.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import check_int, check_positive, invalid, unreadable_file
from transpl._utils.files import require_regular
from transpl.datasets.recordings.cutter import RecordingCutter, Sizes, TableRows, Tally, measure_clock
from transpl.datasets.recordings.signals import SignalReader, choose_channels, clock_warnings
from transpl.datasets.recordings.tables import (
    CSV,
    PARQUET,
    Text,
    as_text,
    has_suffix,
    read_table,
    refuse_huge,
    require_columns,
    require_filled,
    seconds_column,
)
from transpl.datasets.recordings.window_archive import read_windows
from transpl.windows import label_breaks, name_channels

__all__ = ["Recordings", "read_recordings", "read_table"]

_WINDOW = 128  # samples
_SAME_RATE = 1.1  # sampling rates that differ by a smaller factor count as equal
_NEXT_UNIT = 1000  # milliseconds in a second


@dataclass(frozen=True, eq=False)
class Recordings:
    """Windows from a user's file.

    Attributes
    ----------
    X : (n, channels, time) float32 array
    y : (n,) text, or None
        "" for a window without label; None if no window has one.
    domain, group : (n,) text, or None
        None if the file does not name them.
    start : (n,) int array, or None
        The row of the file, from 0 after the header, with a window's first sample; None for an npz.
    channel_names : tuple of str
    description : str
        What was read and what was left out.
    interval : float, optional
        Usual time from one row to the next, in the unit of the time column.
    warnings : tuple of str
        What looks like a mistake.
    named : bool
        Whether the file names its channels; an npz may not.
    """

    X: NDArray[np.float32]
    y: Text | None
    domain: Text | None
    group: Text | None
    start: NDArray[np.int64] | None
    channel_names: tuple[str, ...]
    description: str
    interval: float | None = None
    warnings: tuple[str, ...] = ()
    named: bool = True

    def __len__(self) -> int:
        return len(self.X)


def read_recordings(
    path: str | os.PathLike[str],
    *,
    domain: object = None,
    domain_col: str | None = None,
    label_col: str | None = None,
    time_col: str | None = None,
    group_col: str | None = None,
    channels: Sequence[str] | None = None,
    window: int | None = None,
    step: int | None = None,
    interval: float | None = None,
    labels_only_score: bool = False,
    optional: Collection[str] = (),
) -> Recordings:
    """Read a file of recordings and cut it into windows.

    No window spans a change of domain or group, a missing value, or a gap. With `time_col`, the rows of each
    (domain, group) are sorted by time, and a gap is where time stands still or jumps. Without it, rows are taken in the
    file's order, and a gap is where rows of others lie between.

    Windows of an npz are already cut: `step`, `time_col` and `interval` do not apply, and a length other than `window`
    is a warning. The other columns name keys (default: "domain", "y", "group"). Integers in `y` are looked up in
    `class_names` if the file has them. A file without channel names must have as many channels as `channels`.

    Parameters
    ----------
    path : path of a csv, parquet or npz file
    domain : optional
        Keep only rows whose `domain_col` has this value, compared as text.
    domain_col, label_col, time_col, group_col : str, optional
        Columns that are not channels.
    channels : sequence of str, optional
        Columns to use; by default every other column of numbers. Cells that are not numbers are missing values; a
        column with more than 5 % of them is not numeric.
    window, step : int, optional
        In samples; by default 128, and half a window.
    interval : float, optional
        Usual time from one row to the next in the data that a model was trained on; another one is a warning.
    labels_only_score : bool
        For a target: labels may be absent, and have no influence on the windows. A window has a label if all its
        samples share one. Otherwise windows are also cut where the label changes.
    optional : collection of {"domain_col", "group_col", "time_col"}
        Columns that the file may lack; an empty column counts as absent.

    Returns
    -------
    Recordings
    """
    path = Path(path)
    columns = _Columns(domain_col, group_col, label_col, time_col)
    wanted = [channels] if isinstance(channels, str) else channels
    if has_suffix(path, (".npz",)):
        return _from_npz(path, domain, columns, wanted, window, labels_only_score, optional)
    if not has_suffix(path, CSV + PARQUET):
        if not path.is_dir():
            require_regular(path)  # of a pipe or /dev/stdin, the ending is not the problem
        expected = f"a file ending in {', '.join((*CSV, *PARQUET, '.npz'))}"
        got = f"the folder {str(path)!r}" if path.is_dir() else path.name
        raise invalid("path", expected=expected, got=got, advice="Convert the file or rename it.")
    window = _WINDOW if window is None else window
    check_int("window", window, least=1)
    step = max(1, window // 2) if step is None else step
    check_int("step", step, least=1)
    if interval is not None:
        check_positive("interval", interval)
    return _from_table(path, domain, columns, wanted, Sizes(window, step), interval, labels_only_score, optional)


class _Columns(NamedTuple):
    domain_col: str | None
    group_col: str | None
    label_col: str | None
    time_col: str | None


def _from_table(
    path: Path,
    domain: object,
    columns: _Columns,
    channels: Sequence[str] | None,
    sizes: Sizes,
    known_interval: float | None,
    labels_only_score: bool,
    optional: Collection[str],
) -> Recordings:
    frame = read_table(path, text=[c for c in (columns.domain_col, columns.group_col, columns.label_col) if c])
    columns, warnings = _without_absent(columns, frame, optional)
    if labels_only_score and columns.label_col not in frame.columns:
        columns = columns._replace(label_col=None)
    require_columns(frame, path, **columns._asdict())
    if columns.time_col is not None and columns.time_col in columns[:-1]:
        advice = "Name another column, or leave it out."
        raise invalid("time_col", expected="a column with no other role", got=repr(columns.time_col), advice=advice)
    if frame.empty:
        raise unreadable_file(path, problem="no rows", advice="Write one row per time step.")
    names, unused = choose_channels(frame, path, [column for column in columns if column], channels)
    signals = SignalReader(path, names)
    values = signals.read(frame)
    warnings += signals.warnings()
    table = _select_domain(frame, values, path, domain, columns)
    refuse_huge(table.values, names, frame.index[table.number], path)
    if channels is None and columns.time_col is None:
        warnings = clock_warnings(table.values, names) + warnings
    interval = None
    if table.time is not None:
        step = measure_clock(table.time).step
        interval = None if math.isnan(step) else step
        warnings += rate_warnings(interval, known_interval)
    X, first, label, tally, n_groups = _cut(table, sizes, path.name, at_labels=not labels_only_score)
    y = _labels(label)
    left_out = f"; {_count(tally.left_out, 'row')} in gaps or tails left out" if tally.left_out else ""
    return Recordings(
        X=X,
        y=y,
        domain=None if table.domain is None else table.domain[first],
        group=None if table.group is None else table.group[first],
        start=table.number[first],
        channel_names=names,
        description=(
            f"{_title(path, domain)}: {_count(len(table.number), 'row')}, {_list_channels(names)}, "
            f"{_count(n_groups, 'group')} -> {_count(len(X), 'window')} of {sizes.window}, step {sizes.step}"
            f"{left_out}{_unlabelled_note(y)}{_unused_note('columns', unused)}"
        ),
        interval=interval,
        warnings=tuple(f"{path.name}: {line}" for line in warnings),
    )


def _without_absent(columns: _Columns, frame: pd.DataFrame, optional: Collection[str]) -> tuple[_Columns, list[str]]:
    """Drop optional columns that the table does not have or that are empty, with a line on each."""
    lines = []
    for argument in optional:
        column = getattr(columns, argument)
        if column is not None and (column not in frame.columns or (as_text(frame[column]) == "").all()):
            problem = "is empty" if column in frame.columns else "is not there"
            instead = "in the file's order" if argument == "time_col" else "as of one"
            lines.append(f"{column!r} ({argument}) {problem}, so all rows are taken {instead}.")
            columns = columns._replace(**{argument: None})
    return columns, lines


class _Table(NamedTuple):
    """Columns of one length, in the file's order; None for a column that is not there."""

    number: NDArray[np.int64]  # row of the file
    values: NDArray[np.float64]  # (rows, channels)
    time: NDArray[np.float64] | None
    label: Text | None
    domain: Text | None
    group: Text | None


def _select_domain(
    frame: pd.DataFrame, values: NDArray[np.float64], path: Path, domain: object, columns: _Columns
) -> _Table:
    number = np.arange(len(frame), dtype=np.int64)
    if domain is not None:
        if columns.domain_col is None:
            advice = "Name the column that says whose a row is."
            raise invalid("domain_col", expected=f"the column to find domain {domain!r} in", got=None, advice=advice)
        number = _select(as_text(frame[columns.domain_col]), domain, f"{columns.domain_col!r} of {path.name}")
        frame = frame.iloc[number]
    return _Table(
        number=number,
        values=values[number],
        time=seconds_column(frame, columns.time_col, path) if columns.time_col else None,
        label=as_text(frame[columns.label_col]) if columns.label_col else None,
        domain=_filled(frame, columns.domain_col, path) if columns.domain_col else None,
        group=_filled(frame, columns.group_col, path) if columns.group_col else None,
    )


def _cut(
    table: _Table, sizes: Sizes, name: str, *, at_labels: bool
) -> tuple[NDArray[np.float32], NDArray[np.int64], Text | None, Tally, int]:
    """Cut every (domain, group), sorted by time if there is one; `at_labels` also where labels change.

    Returns the windows, the index into the table of their first samples, their labels, what was left out, and the
    number of groups.
    """
    tally, groups = Tally(), _groups(table)
    X, first, label = [np.empty((0, table.values.shape[1], sizes.window), np.float32)], [], []
    for index in groups:
        number, time = table.number[index], None
        if table.time is not None:
            index = index[np.argsort(table.time[index], kind="stable")]
            number, time = np.arange(len(index)), table.time[index]
        changes = np.zeros(len(index), np.int64)
        if table.label is not None:
            changes = np.cumsum(label_breaks(table.label[index]))
        rows = TableRows(number, table.values[index], time, changes if at_labels else np.zeros_like(changes))
        cutter = RecordingCutter((0, 0), sizes, tally, lambda times: measure_clock(times).gap)
        for found in chain(cutter.feed(rows), cutter.finish()):
            X.append(found.pieces.X)
            begin, end = (np.searchsorted(number, each) for each in (found.pieces.first, found.pieces.last))
            first.append(index[begin])
            if table.label is not None:
                label.append(np.where(changes[begin] == changes[end], table.label[index[begin]], ""))
    if not first:
        raise invalid(
            name,
            expected=f"at least {sizes.window} rows on end (the window) without gap, missing value or change of label",
            got=f"at most {tally.longest_run}",
            advice="Choose a shorter window, or check time_col, group_col and the channels.",
        )
    labels = None if table.label is None else np.concatenate(label)
    return np.concatenate(X), np.concatenate(first), labels, tally, len(groups)


def _groups(table: _Table) -> list[NDArray[np.int64]]:
    """Return the rows of each (domain, group), in order of first appearance."""
    keys = [key for key in (table.domain, table.group) if key is not None]
    if not keys:
        return [np.arange(len(table.number))]
    frame: pd.DataFrame = pd.DataFrame(dict(enumerate(keys)))
    groups: Any = frame.groupby(list(frame.columns), sort=False).indices
    return sorted(groups.values(), key=lambda index: int(index[0]))


def _filled(frame: pd.DataFrame, column: str, path: Path) -> Text:
    """Return a column as text that must have an entry in every row."""
    text = as_text(frame[column])
    require_filled(text == "", column, frame.index, path)
    return text


def _from_npz(
    path: Path,
    domain: object,
    columns: _Columns,
    channels: Sequence[str] | None,
    window: int | None,
    labels_only_score: bool,
    optional: Collection[str],
) -> Recordings:
    optional = {*optional, "label_col"} if labels_only_score else optional
    found = read_windows(path, columns.label_col, columns.domain_col, columns.group_col, channels, optional=optional)
    length = found.X.shape[2]
    warnings = []
    by_number = name_channels(None, len(found.channel_names) + len(found.unused))
    if not found.named and not set(found.channel_names) <= set(by_number):
        warnings.append(f"it names no channels; they are taken to be {_shorten(found.channel_names)}, in this order.")
    if window is not None and window != length:
        warnings.append(
            f"its windows have {length} samples and not {window}; they are already cut, and taken as they are."
        )
    rows = np.arange(len(found.X))
    if domain is not None:
        if found.domain is None:
            raise unreadable_file(path, problem=f"no domain in it to find {domain!r}", advice="Save the ids as domain.")
        rows = _select(found.domain, domain, f"domain of {path.name}")
    y = _labels(None if found.label is None else found.label[rows])
    return Recordings(
        X=found.X[rows],
        y=y,
        domain=None if found.domain is None else found.domain[rows],
        group=None if found.group is None else found.group[rows],
        start=None,
        channel_names=found.channel_names,
        description=(
            f"{_title(path, domain)}: {_count(len(rows), 'window')} of {length}, already cut, "
            f"{_list_channels(found.channel_names)}{_unlabelled_note(y)}{_unused_note('channels', found.unused)}"
        ),
        warnings=tuple(f"{path.name}: {line}" for line in warnings),
        named=found.named,
    )


def rate_warnings(interval: float | None, known: float | None) -> list[str]:
    """Return a line if rows are not as far apart as in training; a factor of 1000^k may be another unit of time."""
    if interval is None or known is None:
        return []
    apart = math.log(interval / known, _NEXT_UNIT)
    factor = _NEXT_UNIT ** (apart - round(apart))
    if abs(math.log(factor)) <= math.log(_SAME_RATE):
        return []
    return [
        f"its rows are {factor:.3g} times as far apart in time as the source's ({interval:g} against {known:g}), "
        "so that the same motion looks faster or slower. Resample one of them."
    ]


def _select(whose: Text, domain: object, where: str) -> NDArray[np.int64]:
    """Return the rows whose domain is `domain`."""
    rows: NDArray[np.int64] = np.flatnonzero((whose == as_text([domain])[0]) & (whose != ""))
    if len(rows) == 0:
        present = _shorten([repr(str(value)) for value in np.unique(whose) if value != ""])
        raise invalid(
            "domain", expected=f"a value of {where} ({present})", got=repr(domain), advice="Choose one of them."
        )
    return rows


def _labels(y: Text | None) -> Text | None:
    """Return None instead of labels that are all missing."""
    return None if y is None or (y == "").all() else y


def _title(path: Path, domain: object) -> str:
    return path.name if domain is None else f"{path.name}, domain {domain}"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _list_channels(names: tuple[str, ...]) -> str:
    return f"{_count(len(names), 'channel')} ({_shorten(names)})"


def _shorten(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _unused_note(what: str, names: Sequence[str]) -> str:
    return f"; {what} not used: {_shorten(names)}" if names else ""


def _unlabelled_note(y: Text | None) -> str:
    missing = 0 if y is None else int((y == "").sum())
    return f"; {_count(missing, 'window')} without label" if missing else ""
