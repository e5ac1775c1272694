"""Which columns of a table are likely to be the time, the label, the recording and the person, by name and content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from transpl.datasets.recordings.clocks import as_dates

_NAMES = {  # a column is taken for a role if one of its words is among these
    "time_col": "t time times timestamp timestamps datetime date sec seconds ms epoch clock zeit",
    "label_col": "label labels activity activities class classes target annotation gesture exercise gt state",
    "group_col": "group session recording trial record run file sequence segment bout rep",
    "domain_col": "domain user users subject subjects participant patient person device who pid uid",
}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_MOST_CLASSES = 100
_HEAD = 2000  # rows that are looked at


def guess_columns(frame: pd.DataFrame, given: dict[str, Any]) -> dict[str, str]:
    """Return likely columns for the roles that are not given; a role that nothing fits is left out."""
    head = frame.head(_HEAD)
    found: dict[str, str] = {}
    taken = {value for name, value in given.items() if name in _NAMES} | set(given.get("channels", ()))
    for role in _NAMES:
        if role in given:
            continue
        fits = _is_clock if role == "time_col" else _is_grouping
        for column in head.columns:
            named = _is_named(column, role) or (role == "label_col" and column == "y" and "x" not in head)
            if column not in taken and named and fits(head[column], frame[column]):
                found[role] = column
                taken.add(column)
                break
    if "label_col" not in given and "label_col" not in found:
        texts = [column for column in head.columns if column not in taken and _is_text_of_classes(frame[column])]
        if len(texts) == 1:
            found["label_col"] = texts[0]
    return found


def role_warnings(frame: pd.DataFrame, channels: Sequence[str]) -> list[str]:
    """Return a line for every channel of whole numbers that, by its name, may be no signal."""
    lines = []
    for role, what in (("group_col", "recording"), ("domain_col", "person or device"), ("label_col", "class")):
        for column in channels:
            if _is_named(column, role) and pd.api.types.is_integer_dtype(frame[column]):
                option = f"--{role.replace('_', '-')}"
                lines.append(
                    f"{column!r} is taken as a channel. If it names the {what}, say so ({option}); if it is no signal, "
                    "name the channels (--channels)."
                )
    return lines


def _is_named(column: str, role: str) -> bool:
    return bool({word.lower() for word in _WORDS.findall(str(column))} & set(_NAMES[role].split()))


def _is_clock(head: pd.Series[Any], _: pd.Series[Any]) -> bool:
    if pd.api.types.is_bool_dtype(head):
        return False
    if pd.api.types.is_numeric_dtype(head):
        steps = np.diff(head.to_numpy(np.float64))
        return len(steps) == 0 or bool((steps >= 0).mean() > 0.5)
    return bool(as_dates(head).notna().mean() > 0.5)


def _is_grouping(_: pd.Series[Any], column: pd.Series[Any]) -> bool:
    if pd.api.types.is_float_dtype(column) and not (column.dropna() % 1 == 0).all():
        return False
    return column.nunique() <= max(1, min(10 * _MOST_CLASSES, len(column) // 2))


def _is_text_of_classes(column: pd.Series[Any]) -> bool:
    is_text = pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)
    return is_text and 2 <= column.nunique() <= min(_MOST_CLASSES, max(2, len(column) // 10))
