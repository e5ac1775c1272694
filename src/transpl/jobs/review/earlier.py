"""The labels that a person has typed into an earlier list: none is lost when the list is written again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from transpl._utils.errors import InputError, invalid
from transpl._utils.files import is_stream
from transpl.datasets.recordings.tables import as_text, read_table
from transpl.jobs.results import TRUE_LABEL

WHERE = ("window", "domain", "group", "start")
COLUMNS = (*WHERE, "label", "confidence", "runner_up", "runner_up_probability", TRUE_LABEL, "explanation")
_TEXT = ("domain", "group", "label", "runner_up", TRUE_LABEL, "explanation")
_ROUNDING = 6e-4  # spreadsheets may keep three digits only


def typed_rows(path: Path, known: pd.DataFrame) -> pd.DataFrame:
    """The rows of the list at `path` that have a label; none where there is no list yet.

    known : all windows as they are labelled now. A file that is no list, or whose labels are not of these windows, is
        refused. They are if place, label and confidence are the same, or if the label was already given to the job.
    """
    if is_stream(path) or not path.is_file() or path.stat().st_size == 0:
        return pd.DataFrame(columns=list(COLUMNS))
    rows = _list_in(path)
    rows = rows[as_text(rows[TRUE_LABEL]) != ""].reset_index(drop=True)
    windows = as_text(rows["window"])
    now = known.set_index(pd.Index(as_text(known["window"])))
    now = now[~now.index.duplicated()].reindex(windows).reset_index(drop=True)
    strange = np.flatnonzero(~_is_same(rows, now) | pd.Series(windows).duplicated().to_numpy())
    if len(strange):
        typed = rows[TRUE_LABEL][strange[0]]
        raise _refused(f"{path}, with {typed!r} typed for window {windows[strange[0]]} of another list")
    return rows


def with_typed(table: pd.DataFrame, typed: pd.DataFrame) -> pd.DataFrame:
    """A new list with the labels of an earlier one; rows that are no longer listed follow at the end."""
    if typed.empty:
        return table
    labels = dict(zip(as_text(typed["window"]), typed[TRUE_LABEL], strict=True))
    windows = as_text(table["window"])
    filled = table.assign(**{TRUE_LABEL: [labels.get(window, "") for window in windows]})
    rest = typed[~np.isin(as_text(typed["window"]), windows)]
    return pd.concat([filled, rest.reindex(columns=table.columns)], ignore_index=True) if len(rest) else filled


def _list_in(path: Path) -> pd.DataFrame:
    try:
        rows = read_table(path, text=_TEXT)
    except InputError:
        raise _refused(f"{path}, which cannot be read as such") from None
    strangers = [name for name in rows.columns if name not in COLUMNS]
    if strangers or not {"window", TRUE_LABEL} <= set(rows.columns):
        raise _refused(f"{path}, with column {strangers[0]!r}" if strangers else f"{path}, without its columns")
    return rows


def _is_same(rows: pd.DataFrame, now: pd.DataFrame) -> np.ndarray:
    """Whether each row of an earlier list speaks of the window that is beside it."""
    same = now["label"].notna().to_numpy()
    for column in WHERE[1:]:
        if column in rows or column in now:
            same &= column in rows and column in now and as_text(rows[column]) == as_text(now[column])
    given = as_text(now[TRUE_LABEL]) == as_text(rows[TRUE_LABEL]) if TRUE_LABEL in now else np.zeros(len(rows), bool)
    if not {"label", "confidence"} <= set(rows.columns):
        return same & given
    then = pd.to_numeric(rows["confidence"], errors="coerce").to_numpy(np.float64)
    close = np.isclose(then, now["confidence"].to_numpy(np.float64), rtol=0, atol=_ROUNDING)
    return same & (given | (close & (as_text(rows["label"]) == as_text(now["label"]))))


def _refused(got: str) -> InputError:
    expected = "a new file, or an earlier list of the same windows"
    return invalid(
        "out", expected=expected, got=got, advice="Choose another file, so that nothing in this one is lost."
    )
