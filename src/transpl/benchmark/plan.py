"""What to run. A `Plan` (data set, rows, pairs, seeds) expands to `RunSpec`s, one for each single run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any

from transpl import datasets
from transpl._utils.errors import check_choice, check_int, invalid
from transpl.benchmark.run_spec import GOALS, NORMALISE, RunSpec, data_fingerprint
from transpl.datasets import Dataset
from transpl.methods.method_settings import MethodSettings, recorded
from transpl.methods.registry import Entry, entries, entry, names

MOST_RUNS = 100_000


@dataclass(frozen=True)
class Row:
    """A method with some settings changed: one row of a table.

    Parameters
    ----------
    label : str
        Name of the row.
    method : str
        Registered name.
    changes : mapping
        Settings that differ from the preset.
    goal : {"adapt", "label"}
        See `RunSpec`.
    """

    label: str
    method: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    goal: str = "adapt"


@dataclass(frozen=True)
class Plan:
    """Rows to run on pairs of a data set, with some seeds.

    Parameters
    ----------
    dataset : str
        Name of a prepared data set.
    rows : tuple of Row
        What to run, see `rows_of`.
    pairs : tuple of (source, target)
        Empty for all pairs of the data set.
    seeds : tuple of int
    preset : str
        "paper", or a preset that some methods have, such as "cnn".
    normalise : {"none", "domain", "per_split"}
        How to scale the channels: not at all (the paper), each domain by its train part, or (AdaTime) each part of a
        domain by itself.
    grid : mapping
        Values to try for some settings, such as ``{"adapt_lr": [1e-3, 5e-4]}``; every combination is a run. A row
        that changes a setting itself keeps its own value.

    Examples
    --------
    >>> from transpl.benchmark import Plan, rows_of
    >>> plan = Plan("synthetic", rows_of(["no-adapt", "softmax"]), pairs=((0, 1),), seeds=(0, 1))
    >>> [str(spec) for spec in plan.runs()][:2]
    ['synthetic 0-1 no-adapt seed 0', 'synthetic 0-1 no-adapt seed 1']
    """

    dataset: str
    rows: tuple[Row, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    seeds: tuple[int, ...] = (0,)
    preset: str = "paper"
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    normalise: str = "none"

    def __post_init__(self) -> None:
        check_choice("normalise", self.normalise, NORMALISE)
        for row in self.rows:
            _check_changes([entry(row.method)], row.changes)
            check_choice("goal", row.goal, GOALS)
        for seed in self.seeds:
            check_int("seeds", seed, least=0)
        if not self.rows or not self.seeds:
            empty = "seeds" if self.rows else "rows"
            raise invalid(empty, expected="one or more", got="none", advice="A plan needs methods and seeds.")
        n_runs = len(self.rows) * len(self.seeds)
        for values in self.grid.values():
            n_runs *= len(values) if isinstance(values, Sequence) else 1
        if n_runs > MOST_RUNS:
            expected, advice = f"at most {MOST_RUNS:,} runs per pair", "Try fewer values, or fewer seeds."
            raise invalid("seeds, grid", expected=expected, got=f"{n_runs:,}", advice=advice)
        _check_setting_names("grid", self.grid, (entry(row.method) for row in self.rows))
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                expected = f"a list of values for {name}"
                raise invalid("grid", expected=expected, got=repr(values), advice="Give at least one.")
            if all(name in row.changes for row in self.rows if name in entry(row.method).setting_names):
                advice = "Either change it or try values."
                raise invalid("grid", expected="settings that changes leave open", got=name, advice=advice)

    def runs(self, data: Dataset | None = None) -> list[RunSpec]:
        """Every run, each once. `data` replaces the prepared data set."""
        data = datasets.load(self.dataset) if data is None else data
        needs_groups = [row.method for row in self.rows if "groups" in entry(row.method).method.requires]
        if needs_groups and data.groups is None:
            expected = f"methods for a data set that does not say which windows belong together ({self.dataset})"
            advice = "Leave it out, or prepare the data set with `group`."
            raise invalid("methods", expected=expected, got=needs_groups[0], advice=advice)
        fingerprint = data_fingerprint(data)
        specs = [
            RunSpec(self.dataset, fingerprint, source, target, row.method, seed, settings, row.goal, self.normalise)
            for row in self.rows
            for settings in self.settings_for(row)
            for seed in self.seeds
            for source, target in self.pairs_of(data)
        ]
        return list({spec.digest: spec for spec in specs}.values())

    def pairs_of(self, data: Dataset) -> tuple[tuple[int, int], ...]:
        """The pairs to run; pairs of unknown domains are refused."""
        unknown = sorted({domain for pair in self.pairs for domain in pair} - set(data.domains))
        if unknown:
            expected = f"domains of {self.dataset} ({', '.join(map(str, data.domains))})"
            raise invalid("pairs", expected=expected, got=", ".join(map(str, unknown)), advice="Choose among these.")
        return self.pairs or data.pairs

    def settings_for(self, row: Row) -> list[dict[str, Any]]:
        """The settings of a row, without the seed: one, or one per point of the grid."""
        open_ones = entry(row.method).setting_names - set(row.changes)
        tried = {name: self.grid[name] for name in self.grid if name in open_ones}
        points = [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]
        return [
            settings_without_seed(
                settings_of([row.method], self.dataset, 0, self.preset, {**point, **row.changes})[row.method]
            )
            for point in points
        ]


# Rows


def rows_of(methods: Iterable[str], changes: Mapping[str, Any] | None = None) -> tuple[Row, ...]:
    """One row per method.

    Parameters
    ----------
    methods : iterable of str
        Registered names; "all" stands for every method that needs no groups, which few data sets have.
    changes : mapping, optional
        Settings to change in the methods that have them.
    """
    without_groups = tuple(name for name in names() if "groups" not in entry(name).method.requires)
    chosen = dict.fromkeys(name for given in methods for name in (without_groups if given == "all" else (given,)))
    return with_changes([Row(name, name) for name in chosen], changes or {})


def with_changes(rows: Iterable[Row], changes: Mapping[str, Any]) -> tuple[Row, ...]:
    """Change settings of the rows whose methods have them; a row's own changes win."""
    rows = tuple(rows)
    if not rows:
        return ()
    settings_of([row.method for row in rows], "", 0, "paper", changes)  # refuses a setting that none of them has
    return tuple(replace(row, changes={**_applicable(entry(row.method), changes), **row.changes}) for row in rows)


