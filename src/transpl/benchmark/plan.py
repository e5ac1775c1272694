"""From a few words (data sets, methods, seeds) or a YAML file to the list of runs they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from transpl import datasets
from transpl.benchmark.compare import settings_of
from transpl.benchmark.spec import RunSpec, data_fingerprint, without_seed
from transpl.datasets import Dataset
from transpl.errors import unreadable, whole_number, wrong
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
    """

    dataset: str
    rows: tuple[Row, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    seeds: tuple[int, ...] = (0,)
    preset: str = "paper"
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            entry(row.method)
        for seed in self.seeds:
            whole_number("seeds", seed, least=0)

    def runs(self, data: Dataset | None = None) -> list[RunSpec]:
        """Every run, each once."""
        dataset = datasets.load(self.dataset) if data is None else data
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

    def pairs_of(self, data: Dataset) -> tuple[tuple[int, int], ...]:
        """The pairs to run, all of them pairs of known domains."""
        for pair in self.pairs:
            for domain in pair:
                data.domain(domain)
        return self.pairs or data.pairs

    def settings_for(self, row: Row) -> list[dict[str, Any]]:
        """The settings of a row without the seed: one, or as many as the grid has for this method."""
        return [
            without_seed(settings_of([row.method], self.dataset, 0, self.preset, {**point, **row.changes})[row.method])
            for point in _points({name: self.grid[name] for name in self.grid if name in _fields(row.method)})
        ]


def rows_of(methods: Iterable[str], changes: Mapping[str, Any] | None = None) -> tuple[Row, ...]:
    """One row per method name; "all" stands for all of them. Changes apply to the methods that have the field."""
    wanted = dict.fromkeys(name for given in methods for name in (names() if given == "all" else (given,)))
    every = dict(changes or {})
    settings_of(list(wanted), "", 0, "paper", every)  # refuses what no method has
    return tuple(
        Row(name, name, {setting: value for setting, value in every.items() if setting in _fields(name)})
        for name in wanted
    )


def with_changes(rows: Iterable[Row], changes: Mapping[str, Any]) -> tuple[Row, ...]:
    """Rows with further settings changed, where their methods have them; a row's own changes win."""
    return tuple(replace(row, changes={**rows_of([row.method], changes)[0].changes, **row.changes}) for row in rows)


def read_plans(path: Path) -> list[Plan]:
    """Read plans from YAML: a list (or one) of mappings with the fields of `Plan`.

    `methods` may stand for `rows`; a row is a method's name, or a mapping with the fields of `Row`.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise unreadable(path, problem="no such file", advice="Check the path.") from None
    except (yaml.YAMLError, ValueError, OSError) as error:
        raise unreadable(path, problem=f"not YAML ({error})", advice="See docs/benchmark.md.") from None
    entries = content if isinstance(content, list) else [content]
    return [_plan(path, values) for values in entries]


def _plan(path: Path, values: Any) -> Plan:
    known = {"dataset", "rows", "methods", "pairs", "seeds", "preset", "grid", "changes"}
    if not isinstance(values, dict) or not {"dataset"} <= set(values) <= known or not {"rows", "methods"} & set(values):
        expected = f"dataset, methods or rows, and perhaps {', '.join(sorted(known - {'dataset', 'methods', 'rows'}))}"
        raise unreadable(path, problem="not a plan", advice=f"Give {expected}.")
    rows = rows_of(values.get("methods", ()), values.get("changes"))
    rows += tuple(_row(path, row) for row in values.get("rows", ()))
    try:
        pairs = tuple(parse_pair(pair) for pair in values.get("pairs", ()))
        return Plan(
            str(values["dataset"]),
            rows,
            pairs,
            tuple(values.get("seeds", (0,))),
            str(values.get("preset", "paper")),
            dict(values.get("grid", {})),
        )
    except TypeError as error:
        raise unreadable(path, problem=f"not a plan ({error})", advice="See docs/benchmark.md.") from None


def _row(path: Path, values: Any) -> Row:
    if isinstance(values, str):
        return Row(values, values)
    if (
        not isinstance(values, dict)
        or "method" not in values
        or not set(values) <= {"label", "method", "changes", "goal"}
    ):
        raise unreadable(path, problem=f"not a row: {values}", advice="Give method, and perhaps label, changes, goal.")
    return Row(**{"label": values["method"], **values})


def parse_pair(text: object) -> tuple[int, int]:
    """Read "2-11" as (2, 11)."""
    parts = str(text).split("-")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        raise wrong("pairs", expected="source and target as 2-11", got=repr(text), advice="Separate them by a hyphen.")
    return int(parts[0]), int(parts[1])


def _points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    points: list[dict[str, Any]] = [{}]
    for name, values in grid.items():
        points = [{**point, name: value} for point in points for value in values]
    return points


def _fields(method: str) -> set[str]:
    return set(entry(method).method.Settings.__dataclass_fields__)
