"""The main job for many targets: one source model, a folder per target, one table of them all.

The folder holds `targets.json` (their names), `model/` (the source model), a folder per target with `predictions.csv`,
`summary.json`, `model/` and, where labels exist, `metrics.json`, and in the end `summary.csv`. The same job again makes
only what is missing; a target that failed has a `failed.json`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from transpl import TransPL
from transpl._utils.parallel import check_workers
from transpl.datasets.recordings.reading import Recordings
from transpl.estimator.validation import prior_shares
from transpl.estimator.variants import check_mode
from transpl.jobs.kept_sources import WantedSource, checkpoints_in
from transpl.jobs.many import AdaptedTarget, TargetFile, adapt_many
from transpl.jobs.many.names import named
from transpl.jobs.many.targets import remembered
from transpl.jobs.one import (
    Say,
    Source,
    labelled_source,
    record_of_failure,
    remember_reading,
    wanted_source,
)
from transpl.jobs.result_folders import begin_many
from transpl.jobs.results import write_table

_TAKEN = (  # not to be the name of a target
    *("model", "checkpoints", "figures"),
    *("summary.csv", "targets.json", "failed.json"),
)
_MOVED_MOST = 2  # channels


@dataclass(frozen=True)
class ManyJob:
    """source trains, validation (or a held-out part of source) decides when to stop; each target is adapted to.

    reading : how the files are read, for `predict`
    """

    source: Source
    validation: Source | None
    targets: Mapping[str, TargetFile]
    channel_names: tuple[str, ...]
    reading: dict[str, Any]
    source_name: str = "source"
    prior: dict[str, float] | None = None
    mode: str | None = None  # the model's own


def from_recordings(
    source: Recordings, files: Sequence[Path], reading: dict[str, Any], *, hold_out: bool = True, **options: Any
) -> ManyJob:
    """Labelled recordings of a source, and files whose labels (if any) only score.

    reading : arguments of `read_recordings` for the files
    hold_out : as in `jobs.from_recordings`
    """
    train, validation = labelled_source(source, hold_out=hold_out)
    targets = {name: TargetFile(path, reading) for name, path in named(files, taken=_TAKEN).items()}
    return ManyJob(train, validation, targets, source.channel_names, remembered(reading), **options)


def run(
    job: ManyJob,
    model: TransPL,
    out: Path,
    say: Say = lambda line: None,
    *,
    jobs: int = 1,
    backend: str = "loky",
    retries: int = 0,
    address: str | None = None,
    source_from: Path | None = None,
) -> pd.DataFrame:
    """Do the job with an unfitted `model`; return one row per target, in their order, as summary.csv has them.

    source_from : as in `jobs.run`
    jobs, backend, retries, address : as in `adapt_many`
    """
    check_workers(jobs, backend, retries, address)
    workers = {"jobs": jobs, "backend": backend, "retries": retries, "address": address}
    _check(job, model)
    if model.channel_names is None:
        model.set_params(channel_names=job.channel_names)
    wanted = wanted_source(job.source, job.validation, model)
    demanded = None if source_from is None else wanted.demanded_from(source_from)  # before anything is written
    begin_many(out, job.targets)
    with record_of_failure(out):
        fitted = _fitted(job, wanted, demanded, out, say)
        remember_reading(out, job.reading)
        (out / "summary.csv").unlink(missing_ok=True)  # from here on it would be of another run than its targets
        rows = {}
        with closing(_adapted(fitted, job, out, workers)) as adapted:
            for target in adapted:
                if target.error is None:
                    wanted.record(out / target.name / "model")
                rows[target.name] = _row(target)
                say(_line(target, len(rows), len(job.targets)))
        table = pd.DataFrame([rows[name] for name in job.targets]).astype({"windows": "Int64"})
        write_table(out / "summary.csv", table)
    return table


def as_text(table: pd.DataFrame) -> str:
    """The table for people: columns that say something, aligned."""
    shown = {
        "target": table["target"].tolist(),
        "windows": ["" if pd.isna(n) else str(n) for n in table["windows"]],
        "confidence": [_number(value) for value in table["mean_confidence"]],
        "moved most": table["moved_most"].fillna("").tolist(),
        "undone": table["undone"].fillna("").tolist(),
        "estimated": [_percent(value) for value in table["estimated_accuracy"]],
        "accuracy": [_percent(value) for value in table["accuracy"]],
        "error": table["error"].fillna("").tolist(),
    }
    columns = [[title, *cells] for title, cells in shown.items() if any(cells)]
    widths = [max(map(len, column)) for column in columns]
    lines = zip(*columns, strict=True)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _adapted(model: TransPL, job: ManyJob, out: Path, workers: dict[str, Any]) -> Generator[AdaptedTarget, None, None]:
    return adapt_many(
        model,
        job.targets,
        mode=job.mode,
        priors=None if job.prior is None else dict.fromkeys(job.targets, job.prior),
        channel_names=job.channel_names,
        source_name=job.source_name,
        out=out,
        keep_models=True,
        **workers,
    )


def _fitted(job: ManyJob, wanted: WantedSource, demanded: TransPL | None, out: Path, say: Say) -> TransPL:
    """As `WantedSource.fitted`, and left in `out`: a kept one has the parameters of this job from now on."""
    home = out / "model"
    with checkpoints_in(wanted.model, out / "checkpoints"):
        fitted = wanted.fitted(demanded, home, job.source_name, say)
        wanted.leave(fitted, home)
    return fitted


def _check(job: ManyJob, model: TransPL) -> None:
    check_mode(model.variant, job.mode)
    prior_shares(job.prior, np.unique(job.source.y))  # as `adapt_many` will, but before anything is trained


def _row(target: AdaptedTarget) -> dict[str, Any]:
    found = target.scores or {}
    return {
        "target": target.name,
        "windows": None if target.labels is None else len(target.labels),
        "mean_confidence": None if target.confidence is None else float(target.confidence.mean()),
        "moved_most": _moved_most(target),
        "estimated_accuracy": (target.estimated_accuracy or {}).get("accuracy"),
        "undone": " ".join(target.undone) or None,
        "accuracy_before": found["before"]["accuracy"] if found else None,
        "accuracy": found["after"]["accuracy"] if found else None,
        "macro_f1": found["after"]["macro_f1"] if found else None,
        "seconds": target.seconds,
        "notes": "; ".join(target.notes) or None,
        "error": target.error,
    }


def _moved_most(target: AdaptedTarget) -> str | None:
    if target.channel_distances is None:
        return None
    most = np.argsort(-target.channel_distances, kind="stable")[:_MOVED_MOST]
    return ", ".join(f"{target.channel_names[c]} {target.channel_distances[c]:.3f}" for c in most)


def _line(target: AdaptedTarget, number: int, total: int) -> str:
    place = f"{number}/{total} {target.name}"
    if target.error is not None or target.labels is None:
        return f"{place}: failed: {target.error}"
    notes = "".join(f" (note: {note})" for note in target.notes)
    return f"{place}: {len(target.labels)} windows, {target.seconds:.1f} s{notes}"


def _number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.2f}"


def _percent(value: float) -> str:
    return "" if pd.isna(value) else f"{100 * value:.1f} %"
