"""What a worker does with one target: read, adapt, label, score, write."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl.estimator.classifier import TransPL
from transpl.jobs.many.adapted import AdaptedTarget
from transpl.jobs.many.folder import TargetFolder
from transpl.jobs.many.parcel import Parcel
from transpl.jobs.many.targets import TargetFile, read_target, remembered
from transpl.jobs.results import (
    LABEL_BEFORE,
    About,
    Target,
    doubt_unknown_classes,
    predictions_table,
    probabilities_in,
    score,
    scores,
    summary,
)
from transpl.windows import name_channels


@dataclass(frozen=True)
class Task:
    """A target: as `read_target` takes it, with its class proportions (K,) if they are known.

    folder : where results go, None keeps them in memory; digest : see `TargetFolder`
    """

    name: str
    target: Any
    prior: NDArray[np.float64] | None
    folder: Path | None
    digest: str | None


@dataclass(frozen=True)
class Work:
    """What is the same for all targets; called with one of them.

    source : name, windows and class shares of the source, for the summary
    """

    parcel: Parcel
    mode: str
    channel_names: tuple[str, ...] | None
    keep_models: bool
    source: dict[str, Any]

    def __call__(self, task: Task) -> AdaptedTarget:
        start = time.perf_counter()
        folder = None if task.folder is None else TargetFolder(task.folder, task.digest)
        with _noted() as notes:
            target, names = read_target(task.target, self.channel_names)
            model = self.parcel.unpack()
            given = {"n_threads": model.n_threads, "verbose": model.verbose}
            model.set_params(n_threads=1, verbose=False, checkpoint_dir=None if folder is None else folder.checkpoints)
            table, found_scores = _adapted(model, target, task.prior, self.mode)
        names = names or name_channels(None, model.n_channels_)
        labels, before = table["label"].to_numpy(), table[LABEL_BEFORE].to_numpy()
        record = summary(model, self._about(task, model, len(table), names), labels, target.y, before)
        found = AdaptedTarget.from_results(
            task.name,
            model.classes_,
            probabilities_in(table, len(model.classes_)),
            record,
            scores=found_scores,
            seconds=time.perf_counter() - start,
            notes=tuple(notes),
            folder=task.folder,
        )
        if folder is not None:
            reading = remembered(task.target.reading) if isinstance(task.target, TargetFile) else None
            folder.finish(found, table, record, model.set_params(**given) if self.keep_models else None, reading)
        return found

    def _about(self, task: Task, model: TransPL, windows: int, names: tuple[str, ...]) -> About:
        prior = None
        if task.prior is not None:
            prior = {str(label): float(share) for label, share in zip(model.classes_, task.prior, strict=True)}
        return About(target_name=task.name, target_windows=windows, channel_names=names, prior=prior, **self.source)


def _adapted(
    model: TransPL, target: Target, prior: NDArray[np.float64] | None, mode: str
) -> tuple[pd.DataFrame, dict[str, Any] | None]:
    """Predictions after adaptation beside those before, and scores where the truth is known."""
    doubt_unknown_classes(target.y, model.classes_)
    before = model.predict(target.X)
    model.adapt(target.X, prior, mode)
    table = predictions_table(model, target.X, target.where, before)
    if target.y is None:
        return table, None
    after = table["label"].to_numpy()
    pseudo = after if mode == "markov" else model.pseudo_label(target.X).labels
    return table, {"pseudo_labels": score(target.y, pseudo), **scores(target.y, before, after)}


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect what is warned of inside the block, each line once: a worker has nobody to tell it to."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    said = (str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    notes.extend(dict.fromkeys(said))
