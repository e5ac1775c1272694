"""What an adaptation leaves in a folder: `predictions.csv`, `summary.json`, `metrics.json`; `failed.json` if it failed.

A job also leaves `explanation.npz` and `shift.json`. The report is made of these files alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl import TransPL, __version__
from transpl._utils.files import replacing, write_json
from transpl._utils.metrics import accuracy, macro_f1
from transpl.council import CouncilExplanation
from transpl.datasets.recordings.reading import Recordings
from transpl.estimator.validation import plain
from transpl.jobs.result_folders import PROBABILITY
from transpl.markov import Explanation, windows_to_explain

NO_LABEL = ""
_NAMED = 10  # classes in a note
_DIGITS = 6  # of shapes that are only drawn
TRUE_LABEL = "true_label"  # column with what a person said
LABEL_BEFORE = "label_before"  # column with the label before adaptation
ESTIMATE = "estimated_accuracy"  # in metrics.json and summary.json


@dataclass(frozen=True)
class Target:
    """Target windows; `y` ("" where unknown) is for scoring only and never reaches the model.

    where : columns that tell where each window comes from (group, start), copied to predictions.csv
    groups : (n,) recordings, if their windows are to be labelled together
    """

    X: Any
    y: NDArray | None = None
    where: pd.DataFrame | None = None
    groups: NDArray | None = None


@dataclass(frozen=True)
class About:
    """What a summary says of the data beside the model's own numbers.

    labels_given : to how many target windows a person gave a label
    source_windows, source_shares : None where a model was loaded and its source rows are not at hand
    """

    source_name: str
    target_name: str
    target_windows: int
    channel_names: tuple[str, ...]
    labels_given: int = 0
    source_windows: int | None = None
    source_shares: dict[str, float] | None = None
    prior: dict[str, float] | None = None


def where(recordings: Recordings) -> pd.DataFrame:
    """Where each window comes from: its number, and group, domain and first sample where they are known."""
    columns = {"window": np.arange(len(recordings.X))}
    known = {name: getattr(recordings, name) for name in ("domain", "group", "start")}
    return pd.DataFrame(columns | {name: values for name, values in known.items() if values is not None})


def predictions_table(
    model: TransPL, X: Any, where: pd.DataFrame | None = None, before: NDArray | None = None, **order: Any
) -> pd.DataFrame:
    """One row per window: where it comes from, label, confidence, one probability per class.

    before : the labels before adaptation, for a column of their own
    order : `groups` and `smooth`, as `predict_proba` takes them
    """
    p = model.predict_proba(X, **order)
    table = pd.DataFrame({"window": np.arange(len(p))}) if where is None else where.reset_index(drop=True).copy()
    table["label"], table["confidence"] = model.classes_[p.argmax(axis=1)], p.max(axis=1)
    if before is not None:
        table[LABEL_BEFORE] = before
    return pd.concat([table, pd.DataFrame(p, columns=[f"{PROBABILITY}{name}" for name in model.classes_])], axis=1)


def probabilities_in(table: pd.DataFrame, n_classes: int) -> NDArray[np.float64]:
    """The last columns of a table of predictions, (n, K)."""
    return np.ascontiguousarray(table.iloc[:, -n_classes:].to_numpy(np.float64))


def explanation_of_some(
    model: TransPL, X: Any, probabilities: NDArray[np.float64], channel_names: tuple[str, ...]
) -> Explanation | CouncilExplanation:
    """Explain so many windows as a page can show, with their row numbers in X; see `windows_to_explain` for the choice.

    probabilities : (n, K) what was answered for all of X, by which the least confident are known
    """
    rows = windows_to_explain(probabilities)
    some = [X[row] for row in rows] if isinstance(X, list | tuple) else X[rows]
    found = model.explain(some, channel_names=channel_names)
    return replace(found, windows=rows, answers=probabilities[rows])


def not_scored(target: Target, rows: list[int]) -> Target:
    """The target without the true labels of some rows."""
    if target.y is None or not rows:
        return target
    y = target.y.astype(str)
    y[rows] = NO_LABEL
    return replace(target, y=None if (y == NO_LABEL).all() else y)


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as csv, atomically."""
    with replacing(path) as part:
        table.to_csv(part, index=False)


def estimated_accuracy(model: TransPL) -> dict[str, float] | None:
    """What an adapted model thinks of itself, as plain data; None of one that does not judge itself."""
    found = model.fitted_method().estimate
    return None if found is None else {name: float(value) for name, value in found._asdict().items()}


def with_estimate(metrics: dict[str, Any] | None, estimate: dict[str, float] | None) -> dict[str, Any] | None:
    """Scores, if there are any, and behind them the estimated accuracy, if there is one."""
    return metrics if estimate is None else {**(metrics or {}), ESTIMATE: estimate}


