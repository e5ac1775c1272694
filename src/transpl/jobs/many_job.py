"""The main job for many targets: one source model, a folder per target, one table of them all.

The same job again makes only what is missing; a target that failed has a `failed.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transpl import TransPL
from transpl._utils.locks import writing
from transpl._utils.parallel import check_workers
from transpl._utils.progress import task
from transpl._utils.source_cache import SourceCache
from transpl.datasets.recordings.reading import Recordings
from transpl.estimator import check_mode
from transpl.estimator.validation import prior_shares
from transpl.jobs.folder import TARGETS, begin_many, recording_failure, save_reading, write_table
from transpl.jobs.job import Log, Source, labelled_source, training_rows
from transpl.jobs.many import adapt_many
from transpl.jobs.many_worker import AdaptedTarget
from transpl.jobs.source_models import (
    checkpoints_in,
    describe_model,
    load_source,
    save_source,
    source_model_cache,
)
from transpl.jobs.target_files import TargetFile, name_files, saved_reading

_RESERVED = ("model", "checkpoints", "figures", "summary.csv", TARGETS, "failed.json")  # not names of targets
_MOVED_MOST = 2  # channels


@dataclass(frozen=True)
class ManyJob:
    """What `run_many` does; the fields are those of `Job`, but for `targets`, files by the name of their target."""

    source: Source
    validation: Source | None
    targets: Mapping[str, TargetFile]
    channel_names: tuple[str, ...]
    reading: dict[str, Any]
    source_name: str = "source"
    prior: dict[str, float] | None = None
    mode: str | None = None

    @classmethod
    def from_recordings(
        cls,
        source: Recordings,
        files: Sequence[Path],
        reading: dict[str, Any],
        *,
        hold_out: bool = True,
        **options: Any,
    ) -> ManyJob:
        """A job that adapts from labelled recordings to each of some files, whose labels (if any) only score.

        Parameters
        ----------
        reading
            arguments of `read_recordings` for the files
        hold_out
            as in `from_recordings` for one target
        **options
            further fields of `ManyJob`
        """
        train, validation = labelled_source(source, hold_out=hold_out)
        targets = {name: TargetFile(path, reading) for name, path in name_files(files, taken=_RESERVED).items()}
        return cls(train, validation, targets, source.channel_names, saved_reading(reading), **options)


def run_many(
    job: ManyJob,
    model: TransPL,
    out: Path,
    log: Log = lambda line: None,
    *,
    jobs: int = 1,
    backend: str = "loky",
    retries: int = 0,
    address: str | None = None,
    source_from: Path | None = None,
) -> pd.DataFrame:
    """Do a job with an unfitted `model` and write everything to `out`.

    Parameters
    ----------
    source_from
        as in `run`
    jobs, backend, retries, address
        as in `adapt_many`

    Returns
    -------
    pandas.DataFrame
        a row per target, as summary.csv has them
    """
    check_workers(jobs, backend, retries, address)
    check_mode(model.variant, job.mode)
    prior_shares(job.prior, np.unique(job.source.y))  # before anything is trained
    if model.channel_names is None:
        model.set_params(channel_names=job.channel_names)
    cache = source_model_cache(out / "model", model, *training_rows(job.source, job.validation))
    found = None if source_from is None else load_source(cache, source_from)  # before anything is written
    with writing(out):
        begin_many(out, job.targets)
        workers: dict[str, Any] = {"jobs": jobs, "backend": backend, "retries": retries, "address": address}
        return _run_targets(job, model, cache, found, out, log, workers)


def _run_targets(
    job: ManyJob,
    model: TransPL,
    cache: SourceCache[TransPL],
    found: TransPL | None,
    out: Path,
    log: Log,
    workers: dict[str, Any],
) -> pd.DataFrame:
    with recording_failure(out):
        fitted = _source_model(job, model, cache, found, out / "checkpoints", log)
        save_reading(out, job.reading)
        (out / "summary.csv").unlink(missing_ok=True)  # from here on it is of another run than the targets
        adapted = adapt_many(
            fitted,
            job.targets,
            mode=job.mode,
            priors=None if job.prior is None else dict.fromkeys(job.targets, job.prior),
            channel_names=job.channel_names,
            source_name=job.source_name,
            out=out,
            keep_models=True,
            **workers,
        )
        rows = {}
        with closing(adapted), task("targets", len(job.targets)) as update:
            for target in adapted:
                if target.error is None:
                    describe_model(cache, out / target.name / "model")
                rows[target.name] = _row(target)
                update(len(rows))
                log(f"{len(rows)}/{len(job.targets)} {target.name}: {_outcome(target)}")
        table = pd.DataFrame([rows[name] for name in job.targets]).astype({"windows": "Int64"})
        write_table(out / "summary.csv", table)
    return table


def _source_model(
    job: ManyJob, model: TransPL, cache: SourceCache[TransPL], found: TransPL | None, checkpoints: Path, log: Log
) -> TransPL:
    """The source model found, or the cached one, or a new one; saved with the parameters of this job."""

    def train() -> TransPL:
        log(f"source phase: {len(job.source.X)} labelled windows of {job.source_name}")
        return model.fit(*training_rows(job.source, job.validation))

    with checkpoints_in(model, checkpoints):
        fitted = cache.build(train, lock=checkpoints / "source.lock") if found is None else found
        save_source(cache, fitted)
    return fitted


def table_as_text(table: pd.DataFrame) -> str:
    """The table of `run_many` for people: aligned, without columns that are empty."""

    def percent(value: float) -> str:
        return "" if pd.isna(value) else f"{100 * value:.1f} %"

    shown = {
        "target": table["target"].tolist(),
        "windows": ["" if pd.isna(n) else str(n) for n in table["windows"]],
        "confidence": ["" if pd.isna(value) else f"{value:.2f}" for value in table["mean_confidence"]],
        "moved most": table["moved_most"].fillna("").tolist(),
        "undone": table["undone"].fillna("").tolist(),
        "estimated": [percent(value) for value in table["estimated_accuracy"]],
        "accuracy": [percent(value) for value in table["accuracy"]],
        "error": table["error"].fillna("").tolist(),
    }
    columns = [[title, *cells] for title, cells in shown.items() if any(cells)]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def _row(target: AdaptedTarget) -> dict[str, Any]:
    """The target's row of summary.csv."""
    scores, moved_most = target.scores or {}, None
    if target.channel_distances is not None:
        most = np.argsort(-target.channel_distances, kind="stable")[:_MOVED_MOST]
        moved_most = ", ".join(f"{target.channel_names[c]} {target.channel_distances[c]:.3f}" for c in most)
    return {
        "target": target.name,
        "windows": None if target.labels is None else len(target.labels),
        "mean_confidence": None if target.confidence is None else float(target.confidence.mean()),
        "moved_most": moved_most,
        "estimated_accuracy": (target.estimated_accuracy or {}).get("accuracy"),
        "undone": " ".join(target.undone) or None,
        "accuracy_before": scores["before"]["accuracy"] if scores else None,
        "accuracy": scores["after"]["accuracy"] if scores else None,
        "macro_f1": scores["after"]["macro_f1"] if scores else None,
        "seconds": target.seconds,
        "notes": "; ".join(target.notes) or None,
        "error": target.error,
    }


def _outcome(target: AdaptedTarget) -> str:
    if target.error is not None or target.labels is None:
        return f"failed: {target.error}"
    notes = "".join(f" (note: {note})" for note in target.notes)
    return f"{len(target.labels)} windows, {target.seconds:.1f} s{notes}"
