"""Users' own files into windows: long tables (csv, parquet), or npz with windows already cut.

A table has one row per time step and one column per channel; other columns may name the domain (who, which
device), the group (which recording), the label and the time. An npz has `X` (n, channels, time) and may have `y`,
`domain`, `group`, `class_names` and `channel_names`; the prepared layout of the data sets is one of this kind.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import check_int, check_positive, invalid, unreadable_file
from transpl.datasets.recordings.cutting import Rows, Text, cut_rows
from transpl.datasets.recordings.doubts import other_length, other_rate, suspected_times
from transpl.datasets.recordings.signals import Signals, read_signals
from transpl.datasets.recordings.tables import (
    CSV,
    PARQUET,
    as_text,
    has_suffix,
    read_table,
    refuse_huge,
    require_columns,
    require_filled,
    seconds_column,
)
from transpl.datasets.recordings.window_archive import WindowArchive, read_windows
from transpl.windows import name_channels

__all__ = ["Recordings", "read_recordings", "read_table"]
_WINDOW = 128  # samples


@dataclass(frozen=True, eq=False)
class Recordings:
    """Windows from a user's file.

    X : (n, channels, time) float32
    y : (n,) labels as text, "" for a window without label; None if no window has one
    domain, group : (n,) text, or None if the file does not say
    start : (n,) the row of the file, from 0 after the header, that holds a window's first sample; None for npz
    interval : usual time from one row to the next, in the unit of the time column; None without one
    description : one sentence on what was read and what was left out
    doubts : what looks as if it were not meant
    named : whether the file names its channels; a table does, an npz may not
    """

    X: NDArray[np.float32]
    y: Text | None
    domain: Text | None
    group: Text | None
    start: NDArray[np.int64] | None
    channel_names: tuple[str, ...]
    description: str
    interval: float | None = None
    doubts: tuple[str, ...] = ()
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
    """Read a file of recordings and cut it into windows of `window` samples (128), one every `step` (default: half).

    domain : keep only the rows whose `domain_col` is this, compared as text
    channels : columns to use (default: every column of numbers not named by another argument). Cells that are no
        numbers are missing values; a column with more than 5 % of them is not one of numbers
    interval : usual time from one row to the next where the model comes from; another one here is a doubt
    labels_only_score : for a target. Labels may be absent, and where they are they do not touch the windows: a window
        has a label if all its samples share one. Otherwise windows are also cut where the label changes
    optional : of "domain_col", "group_col" and "time_col", those whose column a file need not have; an empty one
        counts as none

    No window spans a change of domain or group, a missing value, or a gap. With `time_col` the rows of each
    (domain, group) are sorted by time, and a gap is where time stands still or jumps; without it they are taken
    in the file's order, and a gap is where rows of others lie between.

    For npz the windows are as they are, and another length than `window`, if that is given, is a doubt; `step`,
    `time_col` and `interval` do not apply. The other columns name keys (default: "domain", "y", "group"). Integers in
    `y` are looked up in `class_names` if the file has them. Channels are found by their names; those of a file without
    names are taken for `channels` if they are as many.
    """
    path = Path(path)
    columns = _Columns(domain_col, group_col, label_col, time_col)
    wanted = [channels] if isinstance(channels, str) else channels
    if has_suffix(path, (".npz",)):
        return _from_npz(path, domain, columns, wanted, window, labels_only_score, optional)
    if not has_suffix(path, CSV + PARQUET):
        expected = f"a file ending in {', '.join((*CSV, *PARQUET, '.npz'))}"
        got = f"the folder {str(path)!r}" if path.is_dir() else path.name
        raise invalid("path", expected=expected, got=got, advice="Convert the file or rename it.")
    window = _WINDOW if window is None else window
    check_int("window", window, least=1)
    step = max(1, window // 2) if step is None else step
    check_int("step", step, least=1)
    if interval is not None:
        check_positive("interval", interval)
    return _from_table(path, domain, columns, wanted, window, step, interval, labels_only_score, optional)


class _Columns(NamedTuple):
    """The columns of a table that are not channels, None where there is none."""

    domain_col: str | None
    group_col: str | None
    label_col: str | None
    time_col: str | None


def _from_table(
    path: Path,
    domain: object,
    columns: _Columns,
    channels: Sequence[str] | None,
    window: int,
    step: int,
    known_interval: float | None,
    labels_only_score: bool,
    optional: Collection[str],
) -> Recordings:
    frame = read_table(path, text=[c for c in (columns.domain_col, columns.group_col, columns.label_col) if c])
    columns, lacking = _without_absent(columns, frame, optional)
    if labels_only_score and columns.label_col not in frame.columns:
        columns = columns._replace(label_col=None)
    require_columns(frame, path, **columns._asdict())
    if columns.time_col is not None and columns.time_col in columns[:-1]:
        advice = "Name another column, or leave it out."
        raise invalid("time_col", expected="a column with no other role", got=repr(columns.time_col), advice=advice)
    if frame.empty:
        raise unreadable_file(path, problem="no rows", advice="Write one row per time step.")
    signals = read_signals(frame, path, [column for column in columns if column], channels)
    names = signals.names
    rows = _rows(frame, path, domain, columns, signals)
    refuse_huge(rows.values, names, frame.index[rows.number], path)
    interval = None if rows.time is None else _interval(rows.time)
    doubts = suspected_times(rows.values, names) if channels is None and columns.time_col is None else []
    doubts += [*lacking, *signals.doubts, *other_rate(interval, known_interval)]
    found = cut_rows(rows, window, step, path.name, at_labels=not labels_only_score)
    left_out = f"; {_count(found.n_left_out, 'row')} in gaps or tails left out" if found.n_left_out else ""
    y = _labels(found.label)
    return Recordings(
        X=found.X,
        y=y,
        domain=None if rows.domain is None else rows.domain[found.first],
        group=None if rows.group is None else rows.group[found.first],
        start=rows.number[found.first],
        channel_names=names,
        description=(
            f"{_title(path, domain)}: {_count(len(rows.number), 'row')}, {_list_channels(names)}, "
            f"{_count(found.n_groups, 'group')} -> {_count(len(found.X), 'window')} of {window}, step {step}"
            f"{left_out}{_unlabelled_note(y)}{_unused_note('columns', signals.unused)}"
        ),
        interval=interval,
        doubts=tuple(f"{path.name}: {doubt}" for doubt in doubts),
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


def _interval(time: NDArray[np.float64]) -> float | None:
    steps = np.diff(time)
    forward = steps[steps > 0]
    return float(np.median(forward)) if len(forward) else None


def _rows(frame: pd.DataFrame, path: Path, domain: object, columns: _Columns, signals: Signals) -> Rows:
    """Take the rows of `domain` out of the table, as arrays."""
    number = np.arange(len(frame), dtype=np.int64)
    if domain is not None:
        if columns.domain_col is None:
            advice = "Name the column that says whose a row is."
            raise invalid("domain_col", expected=f"the column to find domain {domain!r} in", got=None, advice=advice)
        number = _select(as_text(frame[columns.domain_col]), domain, f"{columns.domain_col!r} of {path.name}")
        frame = frame.iloc[number]
    return Rows(
        number=number,
        values=signals.values[number],
        time=seconds_column(frame, columns.time_col, path) if columns.time_col else None,
        label=as_text(frame[columns.label_col]) if columns.label_col else None,
        domain=_filled(frame, columns.domain_col, path) if columns.domain_col else None,
        group=_filled(frame, columns.group_col, path) if columns.group_col else None,
    )


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
    doubts = [*_assumed_names(found), *other_length(found.X.shape[2], window)]
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
            f"{_title(path, domain)}: {_count(len(rows), 'window')} of {found.X.shape[2]}, already cut, "
            f"{_list_channels(found.channel_names)}{_unlabelled_note(y)}{_unused_note('channels', found.unused)}"
        ),
        doubts=tuple(f"{path.name}: {doubt}" for doubt in doubts),
        named=found.named,
    )


def _assumed_names(found: WindowArchive) -> list[str]:
    """A line if channels were taken by their place, because the file does not say what they are."""
    by_number = name_channels(None, len(found.channel_names) + len(found.unused))
    if found.named or set(found.channel_names) <= set(by_number):
        return []
    return [f"it names no channels; they are taken to be {_shorten(found.channel_names)}, in this order."]


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
