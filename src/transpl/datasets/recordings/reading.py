"""A user's files into windows in memory: tables of recordings, or windows that are already cut.

A table has one row per time step and one column per channel; other columns may name the domain (who, which device), the
group (which recording), the label and the time. A file of windows has `X` (n, channels, time) and may have `y`,
`domain`, `group`, `class_names` and `channel_names`; prepared data sets are of this kind.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, check_positive, invalid, unreadable_file
from transpl._utils.files import require_regular
from transpl._utils.wording import counted
from transpl.datasets.recordings.array_files import ARRAYS, holds_windows, read_arrays, recording_column
from transpl.datasets.recordings.clocks import UNITS, Floats, is_time_of_day, seconds_column
from transpl.datasets.recordings.guess import role_warnings
from transpl.datasets.recordings.long_layout import from_long
from transpl.datasets.recordings.recording_rows import Rows, cut_recordings, order_recordings, usual_interval
from transpl.datasets.recordings.remarks import (
    Account,
    describe,
    list_channels,
    loss_warnings,
    mixed_rate_warnings,
    rate_warnings,
    shorten,
    unlabelled_note,
    unused_note,
)
from transpl.datasets.recordings.signals import SignalReader, choose_channels, clock_warnings, match_spelling
from transpl.datasets.recordings.tables import (
    TABLES,
    Text,
    as_text,
    has_suffix,
    read_table,
    refuse_huge,
    require_columns,
    require_filled,
    unknown_format,
)
from transpl.datasets.recordings.window_archive import read_windows
from transpl.datasets.recordings.window_sizes import Sizes, check_size, in_samples
from transpl.windows import name_channels

__all__ = ["Recordings", "read_recordings", "read_table"]


@dataclass(frozen=True, eq=False)
class Recordings:
    """Windows from a user's files.

    Attributes
    ----------
    X : (n, channels, time) float32 array
    y : (n,) text, or None
        "" for a window without label; None if no window has one.
    domain, group : (n,) text, or None
        None if the file does not name them.
    start : (n,) int array, or None
        The row of the file, from 0 after the header, with a window's first sample; None for windows cut before.
    end : (n,) int array, or None
        The row with its last sample.
    channel_names : tuple of str
    description : str
        What was read and what was left out.
    interval : float, optional
        Usual seconds from one row to the next.
    warnings : tuple of str
        What looks like a mistake.
    named : bool
        Whether the file names its channels; an npz may not.
    time, time_end : (n,) arrays, optional
        What the time column says in the rows with a window's first and last sample.
    step : int, optional
        Samples between the starts of windows.
    account : Account, optional
        What was found in a table, and what became of its rows.
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
    end: NDArray[np.int64] | None = None
    time: NDArray[Any] | None = None
    time_end: NDArray[Any] | None = None
    step: int | None = None
    account: Account | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def sequence(self) -> Text | None:
        """The recording that each window belongs to: its domain and group; None if the file names neither."""
        if self.domain is None or self.group is None:
            return self.group if self.domain is None else self.domain
        return np.char.add(np.char.add(self.domain.astype(str), "/"), self.group.astype(str))


