"""Which columns of a table are signals, and their numbers; a few cells that are no numbers do not cost a column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl.datasets.tables import PARQUET, has_suffix, require_columns
from transpl.errors import wrong

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


def read_signals(frame: pd.DataFrame, path: Path, roles: Sequence[str], channels: Sequence[str] | None) -> Signals:
    """Take the wanted channels, or every column of numbers that has no other role and is no written-out index."""
    free = [column for column in frame.columns if column not in roles and not column.startswith("Unnamed:")]
    names = _chosen(frame, path, free) if channels is None else _checked(frame, path, roles, channels)
    columns = [_numbers(frame[name]) for name in names]
    bad = {name: _bad(frame[name], column) for name, column in zip(names, columns, strict=True)}
    for name in names:
        if not _are_few(bad[name], frame[name]):
            advice = "Leave the column out of channels, or clean it."
            raise wrong(
                f"channel {name!r} of {path.name}",
                expected="numbers",
                got=_place(frame[name], bad[name]),
                advice=advice,
            )
    return Signals(
        names=names,
        values=np.column_stack(columns),
        unused=tuple(column for column in free if column not in names),
        doubts=[
            f"channel {name!r} has {_place(frame[name], bad[name])} instead of a number; such cells count as missing."
            for name in names
            if bad[name].any()
        ],
    )


def _chosen(frame: pd.DataFrame, path: Path, free: Sequence[str]) -> tuple[str, ...]:
    suits = _is_number if has_suffix(path, PARQUET) else _mostly_numbers  # parquet knows which digits are text
    names = tuple(column for column in free if suits(frame[column]) and frame[column].notna().any())
    if not names:
        present = ", ".join(map(repr, frame.columns))
        advice = "Name the channels (--channels), and write decimals with a point."
        raise wrong(path.name, expected="a numeric column", got=present, advice=advice)
    return names


def _checked(frame: pd.DataFrame, path: Path, roles: Sequence[str], channels: Sequence[str]) -> tuple[str, ...]:
    for column in channels:
        require_columns(frame, path, "Name the channels that all files have (--channels).", channels=column)
    if not channels or set(channels) & set(roles) or len(set(channels)) < len(channels):
        expected = "one or more columns, each once and none of them the domain, group, label or time"
        raise wrong("channels", expected=expected, got=list(channels), advice="Name only signals.")
    return tuple(channels)


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _mostly_numbers(column: pd.Series[Any]) -> bool:
    if _is_number(column) or not _is_words(column):
        return _is_number(column)
    return _are_few(_bad(column, _numbers(column)), column)


def _is_words(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)


def _numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    if not pd.api.types.is_numeric_dtype(column):
        words = column.where(column.notna()).map(str, na_action="ignore")
        column = pd.to_numeric(words, errors="coerce")
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _bad(column: pd.Series[Any], numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark filled cells that are no numbers."""
    return np.isnan(numbers) & column.notna().to_numpy()


def _are_few(bad: NDArray[np.bool_], column: pd.Series[Any]) -> bool:
    return bool(bad.sum() <= MOST_BAD * column.notna().sum())


def _place(column: pd.Series[Any], bad: NDArray[np.bool_]) -> str:
    """Where the first bad cell is, what it holds, and how many more there are."""
    first, more = int(np.flatnonzero(bad)[0]), int(bad.sum()) - 1
    return f"{column.iloc[first]!r} in row {column.index[first]}{f' and {more:,} more' if more else ''}"
