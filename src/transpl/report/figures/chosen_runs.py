"""From a benchmark folder and a choice to the runs that a figure shows: one per pair."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from transpl._utils.errors import invalid
from transpl.benchmark.plan import RunSpec, settings_without_seed
from transpl.benchmark.store import Store
from transpl.benchmark.tables import run_identity
from transpl.methods.registry import entry
from transpl.report.figures.choice import Choice

METHOD = "transpl"


def chosen_runs(folder: Path, choice: Choice) -> list[RunSpec]:
    """One finished run per data set and pair; refused if none fits, or if it is not plain which settings are meant."""
    runs = [spec for spec, _ in Store(folder).results() if spec.method == METHOD]
    if not runs:
        got, advice = f"none in {folder}", "Run `transpl bench --methods transpl` first."
        raise invalid("folder", expected=f"finished runs of {METHOD}", got=got, advice=advice)
    runs = _only("dataset", runs, choice.dataset, [spec.dataset for spec in runs])
    runs = [spec for pair in _pairs(runs, choice) for spec in runs if (spec.source, spec.target) == pair]
    runs = _only("seed", runs, choice.seed, [spec.seed for spec in runs])
    for name, value in choice.settings.items():
        runs = _only(name, runs, value, [spec.settings.get(name) for spec in runs])
    runs = [spec for name in _sorted({spec.dataset for spec in runs}) for spec in _of_one_setting(name, runs)]
    first: dict[tuple[str, int, int], RunSpec] = {}
    for spec in sorted(runs, key=lambda spec: (spec.dataset, spec.source, spec.target, spec.seed, spec.digest)):
        first.setdefault((spec.dataset, spec.source, spec.target), spec)
    return list(first.values())


def _only(name: str, runs: list[RunSpec], wanted: object, values: list[object]) -> list[RunSpec]:
    """The runs that have the wanted value; all if none is wanted."""
    if wanted is None:
        return runs
    if wanted not in values:
        found = ", ".join(str(value) for value in _sorted(set(values)))
        raise invalid(
            name, expected=f"a value of the finished runs ({found})", got=wanted, advice="Choose one of these."
        )
    return [spec for spec, value in zip(runs, values, strict=True) if value == wanted]


def _pairs(runs: list[RunSpec], choice: Choice) -> list[tuple[int, int]]:
    """Those asked for, or all."""
    finished = sorted({(spec.source, spec.target) for spec in runs})
    for pair in choice.pairs:
        if pair not in finished:
            found = ", ".join(f"{source}-{target}" for source, target in finished)
            expected, got = f"finished pairs ({found})", f"{pair[0]}-{pair[1]}"
            raise invalid("pairs", expected=expected, got=got, advice="Choose among these.")
    return list(choice.pairs) or finished


def _of_one_setting(dataset: str, runs: list[RunSpec]) -> list[RunSpec]:
    """Runs of a data set that differ in pair and seed alone: the only settings there are, or else the paper's."""
    groups: dict[str, list[RunSpec]] = {}
    for spec in runs:
        if spec.dataset == dataset:
            groups.setdefault(run_identity(spec.method, spec.settings), []).append(spec)
    if len(groups) == 1:
        return next(iter(groups.values()))
    papers = run_identity(METHOD, settings_without_seed(entry(METHOD).settings(dataset)))
    if papers in groups:
        return groups[papers]
    got = f"several that differ in {', '.join(_differences(group[0] for group in groups.values()))}"
    raise invalid(
        "set", expected=f"runs of one setting on {dataset}", got=got, advice="Name a value, as --set width=64."
    )


def _differences(runs: Iterable[RunSpec]) -> list[str]:
    settings = [spec.settings for spec in runs]
    return [name for name in settings[0] if any(each.get(name) != settings[0][name] for each in settings)]


def _sorted(values: set) -> list:
    return sorted(values, key=lambda value: (isinstance(value, str), value is None, value if value is not None else 0))
