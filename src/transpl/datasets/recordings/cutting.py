"""Cutting the rows of a long table into windows that never span two recordings, a gap or two labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import InputError, invalid
from transpl.windows import cut, label_breaks, time_breaks

Text = NDArray[np.str_]


class Rows(NamedTuple):
    """Rows of a table as arrays of one length, in the file's order; None for a column that is not there."""

    number: NDArray[np.int64]  # which row of the file
    values: NDArray[np.float64]  # (rows, channels)
    time: NDArray[np.float64] | None
    label: Text | None
    domain: Text | None
    group: Text | None


class CutRows(NamedTuple):
    """Windows, and for each the row number of its first sample; rows and windows belong to `Rows`."""

    X: NDArray[np.float32]  # (n, channels, window)
    first: NDArray[np.int64]  # (n,) index into the arrays of Rows
    label: Text | None  # (n,) the label that all samples of a window share, "" if they share none
    n_groups: int
    n_left_out: int  # rows that are in no window


def cut_rows(rows: Rows, window: int, step: int, name: str, *, at_labels: bool) -> CutRows:
    """Cut every (domain, group) by itself, sorted by time if there is a time; `at_labels` also where labels change."""
    groups = _groups(rows)
    X, first, label, longest, used = [], [], [], 0, 0
    for index in groups:
        if rows.time is not None:
            index = index[np.argsort(rows.time[index], kind="stable")]
        breaks = _breaks(rows, index, at_labels)
        values = rows.values[index]
        pieces = cut(values.T, window, step, breaks=breaks, name=name)
        X.append(pieces.windows)
        first.append(index[pieces.starts])
        label.append(_shared_labels(rows, index, pieces.starts, window))
        longest = max(longest, _longest_run(values, breaks))
        used += _covered(pieces.starts, window, len(index))
    if not any(len(windows) for windows in X):
        raise _too_short(name, window, longest)
    return CutRows(
        X=np.concatenate(X),
        first=np.concatenate(first),
        label=None if rows.label is None else np.concatenate(label),
        n_groups=len(groups),
        n_left_out=len(rows.number) - used,
    )


def _groups(rows: Rows) -> list[NDArray[np.int64]]:
    """Return the rows of each (domain, group), in order of first appearance."""
    keys = [key for key in (rows.domain, rows.group) if key is not None]
    if not keys:
        return [np.arange(len(rows.number))]
    table: pd.DataFrame = pd.DataFrame(dict(enumerate(keys)))
    groups: Any = table.groupby(list(table.columns), sort=False).indices
    return sorted(groups.values(), key=lambda index: int(index[0]))


def _breaks(rows: Rows, index: NDArray[np.int64], at_labels: bool) -> NDArray[np.bool_]:
    """Mark the rows at `index` that do not continue the one before."""
    if rows.time is not None:
        breaks = time_breaks(rows.time[index])
    else:
        # Without a clock, only rows that touch in the file are known to follow each other.
        breaks = np.diff(rows.number[index], prepend=rows.number[index[0]] - 1) != 1
    return breaks | label_breaks(rows.label[index]) if at_labels and rows.label is not None else breaks


def _shared_labels(rows: Rows, index: NDArray[np.int64], starts: NDArray[np.int64], window: int) -> Text:
    """Return each window's label if all its samples have the same, else ""."""
    if rows.label is None:
        return np.empty(0, dtype=str)
    labels = rows.label[index]
    changes = np.cumsum(label_breaks(labels))
    return np.where(changes[starts] == changes[starts + window - 1], labels[starts], "")


def _longest_run(values: NDArray[np.float64], breaks: NDArray[np.bool_]) -> int:
    whole = ~np.isnan(values).any(axis=1)
    runs = np.cumsum(breaks | ~whole)[whole]
    return int(np.bincount(runs).max()) if len(runs) else 0


def _covered(starts: NDArray[np.int64], window: int, n: int) -> int:
    """Count the rows that are in at least one window."""
    change = np.zeros(n + 1, np.int64)
    np.add.at(change, starts, 1)
    np.add.at(change, starts + window, -1)
    return int((np.cumsum(change) > 0).sum())


def _too_short(name: str, window: int, longest: int) -> InputError:
    return invalid(
        name,
        expected=f"at least {window} rows on end (the window) without gap, missing value or change of label",
        got=f"at most {longest}",
        advice="Choose a shorter window, or check time_col, group_col and the channels.",
    )
