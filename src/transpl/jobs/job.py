"""The main job: adapt from a labelled source to one target, label and score it, and leave everything in a folder.

An interrupted job continues where it stopped; `transpl.jobs.folder` describes the files, `transpl.report` makes a page
of them. `transpl.jobs.many_job` does the same for many targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl import TransPL
from transpl._utils.errors import invalid
from transpl._utils.locks import writing
from transpl.datasets import Dataset
from transpl.datasets.recordings.reading import Recordings
from transpl.estimator import MODES, check_mode
from transpl.estimator.validation import HOLDOUT_SHARE, prior_shares
from transpl.jobs.adapted_models import adaptation_digest, find_adapted, record_adaptation
from transpl.jobs.folder import recording_failure, require_one_target, sample_of
from transpl.jobs.review import read_labels
from transpl.jobs.source_models import checkpoints_in, describe_model, load_source, source_model_cache
from transpl.jobs.target import AdaptTask, Target, adapt_target, origin_of, write_target_folder
from transpl.jobs.target_summary import NO_LABEL, class_shares
from transpl.windows import TRANSPOSED

Log = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """Source windows (n, channels, time) with their labels."""

    X: NDArray
    y: NDArray


@dataclass(frozen=True)
class Job:
    """What `run` does.

    Parameters
    ----------
    source
        trains the source model
    target
        is adapted to without its labels
    channel_names
        one per channel
    validation
        decides when training stops; None: a held-out part of the source
    test
        is labelled and, where labels are known, scored; None: the target
    prior
        known class shares of the target
    mode
        as in `TransPL.adapt`
    few_labels
        {row of the target: label} given by a person; these rows are not scored
    smooth
        windows of target and test follow one another in time (within a group), so that neighbours seldom differ
    reading
        how the recordings were read, for `transpl predict`
    """

    source: Source
    target: Target
    channel_names: tuple[str, ...]
    source_name: str = "source"
    target_name: str = "target"
    validation: Source | None = None
    test: Target | None = None
    prior: dict[str, float] | None = None
    mode: str | None = None
    few_labels: dict[int, str] | None = None
    smooth: bool = False
    reading: dict[str, Any] | None = None


@dataclass(frozen=True)
class JobOutcome:
    """Where the results are, metrics.json, a sentence for each shift that was undone, and reasons to look first."""

    folder: Path
    metrics: dict[str, Any] | None
    undone: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def from_dataset(
    data: Dataset, source: int, target: int, *, mode: str | None = None, all_source: bool = False, hold_out: bool = True
) -> Job:
    """A job that adapts to the train part of the target domain and scores on its test part.

    Parameters
    ----------
    all_source
        train on both parts of the source domain, as with a user's own files. The paper's protocol (the default) trains
        on the train part and stops by the test part
    hold_out
        with `all_source`: hold out the end of each part to decide when training stops, which variant "plus" does not
        need
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
    """A job that adapts from labelled recordings to others, whose labels (if any) only score.

    Parameters
    ----------
    labels
        files with windows of the target that a person labelled, as `transpl review` lists them
    one_label_per_group
        all windows of a recording of the target have one label
    hold_out
        hold out the ends of the source's recordings to decide when training stops, which variant "plus" does not need
    **options
        further fields of `Job`
    """
    if source.channel_names != target.channel_names:
        is_transposed = not target.named and target.X.shape[2] == len(source.channel_names)
        raise invalid(
            "target",
            expected=f"channels {', '.join(source.channel_names)}",
            got=", ".join(target.channel_names),
            advice=TRANSPOSED if is_transposed else "If the source has no names, give them in its order (--channels).",
        )
    if one_label_per_group and target.group is None:
        advice = "Name the column of the recordings: --group-col."
        raise invalid("one_label_per_group", expected="recordings with names", got="none", advice=advice)
    train, validation = labelled_source(source, hold_out=hold_out)
    groups = target.sequence if one_label_per_group or options.get("smooth") else None
    return Job(
        source=train,
        validation=validation,
        target=Target(target.X, target.y, origin_of(target), groups),
        channel_names=source.channel_names,
        few_labels=read_labels(labels, target, np.unique(train.y).tolist()) if labels else None,
        **options,
    )


def labelled_source(source: Recordings, *, hold_out: bool = True) -> tuple[Source, Source | None]:
    """The labelled windows of recordings: those for training and, with `hold_out`, those for validation."""
    if source.y is None:
        raise invalid("source", expected="labels", got="none", advice="Name their column (--label-col), and fill it.")
    labelled = source.y != NO_LABEL
    if not hold_out:
        return Source(source.X[labelled], source.y[labelled]), None
    group = None if source.group is None else source.group[labelled]
    return hold_out_ends(source.X[labelled], source.y[labelled], group)