def read_recordings(
    path: str | os.PathLike[str],
    *,
    domain: object = None,
    domain_col: str | None = None,
    label_col: str | None = None,
    time_col: str | None = None,
    group_col: str | None = None,
    channels: Sequence[str] | None = None,
    window: int | str | None = None,
    step: int | str | None = None,
    rate: float | None = None,
    gap: float | None = None,
    time_unit: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    interval: float | None = None,
    labels_only_score: bool = False,
    optional: Collection[str] = (),
) -> Recordings:
    """Read a file of recordings and cut it into windows.

    No window spans a change of domain or group, or a gap: more than three missing samples on end. Fewer are filled in
    on a straight line. With `time_col`, the rows of each (domain, group) are sorted by time, rows of uneven times are
    interpolated at the usual rate, and of rows with the same time the first is kept, or all are spread evenly if the
    clock is coarser than the rows. Without it, rows are taken in the file's order, and a gap is also where rows of
    others lie between.

    Windows of an npz (or `X` with three axes in another file of arrays) are already cut: what is said of time and
    sizes does not apply, and a length other than `window` is a warning. The other columns name keys (default:
    "domain", "y", "group"). Integers in `y` are looked up in `class_names` if the file has them. A file without channel
    names must have as many channels as `channels`.

    Parameters
    ----------
    path : path
        A csv (also tsv, txt, packed by gzip), parquet, feather, npz, MATLAB, HDF5 or NetCDF file.
    domain : optional
        Keep only rows whose `domain_col` has this value, compared as text.
    domain_col, label_col, time_col, group_col : str, optional
        Columns that are not channels. A column of this name in other spelling ("Acc X" for "acc_x") is taken, too.
    channels : sequence of str, optional
        Columns to use; by default every other column of numbers. Cells that are not numbers are missing values; a
        column with more than 5 % of them is not numeric.
    window, step : int or str, optional
        In samples, or in seconds as "2.5s"; by default 128 samples, and half a window.
    rate : float, optional
        Resample to so many samples per second; of a faster recording, each is a mean.
    gap : float, optional
        Seconds without a row that end a run; by default more than three missing samples on end.
    time_unit : {"s", "ms", "us", "ns"}, optional
        Of a time column of numbers. By default that of numbers which are dates since 1970, else seconds.
    sep, decimal : str, optional
        Signs of a csv; by default what its first lines look like.
    interval : float, optional
        Usual seconds from one row to the next in the data that a model was trained on; another one is a warning.
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
    plan = _Plan(window, step, rate, gap, time_unit, interval)
    plan.check(time_col)
    if not has_suffix(path, (*TABLES, ".npz")):
        if not path.is_dir():
            require_regular(path)  # of a pipe or /dev/stdin, the ending is not the problem
            raise unknown_format(path, (*TABLES, ".npz"))
        got = f"the folder {str(path)!r}"
        raise invalid("path", expected="a file", got=got, advice="Name its files.")
    if has_suffix(path, (".npz",)) or (has_suffix(path, ARRAYS) and holds_windows(read_arrays(path))):
        return _from_windows(path, domain, columns, wanted, plan, labels_only_score, optional)
    frame = read_table(path, text=[name for name in columns[:3] if name], sep=sep, decimal=decimal)
    return _from_table(path, frame, domain, columns, wanted, plan, labels_only_score, optional)


class _Columns(NamedTuple):
    domain_col: str | None
    group_col: str | None
    label_col: str | None
    time_col: str | None


class _Plan(NamedTuple):
    """How windows are cut, as `read_recordings` was asked."""

    window: int | str | None
    step: int | str | None
    rate: float | None
    gap: float | None
    time_unit: str | None
    interval: float | None

    def check(self, time_col: str | None) -> None:
        needs_time = []
        for name, size in (("window", self.window), ("step", self.step)):
            needs_time += [name] if check_size(name, size) else []
        for name, value in (("rate", self.rate), ("gap", self.gap), ("interval", self.interval)):
            if value is not None:
                check_positive(name, value)
                needs_time += [name] if name != "interval" else []
        if self.time_unit is not None:
            check_choice("time_unit", self.time_unit, tuple(UNITS))
        if needs_time and time_col is None:
            expected = f"a column, because {needs_time[0]} is given in seconds"
            raise invalid("time_col", expected=expected, got=None, advice="Name the column with the time.")


def _from_table(
    path: Path,
    frame: pd.DataFrame,
    domain: object,
    columns: _Columns,
    channels: Sequence[str] | None,
    plan: _Plan,
    labels_only_score: bool,
    optional: Collection[str],
) -> Recordings:
    frame, warnings = match_spelling(frame, [*(name for name in columns if name), *(channels or ())])
    columns, absent = _without_absent(columns, frame, optional)
    warnings += absent
    columns = columns._replace(group_col=columns.group_col or recording_column(path, frame))
    if labels_only_score and columns.label_col not in frame.columns:
        columns = columns._replace(label_col=None)
    roles = columns._asdict()
    label_advice = "If all rows of a file are of one class, add a column that says so."
    require_columns(frame, path, label_advice, label_col=roles.pop("label_col"))
    require_columns(frame, path, **roles)
    if columns.time_col is not None and columns.time_col in columns[:-1]:
        advice = "Name another column, or leave it out."
        raise invalid("time_col", expected="a column with no other role", got=repr(columns.time_col), advice=advice)
    if frame.empty:
        raise unreadable_file(path, problem="no rows", advice="Write one row per time step.")
    if columns.time_col is not None:
        frame, long = from_long(frame, path, [name for name in columns if name])
        warnings += long
    names, unused = choose_channels(frame, path, [column for column in columns if column], channels)
    signals = SignalReader(path, names)
    values = signals.read(frame)
    warnings += signals.warnings()
    table = _select_domain(frame, values, path, domain, columns, plan.time_unit)
    refuse_huge(table.values, names, frame.index[table.number], path)
    if channels is None:
        warnings = role_warnings(frame, names) + warnings
        warnings = (clock_warnings(table.values, names) if columns.time_col is None else []) + warnings
    seen = table._replace(label=None) if labels_only_score else table
    runs, notes = order_recordings(seen, plan.gap, plan.interval)
    interval = usual_interval(runs)
    if columns.time_col is not None:
        warnings += mixed_rate_warnings([run.clock.step for run in runs if run.clock is not None], plan.rate)
        warnings += rate_warnings(interval, plan.interval, plan.rate)
    sizes = Sizes(*in_samples(plan.window, plan.step, plan.rate, interval, path.name), plan.rate)
    cut = cut_recordings(table, runs, sizes, path.name, names, at_labels=not labels_only_score)
    number = table.number
    clocks = [run.clock for run in runs if run.clock is not None]
    account = Account(len(number), len(runs), cut.left_out, cut.tally, clocks, unused, notes)
    warnings += loss_warnings(account)
    y = _labels(cut.label)
    times = None if columns.time_col is None else _written_times(frame[columns.time_col])
    return Recordings(
        X=cut.X,
        y=y,
        domain=None if table.domain is None else table.domain[cut.first_rows],
        group=_numbered(None if table.group is None else table.group[cut.first_rows], cut.round),
        start=number[cut.first_rows],
        channel_names=names,
        description=f"{_title(path, domain)}: {describe(account, names, len(cut.X), sizes, y)}",
        interval=interval,
        warnings=tuple(f"{path.name}: {line}" for line in warnings),
        end=number[cut.last_rows],
        time=None if times is None else times[number[cut.first_rows]],
        time_end=None if times is None else times[number[cut.last_rows]],
        step=sizes.step,
        account=account,
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


def _select_domain(
    frame: pd.DataFrame, values: Floats, path: Path, domain: object, columns: _Columns, time_unit: str | None
) -> Rows:
    number = np.arange(len(frame), dtype=np.int64)
    if domain is not None:
        if columns.domain_col is None:
            advice = "Name the column that says whose a row is."
            raise invalid("domain_col", expected=f"the column to find domain {domain!r} in", got=None, advice=advice)
        number = _select(as_text(frame[columns.domain_col]), domain, f"{columns.domain_col!r} of {path.name}")
        frame = frame.iloc[number]
    return Rows(
        number=number,
        values=values[number],
        time=seconds_column(frame, columns.time_col, path, time_unit) if columns.time_col else None,
        label=as_text(frame[columns.label_col]) if columns.label_col else None,
        domain=_filled(frame, columns.domain_col, path) if columns.domain_col else None,
        group=_filled(frame, columns.group_col, path) if columns.group_col else None,
        daily=columns.time_col is not None and is_time_of_day(frame[columns.time_col]),
    )


def _numbered(group: Text | None, rounds: NDArray[np.int64]) -> Text | None:
    """Tell recordings apart whose clock began again: "1", "2", or "lab", "lab (2)"."""
    if not rounds.any():
        return group
    if group is None:
        return np.char.mod("%d", rounds + 1)
    return np.where(rounds > 0, np.char.add(group.astype(str), np.char.mod(" (%d)", rounds + 1)), group)


def _written_times(column: pd.Series[Any]) -> NDArray[Any]:
    """Return times as the file writes them: numbers, or text."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy()
    if pd.api.types.is_datetime64_any_dtype(column):
        return np.array([each.isoformat() for each in column])
    return np.asarray(column.astype(str).to_numpy(), dtype=str)


