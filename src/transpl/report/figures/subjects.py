"""A folder as the subjects of a study: the runs of a benchmark, or the one model of a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from transpl import datasets
from transpl._utils.errors import invalid, unreadable_file
from transpl.benchmark.plan import RunSpec
from transpl.benchmark.runner import restore_run
from transpl.benchmark.store import Store
from transpl.jobs.one import load_model
from transpl.jobs.sample import FILE, load_sample
from transpl.methods import TransPLMethod
from transpl.report.figures.choice import Choice
from transpl.report.figures.chosen_runs import chosen_runs
from transpl.report.studies.subject import BothSides, Subject
from transpl.windows import name_channels

Say = Callable[[str], None]


def subjects_in(
    folder: Path, choice: Choice, *, several: bool, one_dataset: bool = True, say: Say = lambda line: None
) -> list[Subject]:
    """What a figure is made of.

    several : the figure shows all that is chosen; else one, of a benchmark the first pair unless one is chosen
    one_dataset : all of one data set
    """
    if Store(folder).is_used:
        runs = chosen_runs(folder, choice)
        if one_dataset:
            _need_one_dataset(runs)
        if not several and len(choice.pairs) > 1:
            raise invalid(
                "pairs", expected="one pair for this figure", got=len(choice.pairs), advice="Name one of them."
            )
        return [_of_run(spec, folder, say) for spec in (runs if several else runs[:1])]
    if not any((folder / name).is_file() for name in ("model/model.json", "model.json")):
        problem, advice = "neither a benchmark nor a model in it", "Point at a folder of transpl adapt, demo or bench."
        raise unreadable_file(folder, problem=problem, advice=advice)
    if not choice.is_open:
        expected = "no choice of data set, pairs, seed or settings for the folder of one job"
        raise invalid("choice", expected=expected, got="one", advice="Leave these options out.")
    return [_of_job(folder)]


def _need_one_dataset(runs: list[RunSpec]) -> None:
    found = sorted({spec.dataset for spec in runs})
    if len(found) > 1:
        got, advice = ", ".join(found), "Name one with --dataset."
        raise invalid("dataset", expected="one data set for this figure", got=got, advice=advice)


def _of_run(spec: RunSpec, folder: Path, say: Say) -> Subject:
    say(f"reading {spec.dataset} {spec.pair}, seed {spec.seed}")
    method, pair = restore_run(spec, folder)
    data = datasets.load(spec.dataset)
    sides = BothSides(pair.source.windows, pair.target, np.arange(len(pair.target)))
    return Subject(
        name=f"{spec.dataset} {spec.source} → {spec.target}",
        group=spec.dataset,
        method=cast(TransPLMethod, method),
        class_names=data.class_names,
        channel_names=data.channel_names,
        sides=sides,
    )


def _of_job(folder: Path) -> Subject:
    model, _ = load_model(folder)
    method = model.fitted_method()
    if not isinstance(method, TransPLMethod):
        advice = "Run transpl adapt --variant paper."
        raise invalid("folder", expected="a model of variant 'paper'", got=repr(model.variant), advice=advice)
    sample = load_sample(folder) if (folder / FILE).is_file() else None
    name = folder.resolve().name
    return Subject(
        name=name,
        group=name,
        method=method,
        class_names=tuple(str(label) for label in model.classes_),
        channel_names=name_channels(None if sample is None else sample.channel_names, model.n_channels_),
        sides=None if sample is None else BothSides(sample.source, sample.target, sample.target_rows),
        target_counts=method.state.target_counts,
    )
