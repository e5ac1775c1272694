"""Which runs a table is made of: the query, and the runs of a folder or a file that answer it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transpl._utils.errors import check_choice, invalid
from transpl.benchmark.entries import EntryIndex
from transpl.benchmark.paper_tables import PaperTable
from transpl.benchmark.plan import Plan, Row, settings_of, settings_without_seed, with_changes
from transpl.benchmark.run_lines import identity_of_row, runs_of_lines
from transpl.benchmark.run_spec import RunSpec, run_identity
from transpl.benchmark.selection import DEFAULT_RULE, RULES, select_best
from transpl.benchmark.store import Result, Store
from transpl.methods.registry import entries

_OPEN_TABLES = ("full", "pseudo", "weak", "beyond", "cnn")  # rows are methods, so that others may join


@dataclass(frozen=True)
class TableQuery:
    """Which runs a table is made of.

    Parameters
    ----------
    preset : str, optional
        Preset of the settings. Default: the table's.
    changes : mapping
        Settings that differ from the preset.
    grid : mapping
        The grid that was run, see `Plan`.
    select : str
        Rule that chooses among the runs of a grid, see `transpl.benchmark.selection`.
    methods : sequence of str
        Only these methods; those that the table does not have become further rows. Empty: the table's own.
    data : sequence of str
        Beginnings of fingerprints, for data sets that were run in several versions.
    normalise : str, optional
        How the channels were scaled, see `Plan`. Default: as the table says.
    """

    preset: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    select: str = DEFAULT_RULE
    methods: Sequence[str] = ()
    data: Sequence[str] = ()
    normalise: str | None = None

    def __post_init__(self) -> None:
        check_choice("select", self.select, tuple(RULES))

    def plan(self, table: PaperTable, dataset: str) -> Plan:
        """The rows of a table with these settings."""
        rows = list(table.rows(dataset))
        known = {row.method for row in rows}
        others = [name for name in self.methods if name not in known]
        if others and table.name not in _OPEN_TABLES:
            expected, got = f"methods of this table ({', '.join(sorted(known))})", ", ".join(others)
            raise invalid("methods", expected=expected, got=got, advice="Use --which full for others.")
        if self.methods:
            goal = "adapt" if table.part == "test" else "label"
            rows = [row for row in rows if row.method in self.methods] + [Row(name, name, goal=goal) for name in others]
        return Plan(
            dataset,
            with_changes(rows, self.changes),
            preset=self.preset or table.preset,
            grid=self.grid,
            normalise=self.normalise or table.normalise,
        )

    def admits(self, spec: RunSpec) -> bool:
        """Whether a run is of these methods and has these settings, as far as its method has them."""
        same = (spec.settings.get(name, value) == value for name, value in _as_stored(self.changes).items())
        scaled = self.normalise in (None, spec.normalise)
        return (not self.methods or spec.method in self.methods) and scaled and all(same)

    def describe(self, table: PaperTable) -> str:
        """Sentences for the caption; empty for the paper's settings."""
        preset, normalise = self.preset or table.preset, self.normalise or table.normalise
        sentences = [f"Preset {preset}."] if preset != "paper" else []
        if normalise != "none":
            sentences.append(f"Channels scaled: {normalise}.")
        if self.changes:
            changes = ", ".join(f"{name}={value}" for name, value in self.changes.items())
            sentences.append(f"Settings changed: {changes}.")
        if self.grid:
            values = "; ".join(f"{name} of {', '.join(map(str, values))}" for name, values in self.grid.items())
            sentences.append(f"Chosen per run by {self.select} ({RULES[self.select].what}): {values}.")
        return " ".join(sentences)


@dataclass(frozen=True)
class SelectedRun:
    """The run of a row on one pair with one seed; of a grid, the one that the rule selects. No result: missing."""

    spec: RunSpec
    result: Result | None