def _filled(frame: pd.DataFrame, column: str, path: Path) -> Text:
    """Return a column as text that must have an entry in every row."""
    text = as_text(frame[column])
    require_filled(text == "", column, frame.index, path)
    return text


def _from_windows(
    path: Path,
    domain: object,
    columns: _Columns,
    channels: Sequence[str] | None,
    plan: _Plan,
    labels_only_score: bool,
    optional: Collection[str],
) -> Recordings:
    optional = {*optional, "label_col"} if labels_only_score else optional
    found = read_windows(path, columns.label_col, columns.domain_col, columns.group_col, channels, optional=optional)
    length = found.X.shape[2]
    warnings = []
    by_number = name_channels(None, len(found.channel_names) + len(found.unused))
    if not found.named and not set(found.channel_names) <= set(by_number):
        warnings.append(f"it names no channels; they are taken to be {shorten(found.channel_names)}, in this order.")
    if isinstance(plan.window, int) and plan.window != length:
        warnings.append(
            f"its windows have {length} samples and not {plan.window}; they are already cut, and taken as they are."
        )
    if plan.rate is not None:
        warnings.append("its windows are already cut, and not resampled.")
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
            f"{_title(path, domain)}: {counted(len(rows), 'window')} of {length}, already cut, "
            f"{list_channels(found.channel_names)}{unlabelled_note(y)}{unused_note('channels', found.unused)}"
        ),
        warnings=tuple(f"{path.name}: {line}" for line in warnings),
        named=found.named,
    )


def _select(whose: Text, domain: object, where: str) -> NDArray[np.int64]:
    """Return the rows whose domain is `domain`."""
    rows: NDArray[np.int64] = np.flatnonzero((whose == as_text([domain])[0]) & (whose != ""))
    if len(rows) == 0:
        present = shorten([repr(str(value)) for value in np.unique(whose) if value != ""])
        raise invalid(
            "domain", expected=f"a value of {where} ({present})", got=repr(domain), advice="Choose one of them."
        )
    return rows


def _labels(y: Text | None) -> Text | None:
    """Return None instead of labels that are all missing."""
    return None if y is None or (y == "").all() else y


def _title(path: Path, domain: object) -> str:
    return path.name if domain is None else f"{path.name}, domain {domain}"