def hold_out_ends(X: NDArray, y: NDArray, group: NDArray | None = None) -> tuple[Source, Source | None]:
    """Split off the last windows of every class in every group, for validation.

    Windows of recordings overlap: a random split, as `TransPL.fit` makes it, would validate on samples that are also
    trained on.
    """
    keys = y if group is None else np.char.add(np.char.add(group.astype(str), "/"), y.astype(str))
    held = np.zeros(len(y), dtype=bool)
    for key in np.unique(keys):
        rows = np.flatnonzero(keys == key)
        held[rows[len(rows) - round(HOLDOUT_SHARE * len(rows)) :]] = True
    if not held.any():
        return Source(X, y), None
    return Source(X[~held], y[~held]), Source(X[held], y[held])


def check_grouping(model: TransPL, one_label_per_group: bool, smooth: bool) -> None:
    """Raise before anything is trained if the model cannot label the windows of a recording together as asked."""
    for name, given in {"one_label_per_group": one_label_per_group, "smooth": smooth}.items():
        if given and model.variant == "paper":
            advice = "Leave it out, or use variant='plus'."
            raise invalid(name, expected="False with variant='paper'", got=True, advice=advice)
    if one_label_per_group and smooth:
        advice = "Where all windows of a recording have one label, their order does not matter."
        raise invalid("one_label_per_group, smooth", expected="one of them", got="both", advice=advice)


def run(
    job: Job, model: TransPL, out: Path, log: Log = lambda line: None, *, source_from: Path | None = None
) -> JobOutcome:
    """Do a job with an unfitted `model` and write everything to `out`.

    A source model that an earlier job left in `out` is used if the same rows and settings trained it.

    Parameters
    ----------
    model
        may stay unfitted; `load_model` loads the adapted one
    source_from
        folder of an earlier job with the same source, whose source model is used; an error says why it cannot be
    """
    check_mode(model.variant, job.mode)
    check_grouping(model, job.target.groups is not None and not job.smooth, job.smooth)
    channels = job.source.X[0].shape[0]
    if len(job.channel_names) != channels:
        expected = f"{channels} names"
        raise invalid("channel_names", expected=expected, got=len(job.channel_names), advice="Name each channel.")
    prior_shares(job.prior, np.unique(job.source.y))  # before anything is trained
    if model.channel_names is None:
        model.set_params(channel_names=job.channel_names)
    cache = source_model_cache(out / "model", model, *training_rows(job.source, job.validation))
    with writing(out), checkpoints_in(model, out / "checkpoints"):
        require_one_target(out)
        found = cache.find() if source_from is None else load_source(cache, source_from)  # before anything is written
        with recording_failure(out):
            if found is None:
                log(f"source phase: {len(job.source.X)} labelled windows of {job.source_name}")
                found = model.fit(*training_rows(job.source, job.validation))
            else:
                log("source phase: done by an earlier job")
            task = _task(job, found)
            given = f", {len(job.few_labels)} labels given" if job.few_labels else ""
            mode = f", mode {task.mode}" if len(MODES[model.variant]) > 1 else ""
            what = f"{len(job.target.X)} unlabelled windows of {job.target_name}{mode}{given}"
            digest = adaptation_digest(cache.identity, found, task)
            finished = find_adapted(out / "model", digest, found)
            log(f"adaptation: {what if finished is None else 'done by an earlier job'}")
            result = adapt_target(found, task, finished)

            def record(home: Path) -> None:
                describe_model(cache, home)
                record_adaptation(home, digest)

            write_target_folder(
                out,
                result,
                found,
                reading=job.reading,
                record_source=record,
                sample=sample_of(job.source.X, job.source.y, job.target.X, job.channel_names),
            )
    return JobOutcome(out, result.metrics, tuple(result.summary.get("undone", ())), tuple(result.summary["warnings"]))


def training_rows(source: Source, validation: Source | None) -> tuple[Any, ...]:
    """As `TransPL.fit` takes them."""
    return (source.X, source.y) if validation is None else (source.X, source.y, validation.X, validation.y)


def _task(job: Job, model: TransPL) -> AdaptTask:
    return AdaptTask(
        name=job.target_name,
        target=job.target,
        mode=job.mode or model.default_mode,
        channel_names=job.channel_names,
        source={
            "name": job.source_name,
            "windows": len(job.source.X),
            "class_shares": class_shares(job.source.y, model.classes_),
        },
        test=job.test,
        prior=job.prior,
        few_labels=job.few_labels,
        smooth=job.smooth,
        explain=True,
    )
