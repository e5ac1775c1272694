"""From a few words (data sets, methods, seeds) to the list of runs they stand for. `plan_file` reads them from YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transpl import datasets
from transpl._utils.errors import check_choice, check_int, invalid
from transpl.benchmark.comparing import check_changes, check_known, setting_names, settings_of
from transpl.benchmark.spec import GOALS, RunSpec, data_fingerprint, without_seed
from transpl.datasets import Dataset
from transpl.methods.registry import entry, names


@dataclass(frozen=True)
class Row:
    """A method with some settings changed: one line of a table.

    goal : "adapt", or only "label" the target with the source model
    """

    label: str
    method: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    goal: str = "adapt"


@dataclass(frozen=True)
class Plan:
    """What to run: rows on pairs of a data set with some seeds.

    pairs : as (source, target); empty for all pairs of the data set
    grid : values to try for some settings, such as {"adapt_lr": [1e-3, 5e-4]}; every combination is a run

    A row that changes a setting itself keeps its own value.
    """

    dataset: str
    rows: tuple[Row, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    seeds: tuple[int, ...] = (0,)
    preset: str = "paper"
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            check_changes([row.method], row.changes)
            check_choice("goal", row.goal, GOALS)
        for seed in self.seeds:
            check_int("seeds", seed, least=0)
        if not self.rows or not self.seeds:
            lacking = "seeds" if self.rows else "rows"
            raise invalid(lacking, expected="one or more", got="none", advice="A plan needs methods and seeds.")
        _check_grid(self.grid, self.rows)

    def runs(self, data: Dataset | None = None) -> list[RunSpec]:
        """Every run, each once."""
        dataset = datasets.load(self.dataset) if data is None else data
        if dataset.groups is None:
            self._refuse_methods_with_groups()
        fingerprint = data_fingerprint(dataset)
        found = [
            RunSpec(
                dataset=self.dataset,
                data=fingerprint,
                source=source,
                target=target,
                method=row.method,
                seed=seed,
                settings=settings,
                goal=row.goal,
            )
            for row in self.rows
            for settings in self.settings_for(row)
            for seed in self.seeds
            for source, target in self.pairs_of(dataset)
        ]
        return list({spec.digest: spec for spec in found}.values())

    def _refuse_methods_with_groups(self) -> None:
        needing = [row.method for row in self.rows if entry(row.method).method.needs_groups]
        if needing:
            expected = f"methods for a data set that does not say which windows belong together ({self.dataset})"
            raise invalid(
                "methods", expected=expected, got=needing[0], advice="Leave it out, or prepare it with `group`."
            )

    def pairs_of(self, data: Dataset) -> tuple[tuple[int, int], ...]:
        """The pairs to run, all of them pairs of known domains."""
        unknown = sorted({domain for pair in self.pairs for domain in pair} - set(data.domains))
        if unknown:
            expected = f"domains of {self.dataset} ({', '.join(map(str, data.domains))})"
            raise invalid("pairs", expected=expected, got=", ".join(map(str, unknown)), advice="Choose among these.")
        return self.pairs or data.pairs

    def settings_for(self, row: Row) -> list[dict[str, Any]]:
        """The settings of a row without the seed: one, or as many as the grid has for this method."""
        unchanged = setting_names(row.method) - set(row.changes)
        points = _points({name: self.grid[name] for name in self.grid if name in unchanged})
        changes = [{**point, **row.changes} for point in points]
        made = [settings_of([row.method], self.dataset, 0, self.preset, each)[row.method] for each in changes]
        return [without_seed(settings) for settings in made]


def rows_of(methods: Iterable[str], changes: Mapping[str, Any] | None = None) -> tuple[Row, ...]:
    """One row per method name; "all" stands for all that need no groups, which few data sets have.

    Changes apply to the methods that have the field.
    """
    everywhere = tuple(name for name in names() if not entry(name).method.needs_groups)
    wanted = dict.fromkeys(name for given in methods for name in (everywhere if given == "all" else (given,)))
    return with_changes([Row(name, name) for name in wanted], changes or {})


def with_changes(rows: Iterable[Row], changes: Mapping[str, Any]) -> tuple[Row, ...]:
    """Rows with further settings changed, where their methods have them; a row's own changes win."""
    every = tuple(rows)
    if not every:
        return ()
    settings_of([row.method for row in every], "", 0, "paper", changes)  # refuses what none of them has
    return tuple(replace(row, changes={**_known(row.method, changes), **row.changes}) for row in every)


def only_methods(rows: Iterable[Row], methods: Iterable[str]) -> tuple[Row, ...]:
    """The rows of some methods; all if none is named. A name that no row has is refused."""
    known, wanted = tuple(rows), set(methods) - {"all"}
    if not wanted:
        return known
    have = {row.method for row in known}
    if not wanted <= have:
        got = ", ".join(sorted(wanted - have))
        raise invalid(
            "methods", expected=f"methods of the table ({', '.join(sorted(have))})", got=got, advice=_NOT_THERE
        )
    return tuple(row for row in known if row.method in wanted)


_NOT_THERE = "Leave out --table to run other methods."


def _check_grid(grid: Mapping[str, Sequence[Any]], rows: Sequence[Row]) -> None:
    check_known("grid", grid, (row.method for row in rows))
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise invalid(
                "grid", expected=f"a list of values for {name}", got=repr(values), advice="Give at least one."
            )
    fixed = [name for name in grid if all(name in row.changes for row in rows if name in setting_names(row.method))]
    if fixed:
        got = ", ".join(fixed)
        raise invalid("grid", expected="settings that changes leave open", got=got, advice="Leave one out.")


def _points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = [{}]
    for name, values in grid.items():
        points = [{**point, name: value} for point in points for value in values]
    return points


def _known(method: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name in setting_names(method)}
