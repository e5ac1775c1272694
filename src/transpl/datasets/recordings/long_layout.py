"""Tables with a row per time and channel, turned into a row per time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from transpl._utils.errors import invalid

_MOST_WORDS = 200
_MOST_NUMBERS = 20  # that may name people; more may count the rows of a second
_TURNS = 0.5  # share of the rows whose word differs from the row before, where channels take turns


def from_long(frame: pd.DataFrame, path: Path, roles: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Give every channel a column of its own if a table has one column of numbers and one that names the channel.

    roles : columns of domain, recording, label and, last, time; a table is long only if every word of another column of
        text occurs once with each of their combinations
    """
    found = [name for name in roles if name in frame.columns]
    others = [name for name in frame.columns if name not in found]
    numbers = [name for name in others if pd.api.types.is_numeric_dtype(frame[name])]
    for column in others:
        is_text, is_whole = _is_text(frame[column]), pd.api.types.is_integer_dtype(frame[column])
        words = frame[column].nunique() if is_text or is_whole else 0
        if not 2 <= words <= (_MOST_WORDS if is_text else _MOST_NUMBERS):
            continue
        if not _tells_apart(frame, found, column, words):
            if is_text and _takes_turns(frame, column, time=found[-1]):
                return frame, [
                    f"{column!r} changes from row to row; if it names people or recordings, say so (--domain-col, "
                    "--group-col), and if it names channels, write a column for each."
                ]
            continue
        if is_text and len(numbers) == 1:
            wide = frame.pivot(index=found, columns=column, values=numbers[0]).reset_index()
            names = ", ".join(map(str, sorted(frame[column].unique())))
            return wide.rename_axis(columns=None), [f"the words of {column!r} are taken as channels ({names})."]
        raise invalid(
            path.name,
            expected="one row per time in each recording",
            got=f"{words} rows that {column!r} tells apart",
            advice=f"If {column!r} names people or recordings, say so (--domain-col, --group-col); if it names "
            "sensors, write a column for each of their channels.",
        )
    return frame, []


def _tells_apart(frame: pd.DataFrame, roles: list[str], column: str, words: int) -> bool:
    """Whether every word occurs once with each combination of the other roles."""
    if len(frame) % words:
        return False
    moments = len(frame[roles].drop_duplicates())
    return moments * words == len(frame) and not frame.duplicated([*roles, column]).any()


def _takes_turns(frame: pd.DataFrame, column: str, time: str) -> bool:
    """Whether the words change from row to row, also in order of time: those of rows that were shuffled do not."""
    words, times = frame[column].to_numpy(), frame[time]
    sortable = times if pd.api.types.is_numeric_dtype(times) else times.astype(str)
    in_time = sortable.to_numpy().argsort(kind="stable")
    return all((order[1:] != order[:-1]).mean() > _TURNS for order in (words, words[in_time]))


def _is_text(column: pd.Series[Any]) -> bool:
    return not pd.api.types.is_numeric_dtype(column) and all(isinstance(word, str) for word in column)