def write_metrics(path: Path, metrics: dict[str, Any] | None) -> None:
    """Write scores; where there are none, none of a former run stay."""
    if metrics is None:
        path.unlink(missing_ok=True)
    else:
        write_json(path, metrics)


def scores(truth: NDArray, before: NDArray, after: NDArray) -> dict[str, Any]:
    """Scores of the labels before and after adaptation, and which were taken for which."""
    return {"before": score(truth, before), "after": score(truth, after), "confusion": _confusion(truth, after)}


def score(truth: NDArray, labels: NDArray) -> dict[str, float]:
    """How many windows have a known truth; accuracy and macro-F1 on them."""
    a, b = _known(truth, labels)
    return {"windows": len(a), "accuracy": accuracy(a, b), "macro_f1": macro_f1(a, b)}


def doubt_unknown_classes(truth: NDArray | None, classes: NDArray) -> None:
    """Warn of true labels that the model cannot give: perhaps the same classes under other names."""
    if truth is None:
        return
    names = [str(name) for name in classes]
    unknown = sorted(set(truth.astype(str).tolist()) - {*names, NO_LABEL})
    if unknown:
        warnings.warn(
            f"the target's labels {', '.join(map(repr, unknown[:_NAMED]))} are no classes of the source "
            f"({', '.join(map(repr, names[:_NAMED]))}), so that their windows count as wrong.",
            stacklevel=2,
        )


def class_shares(labels: NDArray, classes: NDArray) -> dict[str, float]:
    """The share of each class in the labels that are known."""
    text, _ = _known(labels, labels)
    return {str(name): float((text == str(name)).mean()) for name in classes}


def channel_shift(model: TransPL) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distance and weight of each channel; the costly part, the alignment, is done once."""
    distances = model.channel_distances_
    return distances, model.fitted_method().trust(distances)


def summary(
    model: TransPL, about: About, labels: NDArray, truth: NDArray | None, before: NDArray | None = None
) -> dict[str, Any]:
    """All that the report tells beside the scores, as plain data.

    labels : those after adaptation; before : those before it, if they are known
    """
    return {
        "transpl_version": __version__,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": {"name": about.source_name, "windows": about.source_windows, "class_shares": about.source_shares},
        "target": {
            "name": about.target_name,
            "windows": about.target_windows,
            "labels_given": about.labels_given,
        },
        "test": {
            "windows": len(labels),
            "class_shares": class_shares(labels, model.classes_),
            "true_class_shares": None if truth is None else class_shares(truth, model.classes_),
            "changed": None if before is None else int((before != labels).sum()),
        },
        "variant": model.variant,
        "mode": model.mode_,
        **_council(model, about.channel_names),
        "prior": about.prior,
        "classes": [str(name) for name in model.classes_],
        "channels": [
            {"name": name, "distance": float(distance), "weight": float(weight)}
            for name, distance, weight in zip(about.channel_names, *channel_shift(model), strict=True)
        ],
        "sigma": plain(model.sigma),
        "codebook_usage": {
            book: {"counts": usage.counts.tolist(), "perplexity": usage.perplexity, "dead": usage.dead}
            for book, usage in model.codebook_usage_.items()
        },
        "decoded_codes": model.fitted_method().decoded_codes["coarse"].round(_DIGITS).tolist(),
        "history": model.history_,
        "seconds": model.seconds_,
    }


def _council(model: TransPL, channel_names: tuple[str, ...]) -> dict[str, Any]:
    """What only the variant "plus" knows: how good it is, what it undid, whom it believed."""
    estimate, method = estimated_accuracy(model), model.fitted_method()
    if estimate is None:
        return {}
    return {
        ESTIMATE: estimate,
        "undone": list(method.undone(channel_names)),
        "witnesses": [
            {"witness": each.witness, "view": each.view, "accuracy": float(each.accuracy)}
            for each in method.standings()
        ],
    }


def write_failure(folder: Path, error: str, traceback: str | None, what_to_do: str) -> None:
    """Leave a record of what went wrong."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"when": when, "error": error, "traceback": traceback, "what_to_do": what_to_do}
    write_json(folder / "failed.json", record)


def _confusion(truth: NDArray, labels: NDArray) -> dict[str, Any]:
    a, b = _known(truth, labels)
    names = np.union1d(a, b)
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (np.searchsorted(names, a), np.searchsorted(names, b)), 1)
    return {"labels": names.tolist(), "counts": counts.tolist()}


def _known(truth: NDArray, labels: NDArray) -> tuple[NDArray, NDArray]:
    """Both as text, where the truth is known."""
    known = truth.astype(str) != NO_LABEL
    return truth[known].astype(str), labels[known].astype(str)
