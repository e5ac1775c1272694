"""Tables of a folder as streams of rows: a csv in chunks, other tables whole, words as indices.

The first rows of a file decide what its columns are (numbers, a clock, words), so nothing depends on the chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from transpl._utils.errors import unreadable_file
from transpl.datasets.recipe import Log
from transpl.datasets.recordings.array_files import recording_column
from transpl.datasets.recordings.clocks import Ints, refuse_ages, seconds_since, time_column, unit_of_dates
from transpl.datasets.recordings.dialects import find_dialect
from transpl.datasets.recordings.signals import SignalReader, choose_channels
from transpl.datasets.recordings.table_rows import TableRows
from transpl.datasets.recordings.tables import (
    CSV,
    TABLES,
    as_text,
    has_suffix,
    read_csv_chunks,
    read_csv_head,
    read_table,
    refuse_huge,
    require_columns,
    require_filled,
)

_OFTEN_NOTES = (".txt", ".txt.gz")  # taken only if they are named one by one
_HEAD_ROWS = 10_000  # decide what a column is


class Layout(NamedTuple):
    """Columns by role, None where there is none. With `channels` None: every other numeric column.

    time_unit : of a clock of numbers; None for that of dates since 1970, else seconds
    """

    label_col: str
    domain_col: str | None
    group_col: str | None
    time_col: str | None
    channels: tuple[str, ...] | None
    time_unit: str | None = None

    @property
    def roles(self) -> list[str]:
        """The columns that are not channels."""
        return [column for column in self[:4] if column is not None]


class Words:
    """Every word once, in order of appearance."""

    def __init__(self) -> None:
        self.known: list[str] = []
        self._index: dict[str, int] = {}

    def __getitem__(self, i: int) -> str:
        return self.known[i]

    def add(self, word: str) -> int:
        """Return the index of a word."""
        if word not in self._index:
            self._index[word] = len(self.known)
            self.known.append(word)
        return self._index[word]

    def codes(self, column: pd.Series[Any]) -> Ints:
        """Return a column as indices; an empty cell and "nan" are -1."""
        cells: Any
        try:
            codes, cells = pd.factorize(column)
        except TypeError:  # lists or dicts in a parquet file
            codes, cells = pd.factorize(as_text(column))
        indices = [-1 if word == "" else self.add(word) for word in as_text(cells).tolist()]
        return np.array([*indices, -1], np.int64)[codes]


@dataclass
class Vocabulary:
    """The words of all files, how many files have each column, and a line for every channel with bad cells."""

    label: Words = field(default_factory=Words)
    domain: Words = field(default_factory=Words)
    group: Words = field(default_factory=Words)
    columns: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)


def find_tables(folder: Path) -> list[Path]:
    """Return the tables in a folder and below it, sorted; a single table stands for itself."""
    if folder.is_file() and has_suffix(folder, TABLES):
        return [folder]
    if not folder.is_dir():
        advice = f"Give a folder with files that end in {', '.join(TABLES)}."
        raise unreadable_file(folder, problem="not a folder and not a table", advice=advice)
    known = [suffix for suffix in TABLES if suffix not in _OFTEN_NOTES]
    found = [path for path in folder.rglob("*") if path.is_file() and has_suffix(path, known)]
    visible = [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not visible:
        problem = f"no file that ends in {', '.join(known)} in it"
        raise unreadable_file(folder, problem=problem, advice="Put your recordings there.")
    return sorted(visible, key=lambda path: path.relative_to(folder).as_posix())


def name_layout(path: Path, layout: Layout, log: Log) -> Layout:
    """Return the layout with its channels named: the wanted ones, or the other columns of numbers of this file."""
    head = _head(path)
    layout = layout._replace(group_col=layout.group_col or recording_column(path, head))
    _require(head, path, layout)
    channels, _ = choose_channels(head, path, layout.roles, layout.channels)
    used = {*channels, *layout.roles}
    unused = [column for column in head.columns if column not in used]
    listed = ", ".join(map(repr, unused)) or "none"
    log(f"Channels: {', '.join(map(repr, channels))}. Columns that are not used: {listed}.")
    return layout._replace(channels=channels)


def stream_rows(path: Path, layout: Layout, vocabulary: Vocabulary, chunk_rows: int) -> Iterator[TableRows]:
    """Yield the rows of a table; `layout` must name its channels."""
    channels = layout.channels or ()
    head = _head(path)
    _require(head, path, layout)
    vocabulary.columns.update(set(head.columns))
    if head.empty:
        raise unreadable_file(path, problem="no rows", advice="Write one row per time step, or remove the file.")
    whole = not has_suffix(path, CSV)
    signals, origin, unit = SignalReader(path, channels), None, "s"
    chunks = [head] if whole else read_csv_chunks(path, chunk_rows, find_dialect(path), _types(head, layout), channels)
    for frame in chunks:
        values = signals.read(frame)
        refuse_huge(values, channels, frame.index, path)
        time = None
        if layout.time_col is not None:
            times = time_column(frame, layout.time_col, path)
            if origin is None:
                origin = times.iloc[0]
                unit = layout.time_unit or unit_of_dates(times) or "s"
            time = seconds_since(times, origin, unit)
            refuse_ages(time, layout.time_col, path)
        yield TableRows(
            number=frame.index.to_numpy(np.int64),
            values=values,
            time=time,
            label=vocabulary.label.codes(frame[layout.label_col]),
            domain=_filled(frame, layout.domain_col, vocabulary.domain, path),
            group=_filled(frame, layout.group_col, vocabulary.group, path),
        )
    vocabulary.warnings += [f"{path.name}: {line}" for line in signals.warnings()]


def _head(path: Path) -> pd.DataFrame:
    return read_csv_head(path, _HEAD_ROWS, find_dialect(path)) if has_suffix(path, CSV) else read_table(path)


def _require(frame: pd.DataFrame, path: Path, layout: Layout) -> None:
    for column in layout.channels or ():
        require_columns(frame, path, channels=column)
    label_col, domain_col, group_col, time_col = layout[:4]
    require_columns(frame, path, label_col=label_col, domain_col=domain_col, group_col=group_col, time_col=time_col)


def _types(head: pd.DataFrame, layout: Layout) -> dict[str, type]:
    """Return the type to read each column as that is not a channel."""
    words = (layout.label_col, layout.domain_col, layout.group_col)
    types: dict[str, type] = {column: str for column in words if column is not None}
    if layout.time_col is not None:
        clock = head[layout.time_col]
        types[layout.time_col] = {"i": int, "u": int, "f": float}.get(clock.dtype.kind, str)
    return types


def _filled(frame: pd.DataFrame, column: str | None, words: Words, path: Path) -> Ints | None:
    if column is None:
        return None
    codes = words.codes(frame[column])
    require_filled(codes < 0, column, frame.index, path)
    return codes
