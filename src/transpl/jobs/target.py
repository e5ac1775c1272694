"""Adapt a source model to one target, label and score its windows, and write the target's folder.

`adapt_target` is the whole workflow. A job for one target calls it once, a job for many once per target.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from transpl import TransPL
from transpl._utils.files import write_json
from transpl._utils.hashing import hash_file
from transpl.council import CouncilExplanation
from transpl.datasets.recordings.reading import Recordings
from transpl.estimator.validation import few_label_indices
from transpl.jobs.folder import (
    CHECK,
    LABEL_BEFORE,
    PROBABILITY,
    SAMPLE_FILE,
    SEGMENTS,
    TRUE_LABEL,
    TRUTH,
    Sample,
    save_reading,
    save_sample,
    write_table,
    writing_results,
)
from transpl.jobs.review_order import check_order
from transpl.jobs.segments import at_changes, segments_of
from transpl.jobs.target_summary import ESTIMATE, MAX_NAMES, NO_LABEL, estimated_accuracy, scores_of, summary_of
from transpl.markov import Explanation, ShiftReport, windows_to_explain
from transpl.windows import PseudoLabels, override_probabilities

_FILES = (
    *("summary.json", "predictions.csv", "metrics.json", "report.html"),
    *("explanation.npz", "shift.json", SAMPLE_FILE, SEGMENTS),
)


@dataclass(frozen=True)
class Target:
    """Target windows.

    Parameters
    ----------
    X
        windows as `TransPL.adapt` takes them
    y
        (n,) labels, "" or masked where unknown; they only score and never reach the model
    origin
        a row per window that says where it comes from (group, start), copied to predictions.csv
    groups
        (n,) names of the recordings, if the windows of a recording are labelled together
    """

    X: Any
    y: NDArray | None = None
    origin: pd.DataFrame | None = None
    groups: NDArray | None = None

    def __post_init__(self) -> None:
        if np.ma.is_masked(self.y):
            object.__setattr__(self, "y", np.ma.filled(np.ma.asarray(self.y).astype(str), NO_LABEL))


@dataclass(frozen=True)
class AdaptTask:
    """What `adapt_target` does.

    Parameters
    ----------
    name
        of the target
    target
        adapted to, without its labels
    mode
        as in `TransPL.adapt`
    channel_names
        one per channel
    source
        what summary.json says of the source: its name, windows and class shares, None where they are not known
    test
        windows that are labelled and scored; None: those of the target
    prior
        known class shares of the target, by label or (K,) in the order of `classes_`
    few_labels
        {row of the target: label} given by a person; these rows are not scored
    smooth
        windows follow one another in time, so that neighbours seldom differ
    explain
        also explain the predictions and report what shifted
    """

    name: str
    target: Target
    mode: str
    channel_names: tuple[str, ...]
    source: dict[str, Any]
    test: Target | None = None
    prior: ArrayLike | dict[str, float] | None = None
    few_labels: dict[int, str] | None = None
    smooth: bool = False
    explain: bool = False


@dataclass(frozen=True, eq=False)
class AdaptResult:
    """What is known of a target after adaptation; the fields are the files of its folder."""

    predictions: pd.DataFrame
    summary: dict[str, Any]
    scores: dict[str, Any] | None = None
    estimate: dict[str, float] | None = None
    explanation: Explanation | CouncilExplanation | None = None
    shift: ShiftReport | None = None

    @property
    def metrics(self) -> dict[str, Any] | None:
        """Scores and estimated accuracy, as metrics.json has them; None if there is neither."""
        estimate = {} if self.estimate is None else {ESTIMATE: self.estimate}
        return {**(self.scores or {}), **estimate} or None


def adapt_target(model: TransPL, task: AdaptTask, finished: TransPL | None = None) -> AdaptResult:
    """Adapt a fitted source model to a target, then label, score and, if asked, explain its windows.

    `model` is the adapted model afterwards. `finished` : the same model, already adapted to this target.
    """
    few = task.few_labels or {}
    target = _without_labels_of(task.target, list(few))
    test = _with_given_labels(target, few) if task.test is None else task.test
    warn_unknown_classes(test.y, model.classes_)
    before = model.predict(test.X)
    if finished is not None:
        model.__dict__.update(finished.__dict__)
    else:
        model.adapt(
            target.X,
            prior=task.prior,
            mode=task.mode,
            few_labels=task.few_labels,
            groups=target.groups,
            smooth=task.smooth,
        )
    predictions = predictions_table(model, test.X, test.origin, before, test.y, groups=test.groups, smooth=task.smooth)
    labels = predictions["label"].to_numpy()
    needs_pseudo_labels = task.explain or target.y is not None
    pseudo = model.pseudo_label(target.X) if needs_pseudo_labels else None
    answers = None if pseudo is None else pseudo.labels
    if target.y is not None and (target.groups is not None or task.smooth):
        answers = model.predict(target.X, groups=target.groups, smooth=task.smooth)
    scores = scores_of(target.y, answers, test.y, before, labels)
    if scores and few:
        scores["labels_given"] = len(few)

    explanation = shift = None
    if task.explain and pseudo is not None:
        probabilities = probabilities_of(predictions, len(model.classes_))
        order = np.argsort(predictions[CHECK].to_numpy(), kind="stable")
        explanation = explain_some(model, test.X, probabilities, order, task.channel_names)
        shift = _shift_report(model, task, pseudo)
    truth = (task.target if task.test is None else task.test).y
    summary = summary_of(model, task, labels, truth, before, _unread_channels(model, shift))
    return AdaptResult(predictions, summary, scores or None, estimated_accuracy(model), explanation, shift)


def write_target_folder(
    folder: Path,
    result: AdaptResult,
    model: TransPL | None,
    *,
    reading: dict[str, Any] | None = None,
    record_source: Callable[[Path], None] | None = None,
    sample: Sample | None = None,
    receipt: dict[str, Any] | None = None,
) -> None:
    """Replace all results in a folder.

    Parameters
    ----------
    model
        the adapted model, if it is kept
    reading
        how the recordings were read, saved beside the model
    record_source
        called with the folder of the saved model, to record what its source model was trained on
    sample
        windows of both domains, for figures
    receipt
        for summary.json, by which `adapt_many` recognises results that it finished earlier
    """
    with writing_results(folder):
        for name in _FILES:
            (folder / name).unlink(missing_ok=True)
        if model is None:
            shutil.rmtree(folder / "model", ignore_errors=True)
        else:
            model.save(folder / "model")
            save_reading(folder, reading)
            if record_source is not None:
                record_source(folder / "model")
        write_table(folder / "predictions.csv", result.predictions)
        if (segments := segments_of(result.predictions)) is not None:
            write_table(folder / SEGMENTS, segments)
        if result.explanation is not None:
            result.explanation.save(folder / "explanation.npz")
        if result.shift is not None:
            result.shift.save(folder / "shift.json")
        if sample is not None:
            save_sample(sample, folder)
        if result.metrics is not None:
            write_json(folder / "metrics.json", result.metrics)
        many = {} if receipt is None else {"many": {**receipt, "predictions": hash_file(folder / "predictions.csv")}}
        write_json(folder / "summary.json", {**result.summary, **many})


def origin_of(recordings: Recordings) -> pd.DataFrame:
    """Where each window comes from: its number and, where known, domain, group, first and last row and time."""
    columns = {"window": np.arange(len(recordings.X))}
    known = {name: getattr(recordings, name) for name in ("domain", "group", "start", "end", "time", "time_end")}
    return pd.DataFrame(columns | {name: values for name, values in known.items() if values is not None})


def predictions_table(
    model: TransPL,
    X: Any,
    origin: pd.DataFrame | None = None,
    before: NDArray | None = None,
    truth: NDArray | None = None,
    **order: Any,
) -> pd.DataFrame:
    """Label windows: a row per window with its origin, label, confidence, rank to check and a probability per class.

    Parameters
    ----------
    before
        (n,) labels before adaptation, written as another column
    truth
        (n,) true labels, "" where unknown, written as another column
    **order
        `groups` and `smooth`, as in `TransPL.predict_proba`
    """
    p = model.predict_proba(X, **order)
    table = pd.DataFrame({"window": np.arange(len(p))}) if origin is None else origin.reset_index(drop=True).copy()
    table["label"], table["confidence"] = model.classes_[p.argmax(axis=1)], p.max(axis=1)
    shares = model.fitted_method().expected_shares
    table[CHECK] = 1 + np.argsort(check_order(p, shares, at_changes(table)), kind="stable")
    if before is not None:
        table[LABEL_BEFORE] = before
    if truth is not None:
        table[TRUTH] = truth.astype(str)
    return pd.concat([table, pd.DataFrame(p, columns=[f"{PROBABILITY}{name}" for name in model.classes_])], axis=1)


def probabilities_of(predictions: pd.DataFrame, n_classes: int) -> NDArray[np.float64]:
    """The probabilities of a table of predictions, its last columns, (n, K)."""
    return np.ascontiguousarray(predictions.iloc[:, -n_classes:].to_numpy(np.float64))


def explain_some(
    model: TransPL,
    X: Any,
    probabilities: NDArray[np.float64],
    order: NDArray[np.int64],
    channel_names: tuple[str, ...],
) -> Explanation | CouncilExplanation:
    """Explain as many windows as a page can show; `windows_to_explain` chooses them, by all probabilities (n, K)."""
    rows = windows_to_explain(probabilities, order=order)
    some = [X[row] for row in rows] if isinstance(X, list | tuple) else X[rows]
    found = model.explain(some, channel_names=channel_names)
    return replace(found, windows=rows, answers=probabilities[rows])


def warn_unknown_classes(truth: NDArray | None, classes: NDArray) -> None:
    """Warn of true labels that the model cannot predict: they may be its classes under other names."""
    if truth is None:
        return
    names = [str(name) for name in classes]
    unknown = sorted(set(truth.astype(str).tolist()) - {*names, NO_LABEL})
    if unknown:
        warnings.warn(
            f"the target's labels {', '.join(map(repr, unknown[:MAX_NAMES]))} are not classes of the source "
            f"({', '.join(map(repr, names[:MAX_NAMES]))}); their windows count as wrong.",
            stacklevel=2,
        )


def _shift_report(model: TransPL, task: AdaptTask, pseudo: PseudoLabels) -> ShiftReport:
    report = model.shift_report(channel_names=task.channel_names)
    if report.target_shares is not None:
        return report
    known = few_label_indices(task.few_labels, len(task.target.X), model.classes_)
    return replace(report, target_shares=override_probabilities(pseudo.probabilities, known).mean(axis=0))


def _unread_channels(model: TransPL, shift: ShiftReport | None) -> list[str]:
    """Channels whose codes are all alike; the council has witnesses that read more than codes."""
    if shift is None or model.variant != "paper":
        return []
    return [name for name, unread in zip(shift.channel_names, shift.unread, strict=True) if unread]


def _without_labels_of(target: Target, rows: list[int]) -> Target:
    """The target without the true labels of some rows, so that they are not scored."""
    if target.y is None or not rows:
        return target
    y = target.y.astype(str)
    y[rows] = NO_LABEL
    return replace(target, y=None if (y == NO_LABEL).all() else y)


def _with_given_labels(target: Target, few_labels: dict[int, str]) -> Target:
    """The target with a column for predictions.csv of the labels that a person gave."""
    if not few_labels:
        return target
    table = pd.DataFrame({"window": np.arange(len(target.X))}) if target.origin is None else target.origin
    given = pd.Series(few_labels).reindex(range(len(target.X)), fill_value=NO_LABEL).to_numpy()
    return replace(target, origin=table.reset_index(drop=True).assign(**{TRUE_LABEL: given}))
