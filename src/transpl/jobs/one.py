"""The main job, data in, folder out: fit, adapt, label, score, save. `transpl.report` makes a page of the folder.

The folder holds `model/`, `predictions.csv`, `explanation.npz` (of a choice of windows), `shift.json`, `summary.json`,
`metrics.json` (the estimated accuracy, and scores where labels exist), `sample.npz` (a few windows, for figures) and
`report.html`.
An interrupted job goes on where it stopped; a failed one leaves `failed.json`, and one that stopped while results were
written `unfinished.json`.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl import TransPL
from transpl._utils.errors import InputError, invalid, unreadable_file
from transpl._utils.files import read_json, write_json
from transpl.datasets import Dataset
from transpl.datasets.recordings.reading import Recordings
from transpl.estimator.validation import HOLDOUT_SHARE, few_label_indices, prior_shares
from transpl.estimator.variants import check_mode
from transpl.jobs.kept_sources import WantedSource, checkpoints_in
from transpl.jobs.many.targets import READING
from transpl.jobs.result_folders import being_written, holds_many, require_for_one, require_whole
from transpl.jobs.results import (
    NO_LABEL,
    TRUE_LABEL,
    About,
    Target,
    class_shares,
    doubt_unknown_classes,
    estimated_accuracy,
    explanation_of_some,
    not_scored,
    predictions_table,
    probabilities_in,
    score,
    scores,
    summary,
    where,
    with_estimate,
    write_failure,
    write_metrics,
    write_table,
)
from transpl.jobs.review import read_labels
from transpl.jobs.sample import sample_of, save_sample
from transpl.windows import override_probabilities

Say = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Source windows (n, channels, time) with their labels."""

    X: NDArray
    y: NDArray


@dataclass(frozen=True)
class Job:
    """source trains, validation (or a held-out part of source) decides when to stop, target is adapted to without
    labels, test (by default the target itself) is labelled and, where labels are known, scored.

    few_labels : {row of the target: label} that a person gave; these rows are not scored
    smooth : windows of target and test follow one another in time (within a group), and neighbours seldom differ
    reading : how the recordings were read, for `predict`
    """

    source: Source
    target: Target
    channel_names: tuple[str, ...]
    source_name: str = "source"
    target_name: str = "target"
    validation: Source | None = None
    test: Target | None = None
    prior: dict[str, float] | None = None
    mode: str | None = None  # the model's own
    few_labels: dict[int, str] | None = None
    smooth: bool = False
    reading: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """Where the results are, what metrics.json holds if it was written, and what was undone, a sentence each."""

    folder: Path
    metrics: dict[str, Any] | None
    undone: tuple[str, ...] = ()


def run(
    job: Job, model: TransPL, out: Path, say: Say = lambda line: None, *, source_from: Path | None = None
) -> Outcome:
    """Do the job with an unfitted `model` and write everything to `out`.

    source_from : folder of an earlier job, whose source model is taken; the same rows and settings of the source phase
        must have trained it. The one in `out` is taken without asking if they have. `model` then stays unfitted:
        `load_model` has the adapted one
    """
    _check(job, model)
    require_for_one(out)
    if model.channel_names is None:
        model.set_params(channel_names=job.channel_names)
    wanted = wanted_source(job.source, job.validation, model)
    with checkpoints_in(model, out / "checkpoints"):
        demanded = None if source_from is None else wanted.demanded_from(source_from)  # before anything is written
        out.mkdir(parents=True, exist_ok=True)
        with record_of_failure(out):
            fitted = wanted.fitted(demanded, out / "model", job.source_name, say)
            return _run(job, fitted, wanted, out, say)


def from_dataset(
    data: Dataset, source: int, target: int, *, mode: str | None = None, all_source: bool = False, hold_out: bool = True
) -> Job:
    """Adapt to the train part of the target domain and score on its test part.

    The paper's protocol trains on the source's train part and lets its test part decide when to stop. With
    `all_source` windows of both parts train, and the end of each is held out, as with a user's own files; without
    `hold_out` none is, which suits the variant "plus".
    """
    names = np.array(data.class_names)
    here, there = data.domain(source), data.domain(target)
    train: Source = Source(here.X_train, names[here.y_train])
    validation: Source | None = Source(here.X_test, names[here.y_test])
    if all_source:
        X, y = np.concatenate([here.X_train, here.X_test]), names[np.concatenate([here.y_train, here.y_test])]
        part = np.repeat(["train", "test"], [len(here.y_train), len(here.y_test)])
        train, validation = hold_out_ends(X, y, part) if hold_out else (Source(X, y), None)
    return Job(
        source=train,
        validation=validation,
        target=Target(there.X_train, names[there.y_train]),
        test=Target(there.X_test, names[there.y_test]),
        channel_names=data.channel_names,
        source_name=f"{data.name} {source}",
        target_name=f"{data.name} {target}",
        mode=mode,
        reading={"channels": list(data.channel_names), "window": data.X.shape[2]},
    )