class RunIndex:
    """The planned and finished runs of a folder, or the lines of a file, found by the rows of a plan.

    data : beginnings of fingerprints; restricts the data sets that have such a version to it
    """

    def __init__(self, path: Path, data: Sequence[str] = ()) -> None:
        known: dict[str, tuple[RunSpec, Result | None]]
        if Path(path).is_file():
            lines = runs_of_lines(path)
            known = {key: (line.spec, line.result) for key, line in lines.items()}
            self._identities = {key: line.identity for key, line in lines.items()}
            self._labels = {key: line.row.label for key, line in lines.items()}
        else:
            known = Store(path).known()
            self._identities = {
                key: run_identity(spec.method, spec.settings, spec.normalise) for key, (spec, _) in known.items()
            }
            self._labels = {}
        versions = tuple(data)
        restricted = {spec.dataset for spec, _ in known.values() if versions and spec.data.startswith(versions)}
        self.runs = {
            digest: (spec, result)
            for digest, (spec, result) in known.items()
            if spec.dataset not in restricted or spec.data.startswith(versions)
        }

    def datasets(self) -> list[str]:
        """Every data set that has runs, finished or not."""
        return sorted({spec.dataset for spec, _ in self.runs.values()})

    def finished(self, dataset: str) -> list[tuple[RunSpec, Result]]:
        """The finished runs of a data set, in the order of their digests."""
        runs = (self.runs[digest] for digest in sorted(self.runs))
        return [(spec, result) for spec, result in runs if result is not None and spec.dataset == dataset]

    def rows(self, plan: Plan, rule: str) -> dict[str, list[SelectedRun]]:
        """The runs of every row by its label; a pair and seed that any row has is missing in a row without it."""
        self._check_version(plan.dataset)
        found = [self._select(plan, row, rule) for row in plan.rows]
        places = {place: run.spec for runs in found for place, run in runs.items()}
        table = {}
        for row, runs in zip(plan.rows, found, strict=True):
            settings = plan.settings_for(row)[0]
            table[row.label] = [
                runs.get(place) or SelectedRun(replace(spec, method=row.method, settings=settings, goal=row.goal), None)
                for place, spec in sorted(places.items(), key=lambda each: each[0])
            ]
        return table

    def held(self, dataset: str, query: TableQuery) -> dict[str, list[SelectedRun]]:
        """The planned and finished runs of a data set by the label of their row."""
        self._check_version(dataset)
        of_set = {key: spec for key, (spec, _) in self.runs.items() if spec.dataset == dataset}
        known = {*entries(), *query.methods}  # an estimator is imported only if somebody asks for it
        if methods := sorted({spec.method for spec in of_set.values()} & known):
            settings_of(methods, dataset, changes=query.changes)  # refuses a setting that none of them has
        admitted = {key: spec for key, spec in of_set.items() if query.admits(spec)}
        goal = "adapt" if any(spec.goal == "adapt" for spec in admitted.values()) else "label"
        chosen = {key: spec for key, spec in admitted.items() if spec.goal == goal}
        groups: dict[str, dict[tuple[int, int, int], str]] = {}
        for key, label in self._labelled(chosen):
            spec = chosen[key]
            groups.setdefault(label, {})[spec.source, spec.target, spec.seed] = key
        places = {place: chosen[key] for of_label in groups.values() for place, key in of_label.items()}
        table = {}
        for label, of_label in groups.items():
            one = chosen[next(iter(of_label.values()))]
            table[label] = [
                SelectedRun(*self.runs[of_label[place]])
                if place in of_label
                else SelectedRun(replace(spec, method=one.method, settings=one.settings, goal=goal), None)
                for place, spec in sorted(places.items(), key=lambda each: each[0])
            ]
        return table

    def _labelled(self, specs: Mapping[str, RunSpec]) -> Iterator[tuple[str, str]]:
        """(run, label of its row), in the order of the rows."""
        if not specs:
            return
        if self._labels:
            yield from ((key, self._labels[key]) for key in specs)
            return
        rows = EntryIndex(list(specs.values()))
        place = {entry.label: i for i, entry in enumerate(rows.entries)}
        labels = {key: rows.of(spec).label for key, spec in specs.items()}
        yield from sorted(labels.items(), key=lambda each: place[each[1]])

    def changes(self, dataset: str, methods: Collection[str], preset: str = "paper") -> dict[str, Any]:
        """The settings, other than the preset's, that all finished runs of these methods share, if they have them."""
        values: dict[str, list[Any]] = {}
        changed: set[str] = set()
        for spec, _ in self.finished(dataset):
            if spec.method not in methods:
                continue
            usual = settings_without_seed(settings_of([spec.method], dataset, preset=preset)[spec.method])
            for name, value in spec.settings.items():
                values.setdefault(name, []).append(value)
                if json.dumps(usual.get(name)) != json.dumps(value):
                    changed.add(name)
        return {name: values[name][0] for name in sorted(changed) if all(v == values[name][0] for v in values[name])}

    def with_other_settings(self, plan: Plan) -> list[RunSpec]:
        """The finished runs of a plan's methods whose settings no row has."""
        wanted = {identity for row in plan.rows for identity in _identities(plan, row)}
        methods = {row.method for row in plan.rows}
        return [
            spec
            for key, (spec, result) in sorted(self.runs.items())
            if result is not None
            and spec.dataset == plan.dataset
            and spec.method in methods
            and self._identities[key] not in wanted
        ]

    def _check_version(self, dataset: str) -> None:
        versions = Counter(spec.data for spec, _ in self.runs.values() if spec.dataset == dataset and spec.data)
        if len(versions) > 1:
            got = ", ".join(f"{name} ({count} runs)" for name, count in sorted(versions.items()))
            expected = f"runs on one version of {dataset}"
            raise invalid("data", expected=expected, got=got, advice="Name one with --data.")

    def _select(self, plan: Plan, row: Row, rule: str) -> dict[tuple[int, int, int], SelectedRun]:
        """(source, target, seed) -> run."""
        wanted = _identities(plan, row)
        groups: dict[tuple[int, int, int], list[str]] = {}
        for key, (spec, _) in self.runs.items():
            fits = spec.dataset == plan.dataset and self._identities[key] in {*wanted, identity_of_row(row.label)}
            if fits and spec.goal in (row.goal, "adapt"):  # a run that adapts has labels too
                groups.setdefault((spec.source, spec.target, spec.seed), []).append(key)
        selected = {}
        for place, keys in groups.items():
            exact = [key for key in keys if self.runs[key][0].goal == row.goal] or keys
            done = {key: result for key in exact if (result := self.runs[key][1]) is not None}
            if len(done) < len(wanted):  # selecting among some of the candidates would be another rule
                selected[place] = SelectedRun(self.runs[exact[0]][0], None)
                continue
            best = next(iter(done)) if len(done) == 1 else select_best({d: r.risks for d, r in done.items()}, rule)
            selected[place] = SelectedRun(*self.runs[best])
        return selected


def _as_stored(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a stored run has them: tuples are lists there."""
    return dict(json.loads(json.dumps(dict(changes))))


def _identities(plan: Plan, row: Row) -> set[str]:
    """Those of a row: one per point of the grid."""
    return {run_identity(row.method, settings, plan.normalise) for settings in plan.settings_for(row)}
