"""The labels that a person filled in, checked against the recording they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from transpl._utils.errors import invalid
from transpl.datasets.recordings.reading import Recordings
from transpl.datasets.recordings.tables import as_text, read_table, require_columns
from transpl.jobs.results import TRUE_LABEL, where
from transpl.jobs.review.earlier import WHERE

_ADVICE = "Label the windows of this very recording, read in the same way."


def read_labels(paths: Sequence[Path], recordings: Recordings, classes: Sequence[str]) -> dict[int, str]:
    """{window: label} of all rows with a `true_label`; a file of other windows or classes is refused.

    Windows are known by their number, and by domain, group and start where both the file and the recording have them.
    """
    found: dict[int, str] = {}
    known = where(recordings)
    for path in paths:
        table = _filled_rows(path)
        windows = _window_numbers(table, path, len(known))
        _check_place(table, known.iloc[windows], path)
        labels = as_text(table[TRUE_LABEL]).tolist()
        _check_classes(labels, windows, classes, path)
        twice = [window for i, window in enumerate(windows) if window in found or window in windows[:i]]
        if twice:
            raise invalid(
                path.name, expected="every window once", got=f"window {twice[0]} again", advice="Keep one row."
            )
        found |= dict(zip(windows, labels, strict=True))
    if not found:
        names = ", ".join(path.name for path in paths)
        raise invalid("labels", expected=f"a {TRUE_LABEL} in some row", got=f"none in {names}", advice="Fill some in.")
    return found


def _filled_rows(path: Path) -> pd.DataFrame:
    table = read_table(path, text=[TRUE_LABEL, "domain", "group"])
    require_columns(table, path, labels="window")
    require_columns(table, path, labels=TRUE_LABEL)
    return table[as_text(table[TRUE_LABEL]) != ""].reset_index(drop=True)


def _window_numbers(table: pd.DataFrame, path: Path, n: int) -> list[int]:
    numbers = pd.to_numeric(table["window"], errors="coerce")
    bad = ~(numbers.between(0, n - 1) & (numbers % 1 == 0))
    if bad.any():
        got = f"window {table['window'][bad].iloc[0]}"
        raise invalid(path.name, expected=f"windows 0..{n - 1} of the target", got=got, advice=_ADVICE)
    return numbers.astype(int).tolist()


def _check_place(table: pd.DataFrame, known: pd.DataFrame, path: Path) -> None:
    for column in WHERE[1:]:
        if column not in table or column not in known:
            continue
        there, here = (as_text(part[column]).tolist() for part in (table, known))
        for window, expected, got in zip(known["window"], here, there, strict=True):
            if got != expected:
                place = f"{column} {expected!r} for window {window}, as in the target"
                raise invalid(path.name, expected=place, got=repr(got), advice=_ADVICE)


def _check_classes(labels: Sequence[str], windows: Sequence[int], classes: Sequence[str], path: Path) -> None:
    for label, window in zip(labels, windows, strict=True):
        if label not in classes:
            advice = "Check the spelling; a class that the source does not have cannot be learnt from a few labels."
            expected = f"classes of the source ({', '.join(classes)})"
            raise invalid(path.name, expected=expected, got=f"{label!r} for window {window}", advice=advice)
