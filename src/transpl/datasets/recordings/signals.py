"""Which columns of a table are signals, and their numbers; a few cells that are no numbers do not cost a column.

One rule for all tables of users, read whole (`recordings`) or in pieces (`own_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl.datasets.recordings.tables import PARQUET, has_suffix, require_columns

MOST_BAD = 0.05  # of the filled cells of a column of numbers


class Signals(NamedTuple):
    """Channels of a table.

    values : (rows, channels), NaN where a cell is empty or bad
    unused : columns that are no channels and have no other role
    doubts : a line on every channel with bad cells
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    unused: tuple[str, ...]
    doubts: list[str]


class SignalReader:
    """Reads the channels of a table that may come in pieces, and counts the cells that are no numbers."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path, self._names = path, names
        self._filled = dict.fromkeys(names, 0)
        self._bad = dict.fromkeys(names, 0)
        self._first: dict[str, str] = {}  # bad cell of a channel, and where

    def read(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The numbers of the next rows, (rows, channels), NaN where a cell is empty or bad."""
        columns = {name: numbers_of(frame[name]) for name in self._names}
        for name, numbers in columns.items():
            bad = _bad(frame[name], numbers)
            if name not in self._first and bad.any():
                first = int(np.flatnonzero(bad)[0])
                self._first[name] = f"{frame[name].iloc[first]!r} in row {frame.index[first]}"
            self._filled[name] += int(frame[name].notna().sum())
            self._bad[name] += int(bad.sum())
        return np.column_stack(list(columns.values()))

    def finish(self) -> list[str]:
        """Raise if a channel has more than a few bad cells, else return a line on every channel that has some."""
        for name in self._first:
            if self._bad[name] > MOST_BAD * self._filled[name]:
                advice = "Leave the column out of channels, or clean it."
                raise invalid(
                    f"channel {name!r} of {self._path.name}", expected="numbers", got=self._place(name), advice=advice
                )
        said = "instead of a number; such cells count as missing."
        return [f"channel {name!r} has {self._place(name)} {said}" for name in self._names if name in self._first]

    def _place(self, name: str) -> str:
        """Where the first bad cell is, what it holds, and how many more there are."""
        more = self._bad[name] - 1
        return f"{self._first[name]}{f' and {more:,} more' if more else ''}"


def read_signals(frame: pd.DataFrame, path: Path, roles: Sequence[str], channels: Sequence[str] | None) -> Signals:
    """The numbers of the channels that `choose_channels` finds in a whole table."""
    names = choose_channels(frame, path, roles, channels)
    reader = SignalReader(path, names)
    values = reader.read(frame)
    unused = tuple(column for column in _free(frame, roles) if column not in names)
    return Signals(names, values, unused, reader.finish())


def choose_channels(
    frame: pd.DataFrame, path: Path, roles: Sequence[str], channels: Sequence[str] | None
) -> tuple[str, ...]:
    """The wanted channels, or every column of numbers that has no other role and is no written-out index."""
    return _chosen(frame, path, _free(frame, roles)) if channels is None else _checked(frame, path, roles, channels)


def _free(frame: pd.DataFrame, roles: Sequence[str]) -> list[str]:
    return [column for column in frame.columns if column not in roles and not column.startswith("Unnamed:")]


def _chosen(frame: pd.DataFrame, path: Path, free: Sequence[str]) -> tuple[str, ...]:
    suits = _is_number if has_suffix(path, PARQUET) else _mostly_numbers  # parquet knows which digits are text
    names = tuple(column for column in free if suits(frame[column]) and frame[column].notna().any())
    if not names:
        present = ", ".join(map(repr, frame.columns))
        advice = "Name the channels (--channels), and write decimals with a point."
        raise invalid(path.name, expected="a numeric column", got=present, advice=advice)
    return names


def _checked(frame: pd.DataFrame, path: Path, roles: Sequence[str], channels: Sequence[str]) -> tuple[str, ...]:
    for column in channels:
        require_columns(frame, path, "Name the channels that all files have (--channels).", channels=column)
    if not channels or set(channels) & set(roles) or len(set(channels)) < len(channels):
        expected = "one or more columns, each once and none of them the domain, group, label or time"
        raise invalid("channels", expected=expected, got=list(channels), advice="Name only signals.")
    return tuple(channels)


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _mostly_numbers(column: pd.Series[Any]) -> bool:
    if _is_number(column) or not _is_words(column):
        return _is_number(column)
    bad = _bad(column, numbers_of(column))
    return bool(bad.sum() <= MOST_BAD * column.notna().sum())


def _is_words(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)


def numbers_of(column: pd.Series[Any]) -> NDArray[np.float64]:
    """A column as numbers, NaN where a cell holds none."""
    if not pd.api.types.is_numeric_dtype(column):
        words = column.where(column.notna()).map(str, na_action="ignore")
        column = pd.to_numeric(words, errors="coerce")
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _bad(column: pd.Series[Any], numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark filled cells that are no numbers."""
    return np.isnan(numbers) & column.notna().to_numpy()
