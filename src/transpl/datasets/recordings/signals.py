"""Which columns of a table are channels, and their numbers. A few cells that are not numbers count as missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl.datasets.recordings.tables import CSV, NAME_CHANNELS, has_suffix, require_columns

MAX_BAD = 0.05  # share of the filled cells of a channel that may not be numbers


class SignalReader:
    """Reads the channels of a table that may come in pieces, and counts the cells that are not numbers."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path, self._names = path, names
        self._filled = np.zeros(len(names), np.int64)
        self._bad = np.zeros(len(names), np.int64)
        self._first: dict[int, str] = {}  # by channel: its first bad cell, and the row

    def read(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return the numbers of the next rows, (rows, channels), NaN where a cell is empty or bad."""
        channels = frame[list(self._names)]
        plain = np.array([_is_number(dtype) for dtype in channels.dtypes])  # all at once: there may be very many
        values = np.empty(channels.shape)
        values[:, plain] = channels.loc[:, plain].to_numpy(np.float64, na_value=np.nan)
        for place in np.flatnonzero(~plain).tolist():
            column = channels.iloc[:, place]
            values[:, place] = _numbers(column)
            bad = _bad(column, values[:, place])
            if place not in self._first and bad.any():
                first = int(np.flatnonzero(bad)[0])
                self._first[place] = f"{column.iloc[first]!r} in row {frame.index[first]}"
            self._bad[place] += bad.sum()
        self._filled += channels.notna().sum().to_numpy()
        return values

    def warnings(self) -> list[str]:
        """Return a line for every channel with bad cells; raise if one has too many."""
        lines = []
        for place, cell in sorted(self._first.items()):
            name, more = self._names[place], self._bad[place] - 1
            got = f"{cell}{f' and {more:,} more' if more else ''}"
            if self._bad[place] > MAX_BAD * self._filled[place]:
                where, advice = (
                    f"channel {name!r} of {self._path.name}",
                    "Leave the column out of channels, or clean it.",
                )
                raise invalid(where, expected="numbers", got=got, advice=advice)
            lines.append(f"channel {name!r} has {got} instead of a number; such cells count as missing.")
        return lines


def choose_channels(
    frame: pd.DataFrame, path: Path, roles: Sequence[str], channels: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the channels, and the columns that are not used.

    roles : columns with another role
    channels : the wanted ones; None for every other column of numbers that is no written-out index
    """
    free = [column for column in frame.columns if column not in roles and not column.startswith("Unnamed:")]
    if channels is None:
        known = not has_suffix(path, CSV)  # which digits are text
        types, filled = frame.dtypes.to_dict(), frame.notna().any().to_dict()
        names = tuple(
            column
            for column in free
            if filled[column] and (_is_number(types[column]) or (not known and _mostly_numbers(frame[column])))
        )
        if not names:
            present = ", ".join(map(repr, frame.columns))
            advice = "Name the channels (--channels), and write decimals with a point."
            raise invalid(path.name, expected="a numeric column", got=present, advice=advice)
    else:
        advice = NAME_CHANNELS
        if not set(channels) & set(frame.columns):
            advice += " Files with the other sensors of one recording must be joined, by time, into one table before."
        for column in channels:
            require_columns(frame, path, advice, channels=column)
        if not channels or set(channels) & set(roles) or len(set(channels)) < len(channels):
            expected = "one or more columns, each once and none of them the domain, group, label or time"
            raise invalid("channels", expected=expected, got=list(channels), advice="Name only signals.")
        names = tuple(channels)
    chosen = set(names)
    return names, tuple(column for column in free if column not in chosen)


def match_spelling(frame: pd.DataFrame, wanted: Iterable[str]) -> tuple[pd.DataFrame, list[str]]:
    """Rename columns that are spelled otherwise than wanted, such as "Acc X [g]" for "acc_x", and say so.

    Capitals, blanks, signs and units in brackets do not count. A column is renamed only if no other one could be meant.
    """
    absent = [name for name in dict.fromkeys(wanted) if name not in frame.columns]
    if not absent:
        return frame, []
    spelled = {column: _letters(column) for column in frame.columns}
    often, asked = Counter(spelled.values()), Counter(map(_letters, absent))
    meant = {
        column: name
        for name in absent
        for column, letters in spelled.items()
        if letters and letters == _letters(name) and often[letters] == asked[letters] == 1
    }
    lines = [f"{column!r} is taken as {name!r}." for column, name in meant.items()]
    return frame.rename(columns=meant), lines


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", re.sub(r"[\[(].*[\])]\s*$", "", name)).lower()


def clock_warnings(values: NDArray[np.float64], names: Sequence[str]) -> list[str]:
    """Return a line for every channel that only grows and so may be the time; values (rows, channels)."""
    advice = "If it is the time, name it (--time-col), or name the channels (--channels)."
    grows = (values[1:] > values[:-1]).all(axis=0) if len(values) > 2 else np.zeros(len(names), np.bool_)
    return [f"{names[c]!r} is taken as a channel, but it only grows. {advice}" for c in np.flatnonzero(grows).tolist()]


def _is_number(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype) and dtype.kind != "c"


def _mostly_numbers(column: pd.Series[Any]) -> bool:
    is_text = pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)
    return is_text and bool(_bad(column, _numbers(column)).sum() <= MAX_BAD * column.notna().sum())


def _numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where a cell holds none."""
    if not pd.api.types.is_numeric_dtype(column):
        words = column.where(column.notna()).map(str, na_action="ignore")
        column = pd.to_numeric(words, errors="coerce")
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _bad(column: pd.Series[Any], numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.isnan(numbers) & column.notna().to_numpy()
