"""Of what kind a folder of results is, of one target or of many, and whether it is whole.

`unfinished.json` is there while results are written and after a death in the middle: then files of two runs may lie
side by side. `targets.json` names the targets of a folder of many from its first moment on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from transpl._utils.errors import invalid, unreadable_file
from transpl._utils.files import read_json, remove_leftovers, write_json

UNFINISHED = "unfinished.json"
TARGETS = "targets.json"
_OF_ONE = ("summary.json", "predictions.csv", UNFINISHED)
_OF_MANY = ("summary.csv", TARGETS)
_AGAIN = "Run transpl adapt (or demo) again, as before."
PROBABILITY = "p_"  # how the columns begin that hold one probability per class
_ROUNDING = 1e-3


@contextmanager
def being_written(folder: Path) -> Iterator[None]:
    """Mark a folder while the block writes results to it; the mark goes only if all were written."""
    remove_leftovers(folder)
    remove_leftovers(folder / "model")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(folder / UNFINISHED, {"since": now, "what_to_do": _AGAIN})
    yield
    (folder / UNFINISHED).unlink()


def is_unfinished(folder: Path) -> bool:
    """True while results are written, and where that was interrupted."""
    return (folder / UNFINISHED).exists()


def require_whole(folder: Path) -> None:
    """Raise for a folder, or a model in it, whose results may be of two runs."""
    home = folder.parent if folder.name == "model" else folder
    if is_unfinished(home):
        problem = "its results are being written, or that was interrupted; they may be of two runs"
        raise unreadable_file(home, problem=problem, advice=_AGAIN)


def require_whole_predictions(folder: Path, table: pd.DataFrame) -> None:
    """Raise unless predictions.csv has all rows that summary.json speaks of, each to its end.

    A row that was cut ends in no number, or in another one: its probabilities do not add up to 1.
    """
    columns = [name for name in table.columns if name.startswith(PROBABILITY)]
    total = table[columns].apply(pd.to_numeric, errors="coerce").sum(axis=1, skipna=False).to_numpy(np.float64)
    cut = np.flatnonzero(~(np.abs(total - 1) < _ROUNDING)) if columns else np.array([], int)
    rows = _rows_expected(folder)
    if len(cut):
        problem = f"row {cut[0] + 1} of {len(table)} is cut off or damaged"
    elif rows not in (None, len(table)):
        problem = f"{len(table)} rows, where summary.json speaks of {rows}"
    else:
        return
    raise unreadable_file(folder / "predictions.csv", problem=problem, advice=f"Copy the folder anew. Else: {_AGAIN}")


def holds_many(folder: Path) -> bool:
    """True for a folder of many targets, finished or not."""
    return any((folder / name).is_file() for name in _OF_MANY)


def begin_many(folder: Path, targets: Iterable[str]) -> None:
    """Make a folder known as one of many targets, before anything else is in it; one of one target is refused."""
    if any((folder / name).is_file() for name in _OF_ONE):
        got = f"{folder}, which holds the results of one target"
        raise invalid("out", expected="a folder for many targets", got=got, advice="Choose another one.")
    remove_leftovers(folder)
    remove_leftovers(folder / "model")
    write_json(folder / TARGETS, {"targets": list(targets)})


def require_for_one(folder: Path) -> None:
    """Raise for a folder of many targets, whose source model the results of one would replace."""
    if holds_many(folder):
        got = f"{folder}, which holds many targets"
        raise invalid("out", expected="a folder for one target", got=got, advice="Choose another one.")


def _rows_expected(folder: Path) -> int | None:
    if not (folder / "summary.json").is_file():
        return None
    summary = read_json(folder / "summary.json")
    test = summary.get("test") if isinstance(summary, dict) else None
    return test.get("windows") if isinstance(test, dict) else None