def from_recordings(
    source: Recordings,
    target: Recordings,
    *,
    labels: Sequence[Path] = (),
    one_label_per_group: bool = False,
    hold_out: bool = True,
    **options: Any,
) -> Job:
    """Two sets of recordings: labelled source, target whose labels (if any) only score.

    labels : files with windows of the target that a person labelled, as `transpl review` lists them
    one_label_per_group : all windows of a recording of the target have one label
    hold_out : whether the ends of the source's recordings are for validation, which "plus" does not need
    """
    if source.channel_names != target.channel_names:
        raise invalid(
            "target",
            expected=f"channels {', '.join(source.channel_names)}",
            got=", ".join(target.channel_names),
            advice="If the source has no names, give them in its order (--channels).",
        )
    if one_label_per_group and target.group is None:
        advice = "Name the column of the recordings: --group-col."
        raise invalid("one_label_per_group", expected="recordings with names", got="none", advice=advice)
    train, validation = labelled_source(source, hold_out=hold_out)
    groups = target.group if one_label_per_group or options.get("smooth") else None
    return Job(
        source=train,
        validation=validation,
        target=Target(target.X, target.y, where(target), groups),
        channel_names=source.channel_names,
        few_labels=read_labels(labels, target, np.unique(train.y).tolist()) if labels else None,
        **options,
    )


def labelled_source(source: Recordings, *, hold_out: bool = True) -> tuple[Source, Source | None]:
    """The labelled windows of recordings, those for validation apart if there are to be any."""
    if source.y is None:
        raise invalid("source", expected="labels", got="none", advice="Name their column (--label-col), and fill it.")
    labelled = source.y != NO_LABEL
    if not hold_out:
        return Source(source.X[labelled], source.y[labelled]), None
    group = None if source.group is None else source.group[labelled]
    return hold_out_ends(source.X[labelled], source.y[labelled], group)


def hold_out_ends(X: NDArray, y: NDArray, group: NDArray | None = None) -> tuple[Source, Source | None]:
    """Split off the last windows of every class in every group, for validation.

    Windows overlap: a random split would validate on samples that are also trained on.
    """
    keys = y if group is None else np.char.add(np.char.add(group.astype(str), "/"), y.astype(str))
    held = np.zeros(len(y), dtype=bool)
    for key in np.unique(keys):
        rows = np.flatnonzero(keys == key)
        held[rows[len(rows) - round(HOLDOUT_SHARE * len(rows)) :]] = True
    if not held.any():
        return Source(X, y), None
    return Source(X[~held], y[~held]), Source(X[held], y[held])


def remember_reading(out: Path, reading: dict[str, Any] | None) -> None:
    """Keep how the recordings were read beside the model, so that `predict` reads new ones the same way."""
    if reading is None:
        (out / "model" / "reading.json").unlink(missing_ok=True)
    else:
        write_json(out / "model" / "reading.json", reading)


def load_model(folder: Path) -> tuple[TransPL, dict[str, Any]]:
    """Load a model from a job's folder or from a model folder, and how its recordings were read."""
    if folder.is_file():
        raise invalid("model", expected="a folder that transpl adapt wrote", got=folder, advice="Point at the folder.")
    home = folder / "model" if (folder / "model" / "model.json").is_file() else folder
    require_whole(home)
    reading = read_json(home / "reading.json") if (home / "reading.json").is_file() else {}
    if not isinstance(reading, dict) or not set(reading) <= READING:
        problem, advice = "not written by transpl adapt", "Delete it, and say how to read on the command line."
        raise unreadable_file(home / "reading.json", problem=problem, advice=advice)
    model = TransPL.load(home)
    if holds_many(folder):
        warnings.warn(
            f"{folder} holds several targets, and this is their source model, not adapted. Point at one of its "
            "folders for that of a target.",
            stacklevel=2,
        )
    return model, reading


