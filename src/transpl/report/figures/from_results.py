"""From a folder of results to the page of a figure: choose runs, load their models, study, draw, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from transpl import __version__, datasets
from transpl._utils.errors import check_choice, invalid, unreadable_file
from transpl._utils.files import write_json, write_text
from transpl._utils.locks import writing
from transpl._utils.progress import task, tracked
from transpl.benchmark import RunSpec, Store, restore_run, run_identity, settings_without_seed
from transpl.jobs.folder import SAMPLE_FILE, load_model, load_sample
from transpl.methods import TransPLMethod
from transpl.methods.registry import entry
from transpl.report.figures.channel_alignment import alignment_study, draw_alignment
from transpl.report.figures.channel_corruption import corruption_study, draw_corruption
from transpl.report.figures.code_entropy import draw_entropy, entropy_study
from transpl.report.figures.decoded_codes import codes_study, draw_codes
from transpl.report.figures.figure_parts import BothDomains, Drawing, Subject, render_figure
from transpl.report.figures.window_likelihoods import draw_likelihoods, likelihood_study
from transpl.windows import name_channels

METHOD = "transpl"
Log = Callable[[str], None]


class PaperFigure(NamedTuple):
    """How a figure is made.

    study : from one subject, or from all of them if `several`, to plain data; its other parameters are the options
    draw : from that data to the page
    one_dataset : all subjects must be of the same data set
    """

    study: Callable[..., dict[str, Any]]
    draw: Callable[[dict[str, Any]], Drawing]
    several: bool = False
    one_dataset: bool = True

    @property
    def options(self) -> list[str]:
        """What users may set."""
        return list(signature(self.study).parameters)[1:]


FIGURES: dict[str, PaperFigure] = {
    "entropy": PaperFigure(entropy_study, draw_entropy, several=True, one_dataset=False),
    "codes": PaperFigure(codes_study, draw_codes),
    "likelihoods": PaperFigure(likelihood_study, draw_likelihoods),
    "alignment": PaperFigure(alignment_study, draw_alignment),
    "corruption": PaperFigure(corruption_study, draw_corruption, several=True),
}


@dataclass(frozen=True)
class RunChoice:
    """Which finished runs of TransPL a figure shows; by default all.

    Parameters
    ----------
    dataset : str, optional
        One data set; None means all, for a figure that shows several.
    pairs : sequence of (int, int)
        Pairs of source and target; empty means all, or the first for a figure that shows one.
    seed : int, optional
        None takes the smallest seed of every pair.
    settings : mapping
        Values that a run must have. If runs of several settings are left, the paper's are taken.
    """

    dataset: str | None = None
    pairs: Sequence[tuple[int, int]] = ()
    seed: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class FigureFiles(NamedTuple):
    """The page of a figure, and what it shows in a few sentences."""

    page: Path
    findings: list[str]


def make_figure(
    name: str,
    folder: str | os.PathLike[str],
    choice: RunChoice | None = None,
    log: Log = lambda line: None,
    **options: Any,
) -> FigureFiles:
    """Write `figures/NAME.html`, and its data as `figures/NAME.json`, into a folder of results.

    Parameters
    ----------
    name : {"entropy", "codes", "likelihoods", "alignment", "corruption"}
    folder : path
        Written by `transpl bench`, `transpl adapt` or `transpl demo`.
    choice : RunChoice, optional
        Which runs of a benchmark to show.
    log : callable
        Gets a line of text for every model that is read.
    **options
        Options of the figure, as `transpl figure --help` lists them; None means the default.

    Returns
    -------
    FigureFiles
        The path of the page, and the findings as sentences.
    """
    check_choice("name", name, tuple(FIGURES))
    figure, home = FIGURES[name], Path(folder)
    given = {option: value for option, value in options.items() if value is not None}
    for option in given.keys() - set(figure.options):
        takes = f"of {', '.join(figure.options)} or none" if figure.options else "none of the figure's options"
        raise invalid(option, expected=takes, got=option, advice=f"Figure {name} does not use it.")
    subjects = load_subjects(home, choice or RunChoice(), figure, log)
    if figure.several:
        data = figure.study(subjects, **given)
    else:
        with task(f"computing {name}", None):
            data = figure.study(subjects[0], **given)
    drawing, page = figure.draw(data), home / "figures" / f"{name}.html"
    with writing(page.parent, page.name):
        write_json(page.with_suffix(".json"), data)
        write_text(page, render_figure(drawing, f"transpl {__version__}"))
    return FigureFiles(page, drawing.findings)


def load_subjects(folder: Path, choice: RunChoice, figure: PaperFigure, log: Log = lambda line: None) -> list[Subject]:
    """The models that a figure shows: chosen runs of a benchmark, or the one model of a job."""
    if Store(folder).is_used:
        runs = choose_runs(folder, choice)
        found = sorted({spec.dataset for spec in runs})
        if figure.one_dataset and len(found) > 1:
            got, advice = ", ".join(found), "Name one with --dataset."
            raise invalid("dataset", expected="one data set for this figure", got=got, advice=advice)
        if not figure.several and len(choice.pairs) > 1:
            advice = "Name one of them."
            raise invalid("pairs", expected="one pair for this figure", got=len(choice.pairs), advice=advice)
        shown = runs if figure.several else runs[:1]
        return [_subject_of_run(spec, folder, log) for spec in tracked(shown, "reading models", len(shown))]
    if not any((folder / name).is_file() for name in ("model/model.json", "model.json")):
        problem, advice = "neither a benchmark nor a model in it", "Name a folder of transpl adapt, demo or bench."
        raise unreadable_file(folder, problem=problem, advice=advice)
    if choice != RunChoice():
        expected = "no choice of data set, pairs, seed or settings for the folder of one job"
        raise invalid("choice", expected=expected, got="one", advice="Leave these options out.")
    return [_subject_of_job(folder)]


def _subject_of_run(spec: RunSpec, folder: Path, log: Log) -> Subject:
    log(f"reading {spec.dataset} {spec.pair}, seed {spec.seed}")
    method, pair = restore_run(spec, folder)
    data = datasets.load(spec.dataset)
    return Subject(
        name=f"{spec.dataset} {spec.source} → {spec.target}",
        group=spec.dataset,
        method=cast(TransPLMethod, method),
        class_names=data.class_names,
        channel_names=data.channel_names,
        domains=BothDomains(pair.source.windows, pair.target, np.arange(len(pair.target))),
    )


def _subject_of_job(folder: Path) -> Subject:
    model, _ = load_model(folder)
    method = model.fitted_method()
    if not isinstance(method, TransPLMethod):
        advice = "Run transpl adapt --variant paper."
        raise invalid("folder", expected="a model of variant 'paper'", got=repr(model.variant), advice=advice)
    sample = load_sample(folder) if (folder / SAMPLE_FILE).is_file() else None
    name = folder.resolve().name
    return Subject(
        name=name,
        group=name,
        method=method,
        class_names=tuple(str(label) for label in model.classes_),
        channel_names=name_channels(None if sample is None else sample.channel_names, model.n_channels_),
        domains=None if sample is None else BothDomains(sample.source, sample.target, sample.target_rows),
        target_counts=method.state.target_counts,
    )


def choose_runs(folder: Path, choice: RunChoice) -> list[RunSpec]:
    """One finished run per data set and pair; an error if none fits, or if several settings fit equally well."""
    runs = [spec for spec, _ in Store(folder).results() if spec.method == METHOD]
    if not runs:
        got, advice = f"none in {folder}", "Run `transpl bench --methods transpl` first."
        raise invalid("folder", expected=f"finished runs of {METHOD}", got=got, advice=advice)
    runs = _with_value("dataset", runs, choice.dataset, [spec.dataset for spec in runs])
    runs = _with_pairs(runs, choice.pairs)
    runs = _with_value("seed", runs, choice.seed, [spec.seed for spec in runs])
    for name, value in choice.settings.items():
        runs = _with_value(name, runs, value, [spec.settings.get(name) for spec in runs])
    runs = [spec for name in sorted({spec.dataset for spec in runs}) for spec in _of_one_setting(name, runs)]
    first: dict[tuple[str, int, int], RunSpec] = {}
    for spec in sorted(runs, key=lambda spec: (spec.dataset, spec.source, spec.target, spec.seed, spec.digest)):
        first.setdefault((spec.dataset, spec.source, spec.target), spec)
    return list(first.values())


def _with_value(name: str, runs: list[RunSpec], wanted: object, values: list[Any]) -> list[RunSpec]:
    """The runs that have the wanted value; all of them if None is wanted."""
    if wanted is None:
        return runs
    if wanted not in values:
        found = ", ".join(map(str, sorted(set(values), key=lambda value: (type(value).__name__, value))))
        expected = f"a value of the finished runs ({found})"
        raise invalid(name, expected=expected, got=wanted, advice="Choose one of these.")
    return [spec for spec, value in zip(runs, values, strict=True) if value == wanted]


def _with_pairs(runs: list[RunSpec], wanted: Sequence[tuple[int, int]]) -> list[RunSpec]:
    """The runs of these pairs, in the order asked for; all of them if none is asked for."""
    finished = sorted({(spec.source, spec.target) for spec in runs})
    for source, target in set(wanted) - set(finished):
        expected = f"finished pairs ({', '.join(f'{one}-{other}' for one, other in finished)})"
        raise invalid("pairs", expected=expected, got=f"{source}-{target}", advice="Choose among these.")
    return [spec for pair in wanted or finished for spec in runs if (spec.source, spec.target) == pair]


def _of_one_setting(dataset: str, runs: list[RunSpec]) -> list[RunSpec]:
    """Runs of a data set that differ in pair and seed alone: the only settings there are, or else the paper's."""
    groups: dict[str, list[RunSpec]] = {}
    for spec in runs:
        if spec.dataset == dataset:
            groups.setdefault(run_identity(spec.method, spec.settings, spec.normalise), []).append(spec)
    if len(groups) == 1:
        return next(iter(groups.values()))
    papers = run_identity(METHOD, settings_without_seed(entry(METHOD).settings(dataset)))
    if papers in groups:
        return groups[papers]
    got = f"several that differ in {', '.join(_differences(group[0] for group in groups.values()))}"
    advice = "Name a value, as --set width=64."
    raise invalid("set", expected=f"runs of one setting on {dataset}", got=got, advice=advice)


def _differences(runs: Iterable[RunSpec]) -> list[str]:
    settings = [spec.settings for spec in runs]
    return [name for name in settings[0] if any(each.get(name) != settings[0][name] for each in settings)]
