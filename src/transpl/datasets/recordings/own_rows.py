"""Users' tables as a stream of rows: a csv a chunk at a time, a parquet file whole, words as numbers.

What a column is (a number, a clock, words) is settled by the first rows of a file, so nothing depends on the chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import unreadable_file
from transpl.datasets.recipe import Log
from transpl.datasets.recordings.signals import SignalReader, choose_channels
from transpl.datasets.recordings.tables import (
    CSV,
    PARQUET,
    as_text,
    has_suffix,
    read_csv_chunks,
    read_csv_head,
    read_table,
    refuse_huge,
    require_columns,
    require_filled,
    seconds_since,
    time_column,
)

Ints = NDArray[np.int64]
_HEAD = 10_000  # rows that settle what a column is


class Layout(NamedTuple):
    """Which column is what; None for one that there is not. `channels` None: every numeric column left."""

    label_col: str
    domain_col: str | None
    group_col: str | None
    time_col: str | None
    channels: tuple[str, ...] | None

    @property
    def roles(self) -> list[str]:
        """The columns that are no channels."""
        return [column for column in self[:4] if column is not None]

    @property
    def words(self) -> list[str]:
        """The columns that hold words."""
        return [column for column in (self.label_col, self.domain_col, self.group_col) if column is not None]


@dataclass(frozen=True, eq=False)
class Steps:
    """Rows of a file, in its order."""

    number: Ints  # row of the file, from 0 after the header
    values: NDArray[np.float64]  # (rows, channels), NaN where missing
    time: NDArray[np.float64] | None  # from the file's first row on
    label: Ints  # index into the labels' words, -1 for none
    domain: Ints | None
    group: Ints | None

    def at(self, rows: Any) -> Steps:
        """Choose rows."""
        columns = (self.number, self.values, self.time, self.label, self.domain, self.group)
        return Steps(*(None if column is None else column[rows] for column in columns))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.number)


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
        codes, cells = pd.factorize(column)
        indices = [-1 if word == "" else self.add(word) for word in as_text(cells).tolist()]
        return np.array([*indices, -1], np.int64)[codes]


class Vocabulary(NamedTuple):
    """The words of all files, how many files have each column, and a line on every channel with bad cells."""

    label: Words
    domain: Words
    group: Words
    columns: Counter[str]
    doubts: list[str]


def find_tables(folder: Path) -> list[Path]:
    """Return the tables in a folder and below it, sorted; a single table stands for itself."""
    if folder.is_file() and has_suffix(folder, CSV + PARQUET):
        return [folder]
    if not folder.is_dir():
        advice = f"Give a folder with files that end in {', '.join(CSV + PARQUET)}."
        raise unreadable_file(folder, problem="not a folder and not a table", advice=advice)
    found = [path for path in folder.rglob("*") if path.is_file() and has_suffix(path, CSV + PARQUET)]
    visible = [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not visible:
        problem = f"no file that ends in {', '.join(CSV + PARQUET)} in it"
        raise unreadable_file(folder, problem=problem, advice="Put your recordings there.")
    return sorted(visible, key=lambda path: path.relative_to(folder).as_posix())


def settle_channels(path: Path, layout: Layout, say: Log) -> Layout:
    """Return the layout with its channels named: those wanted, or the columns of numbers of this file that are left."""
    head = _head(path)
    _require(head, path, layout)
    channels = choose_channels(head, path, layout.roles, layout.channels)
    unused = [column for column in head.columns if column not in (*channels, *layout.roles)]
    say(f"Channels: {_listed(channels)}. Columns that are not used: {_listed(unused) or 'none'}.")
    return layout._replace(channels=channels)


def partial_columns(columns: Counter[str], n_files: int) -> list[str]:
    """Return a sentence about the columns that only some files have, if there are any."""
    partial = [f"{column!r} ({n:,} of {n_files:,})" for column, n in sorted(columns.items()) if n < n_files]
    return [f"Columns that only some files have, not used: {', '.join(partial)}."] if partial else []


def read_steps(path: Path, layout: Layout, vocabulary: Vocabulary, chunk_rows: int) -> Iterator[Steps]:
    """Yield the rows of a table; `layout` has its channels named."""
    channels = layout.channels or ()
    origin: Any = None
    signals = SignalReader(path, channels)
    for frame in _frames(path, layout, vocabulary.columns, chunk_rows):
        values = signals.read(frame)
        refuse_huge(values, channels, frame.index, path)
        time = None
        if layout.time_col is not None:
            times = time_column(frame, layout.time_col, path)
            origin = times.iloc[0] if origin is None else origin
            time = seconds_since(times, origin)
        yield Steps(
            number=frame.index.to_numpy(np.int64),
            values=values,
            time=time,
            label=vocabulary.label.codes(frame[layout.label_col]),
            domain=_filled(frame, layout.domain_col, vocabulary.domain, path),
            group=_filled(frame, layout.group_col, vocabulary.group, path),
        )
    vocabulary.doubts.extend(f"{path.name}: {doubt}" for doubt in signals.finish())


def _head(path: Path) -> pd.DataFrame:
    return read_table(path) if has_suffix(path, PARQUET) else read_csv_head(path, _HEAD)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(repr, columns))


def _frames(path: Path, layout: Layout, columns: Counter[str], chunk_rows: int) -> Iterator[pd.DataFrame]:
    """Yield the table in pieces that are not empty, all columns of the layout in them; count its columns."""
    head = _head(path)
    _require(head, path, layout)
    columns.update(set(head.columns))
    if head.empty:
        raise unreadable_file(path, problem="no rows", advice="Write one row per time step, or remove the file.")
    if has_suffix(path, PARQUET):
        yield head
    else:
        yield from read_csv_chunks(path, chunk_rows, _kinds(head, layout), layout.channels or ())


def _require(frame: pd.DataFrame, path: Path, layout: Layout) -> None:
    roles = layout._asdict()
    for column in roles.pop("channels") or ():
        require_columns(frame, path, channels=column)
    require_columns(frame, path, **roles)


def _kinds(head: pd.DataFrame, layout: Layout) -> dict[str, type]:
    """Return the type to read each column as that is no channel."""
    kinds: dict[str, type] = dict.fromkeys(layout.words, str)
    if layout.time_col is not None:
        clock = head[layout.time_col]
        kinds[layout.time_col] = {"i": int, "u": int, "f": float}.get(clock.dtype.kind, str)
    return kinds


def _filled(frame: pd.DataFrame, column: str | None, words: Words, path: Path) -> Ints | None:
    if column is None:
        return None
    codes = words.codes(frame[column])
    require_filled(codes < 0, column, frame.index, path)
    return codes