def _run(job: Job, model: TransPL, wanted: WantedSource, out: Path, say: Say) -> Outcome:
    few = job.few_labels or {}
    target = not_scored(job.target, list(few))
    test = _with_labels_given(target, few) if job.test is None else job.test
    doubt_unknown_classes(test.y, model.classes_)
    before = model.predict(test.X)
    by_hand = f", {len(few)} labels given" if few else ""
    mode = job.mode or model.own_mode
    say(f"adaptation: {len(job.target.X)} unlabelled windows of {job.target_name}, mode {mode}{by_hand}")
    model.adapt(
        job.target.X,
        prior=job.prior,
        mode=mode,
        few_labels=job.few_labels,
        groups=job.target.groups,
        smooth=job.smooth,
    )
    pseudo = model.pseudo_label(job.target.X)
    table = predictions_table(model, test.X, test.where, before, groups=test.groups, smooth=job.smooth)

    shift = model.shift_report(channel_names=job.channel_names)
    if shift.target_shares is None:  # `adapt` labelled nothing
        known = few_label_indices(job.few_labels, len(job.target.X), model.classes_)
        shift = replace(shift, target_shares=override_probabilities(pseudo.probabilities, known).mean(axis=0))
    y = probabilities_in(table, len(model.classes_))

    labels = table["label"].to_numpy()
    explanation = explanation_of_some(model, test.X, y, job.channel_names)
    metrics = with_estimate(_metrics(target, test, before, pseudo.labels, labels, len(few)), estimated_accuracy(model))
    truth = job.target.y if job.test is None else job.test.y
    about = summary(model, _about(job, model), labels, truth, before)
    with being_written(out):
        (out / "report.html").unlink(missing_ok=True)
        write_table(out / "predictions.csv", table)
        explanation.save(out / "explanation.npz")
        shift.save(out / "shift.json")
        model.save(out / "model")
        wanted.record(out / "model")
        remember_reading(out, job.reading)
        save_sample(sample_of(job.source.X, job.source.y, job.target.X, job.channel_names), out)
        write_metrics(out / "metrics.json", metrics)
        write_json(out / "summary.json", about)
    return Outcome(out, metrics, tuple(about.get("undone", ())))


def wanted_source(source: Source, validation: Source | None, model: TransPL) -> WantedSource:
    """What an unfitted model is to learn from."""
    held_out = () if validation is None else (validation.X, validation.y)
    return WantedSource(model, source.X, source.y, *held_out)


def _metrics(
    target: Target, test: Target, before: NDArray, pseudo: NDArray, after: NDArray, labels_given: int
) -> dict[str, Any] | None:
    """Scores of the labels before and after adaptation, and of the pseudo-labels, where the truth is known."""
    result: dict[str, Any] = {}
    if target.y is not None:
        result["pseudo_labels"] = score(target.y, pseudo)
    if test.y is not None:
        result |= scores(test.y, before, after)
    if result and labels_given:
        result["labels_given"] = labels_given
    return result or None


def _with_labels_given(target: Target, few_labels: dict[int, str]) -> Target:
    """The target whose predictions.csv also shows what a person said."""
    if not few_labels:
        return target
    table = pd.DataFrame({"window": np.arange(len(target.X))}) if target.where is None else target.where
    said = pd.Series(few_labels).reindex(range(len(target.X)), fill_value=NO_LABEL).to_numpy()
    return replace(target, where=table.reset_index(drop=True).assign(**{TRUE_LABEL: said}))


def _about(job: Job, model: TransPL) -> About:
    return About(
        source_name=job.source_name,
        target_name=job.target_name,
        target_windows=len(job.target.X),
        channel_names=job.channel_names,
        labels_given=len(job.few_labels or {}),
        source_windows=len(job.source.X),
        source_shares=class_shares(job.source.y, model.classes_),
        prior=job.prior,
    )


def _check(job: Job, model: TransPL) -> None:
    check_mode(model.variant, job.mode)
    check_order(model, job.target.groups is not None and not job.smooth, job.smooth)
    channels = job.source.X[0].shape[0]
    if len(job.channel_names) != channels:
        raise invalid(
            "channel_names", expected=f"{channels} names", got=len(job.channel_names), advice="One per channel."
        )
    prior_shares(job.prior, np.unique(job.source.y))  # as `adapt` will, but before anything is trained


def check_order(model: TransPL, one_label_per_group: bool, smooth: bool) -> None:
    """Raise before anything is trained if the model labels every window by itself, and is asked for more."""
    asked = {"one_label_per_group": one_label_per_group, "smooth": smooth}
    for name, given in asked.items():
        if given and model.variant == "paper":
            advice = "Leave it out, or use variant='plus'."
            raise invalid(name, expected="nothing of the kind with variant='paper'", got="it", advice=advice)
    if one_label_per_group and smooth:
        got, advice = "both", "Where a recording has one label, its windows need no order."
        raise invalid("one_label_per_group, smooth", expected="one of them", got=got, advice=advice)


def _advice(error: BaseException) -> str:
    if isinstance(error, InputError):
        return "Mend what the error names, then run it again."
    return "Run the same command again: it goes on from the last checkpoint."


@contextmanager
def record_of_failure(out: Path) -> Iterator[None]:
    """Leave failed.json if the block fails, and none if it does not."""
    try:
        yield
    except BaseException as error:
        with suppress(OSError):  # a disk that is full has no room for this either; the error itself says so
            write_failure(out, f"{type(error).__name__}: {error}", traceback.format_exc(), _advice(error))
        raise
    (out / "failed.json").unlink(missing_ok=True)
