"""The windows to be labelled as a table: what was said of each, why, and an empty column for the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl import TransPL
from transpl._utils.errors import check_int, unreadable_file
from transpl.council import load_explanation
from transpl.datasets.recordings.reading import Recordings
from transpl.datasets.recordings.tables import as_text, read_table
from transpl.jobs.result_folders import PROBABILITY, require_whole, require_whole_predictions
from transpl.jobs.results import TRUE_LABEL, predictions_table, where
from transpl.jobs.review.choosing import least_confident
from transpl.jobs.review.earlier import WHERE, typed_rows, with_typed

Explain = Callable[[NDArray[np.int64]], Sequence[str]]  # row numbers -> a sentence for each


def review_recordings(
    model: TransPL, recordings: Recordings, n: int, *, spread: bool = False, earlier: Path | None = None
) -> pd.DataFrame:
    """The n least confident windows of recordings, as the model labels them now.

    earlier : a list that may be there already; labels typed into it are taken over, see `typed_rows`
    """

    def explain(rows: NDArray[np.int64]) -> list[str]:
        found = model.explain(recordings.X[rows], channel_names=recordings.channel_names, nearest=0)
        return [found.sentence(position) for position in range(len(found))]

    table = predictions_table(model, recordings.X, where(recordings))
    typed = None if earlier is None else typed_rows(earlier, table)
    return _review(table, explain, n, spread, typed)


def review_job(folder: Path, n: int, *, spread: bool = False, earlier: Path | None = None) -> pd.DataFrame:
    """The n least confident windows that a job labelled, without those that a person has labelled before.

    earlier : as in `review_recordings`
    """
    require_whole(folder)
    path = folder / "predictions.csv"
    if not path.is_file():
        advice = "Point at a folder written by transpl adapt, or give recordings (--input)."
        raise unreadable_file(folder, problem="no predictions.csv in it", advice=advice)
    table = read_table(path, text=["domain", "group", "label", TRUE_LABEL], exact=True)  # ranks hang on the last bit
    if not {"window", "label", "confidence"} <= set(table.columns):
        raise unreadable_file(path, problem="not written by transpl adapt", advice="Run transpl adapt again.")
    require_whole_predictions(folder, table)
    typed = None if earlier is None else typed_rows(earlier, table)
    if TRUE_LABEL in table:
        table = table[as_text(table[TRUE_LABEL]) == ""].reset_index(drop=True)
    return _review(table, _sentences(folder / "explanation.npz"), n, spread, typed)


def _review(table: pd.DataFrame, explain: Explain, n: int, spread: bool, typed: pd.DataFrame | None) -> pd.DataFrame:
    check_int("n", n, least=1)
    rows = least_confident(as_text(table["label"]), table["confidence"], n, spread=spread)
    chosen = table.iloc[rows].reset_index(drop=True)
    runner_up, probability = _runners_up(chosen)
    found = pd.DataFrame(
        {
            **{name: chosen[name] for name in WHERE if name in chosen},
            "label": chosen["label"],
            "confidence": chosen["confidence"],
            "runner_up": runner_up,
            "runner_up_probability": probability,
            TRUE_LABEL: "",
            "explanation": explain(chosen["window"].to_numpy(np.int64)),
        }
    )
    return found if typed is None else with_typed(found, typed)


def _runners_up(table: pd.DataFrame) -> tuple[NDArray, NDArray[np.float64]]:
    """The second most probable class of each row, and its probability."""
    p = table[[name for name in table.columns if name.startswith(PROBABILITY)]]
    second = np.argsort(-p.to_numpy(np.float64), axis=1, kind="stable")[:, 1]
    names = np.array([name.removeprefix(PROBABILITY) for name in p.columns])
    return names[second], p.to_numpy(np.float64)[np.arange(len(p)), second]


def _sentences(path: Path) -> Explain:
    """Sentences of the windows that a job explained; of others there are none."""
    if not path.is_file():
        return lambda rows: [""] * len(rows)
    found = load_explanation(path)
    place = {int(window): position for position, window in enumerate(found.windows)}
    return lambda rows: [found.sentence(place[row]) if row in place else "" for row in rows.tolist()]