def only_methods(rows: Iterable[Row], methods: Iterable[str]) -> tuple[Row, ...]:
    """The rows of these methods, or all rows if none is named; a name that no row has is refused."""
    rows, wanted = tuple(rows), set(methods) - {"all"}
    known = {row.method for row in rows}
    if not wanted <= known:
        expected, got = f"methods of the table ({', '.join(sorted(known))})", ", ".join(sorted(wanted - known))
        raise invalid("methods", expected=expected, got=got, advice="Leave out --table to run other methods.")
    return tuple(row for row in rows if not wanted or row.method in wanted)


# Settings


def settings_of(
    methods: Sequence[str],
    dataset: str,
    seed: int = 0,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> dict[str, MethodSettings]:
    """The settings that `compare` runs each method with.

    Parameters
    ----------
    methods : sequence of str
        Registered names.
    dataset : str
        Name of the data set; an unknown one (your own) gets the defaults.
    seed : int
    preset : str
        "paper", or a preset such as "adatime" for the methods that have it; the others take the paper's values.
    changes : mapping, optional
        Settings to change in the methods that have them; a name that none of them has is refused.

    Returns
    -------
    dict
        Method name -> settings.

    Examples
    --------
    >>> from transpl.benchmark import settings_of
    >>> settings_of(["softmax"], "wisdm", changes={"max_epochs": 40})["softmax"].max_epochs
    40
    """
    return settings_of_entries({name: entry(name) for name in methods}, dataset, seed, preset, changes)


def settings_of_entries(
    methods: Mapping[str, Entry],
    dataset: str,
    seed: int = 0,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> dict[str, MethodSettings]:
    """As `settings_of`, for methods of any name."""
    changes = dict(changes or {})
    known = {name for found in entries().values() for name in found.method.Settings.preset_names()}
    check_choice("preset", preset, ("paper", *sorted(known - {"paper"})))
    _check_changes(methods.values(), changes)
    settings = {}
    for name, method in methods.items():
        own_preset = preset if preset in method.method.Settings.preset_names() else "paper"
        settings[name] = method.settings(dataset, own_preset, **_applicable(method, changes), random_state=seed)
    return settings


def settings_without_seed(settings: MethodSettings) -> dict[str, Any]:
    """Settings as they are recorded in a `RunSpec`: plain values without the seed; 1 and 1.0 are the same fraction."""
    fractions = {each.name for each in fields(settings) if isinstance(each.default, float)}
    fractions -= settings.recorded_if_changed  # of a library, to which 1 and 1.0 may be different
    return {
        name: float(value) if name in fractions and type(value) is int else value
        for name, value in recorded(settings).items()
        if name != "random_state"
    }


def _applicable(method: Entry, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name in method.setting_names}


def _check_changes(methods: Iterable[Entry], changes: Mapping[str, Any]) -> None:
    _check_setting_names("changes", changes, methods)
    if "random_state" in changes:
        raise invalid("changes", expected="no random_state", got=changes["random_state"], advice="Pass it as seed.")


def _check_setting_names(argument: str, settings: Iterable[str], methods: Iterable[Entry]) -> None:
    """Refuse settings that none of the methods has."""
    methods = list(methods)
    unknown = sorted(set(settings) - {name for method in methods for name in method.setting_names})
    if unknown:
        expected = f"settings of {', '.join(dict.fromkeys(method.name for method in methods))}"
        raise invalid(argument, expected=expected, got=", ".join(unknown), advice="See `transpl methods NAME`.")
