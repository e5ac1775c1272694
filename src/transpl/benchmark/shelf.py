"""What a folder has and what it was meant to have, sorted by the rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transpl._utils.errors import invalid
from transpl.benchmark.plan import Plan, Row, RunSpec, short_digest
from transpl.benchmark.selection import select_best
from transpl.benchmark.store import Result, Store


@dataclass(frozen=True)
class Choice:
    """One row on one pair with one seed: its run, or the finished one of a grid that a rule chose; None: missing."""

    spec: RunSpec
    result: Result | None


class Shelf:
    """The runs of a folder.

    data : where a data set was run in several versions, which one: the beginning of its fingerprint
    """

    def __init__(self, folder: Path, data: Sequence[str] = ()) -> None:
        known = Store(folder).known()
        self.planned = _of_versions({digest: spec for digest, (spec, _) in known.items()}, tuple(data))
        results = {digest: known[digest][1] for digest in sorted(self.planned)}
        self.finished = {d: (self.planned[d], result) for d, result in results.items() if result is not None}
        self._identities = {d: identity(spec.method, spec.settings) for d, spec in self.planned.items()}

    def datasets(self) -> list[str]:
        """Every data set that has runs, finished or not."""
        return sorted({spec.dataset for spec in self.planned.values()})

    def results_of(self, dataset: str) -> list[tuple[RunSpec, Result]]:
        """The finished runs of a data set."""
        return [(spec, result) for spec, result in self.finished.values() if spec.dataset == dataset]

    def choices(self, plan: Plan, row: Row, select: str) -> list[Choice]:
        """One choice per planned (pair, seed) of a row; with a grid, the candidate that the rule prefers."""
        self._check_version(plan.dataset)
        wanted = identities(plan, row)
        groups: dict[tuple[int, int, int], list[RunSpec]] = {}
        for digest, spec in self.planned.items():
            meant = spec.dataset == plan.dataset and self._identities[digest] in wanted
            if meant and spec.goal in (row.goal, "adapt"):  # a run that adapts has labels too
                groups.setdefault((spec.source, spec.target, spec.seed), []).append(spec)
        return [self._chosen(specs, len(wanted), row.goal, select) for _, specs in sorted(groups.items())]

    def rows(self, plan: Plan, select: str) -> list[list[Choice]]:
        """The choices of all rows of a plan. What one row has and another lacks is missing there."""
        found = [self.choices(plan, row, select) for row in plan.rows]
        places = {_place(choice.spec): choice.spec for choices in found for choice in choices}
        return [
            [_at(place, choices) or Choice(_moved(plan, row, places[place]), None) for place in sorted(places)]
            for row, choices in zip(plan.rows, found, strict=True)
        ]

    def others(self, plan: Plan, rows: Iterable[Row]) -> list[RunSpec]:
        """The finished runs of these methods whose settings no row has."""
        rows = list(rows)
        wanted = {each for row in rows for each in identities(plan, row)}
        methods = {row.method for row in rows}
        found = [spec for spec, _ in self.results_of(plan.dataset) if spec.method in methods]
        return [spec for spec in found if self._identities[spec.digest] not in wanted]

    def _chosen(self, specs: list[RunSpec], candidates: int, goal: str, select: str) -> Choice:
        exact = [spec for spec in specs if spec.goal == goal] or specs
        done = {spec.digest: self.finished[spec.digest][1] for spec in exact if spec.digest in self.finished}
        if len(done) < candidates:
            return Choice(exact[0], None)  # a choice among some of the candidates would be another rule
        name = next(iter(done)) if len(done) == 1 else select_best({d: r.risks for d, r in done.items()}, select)
        return Choice(self.planned[name], done[name])

    def _check_version(self, dataset: str) -> None:
        versions = Counter(spec.data for spec in self.planned.values() if spec.dataset == dataset)
        if len(versions) > 1:
            got = ", ".join(f"{name} ({count} runs)" for name, count in sorted(versions.items()))
            raise invalid("data", expected=f"runs on one version of {dataset}", got=got, advice="Name one with --data.")


def identity(method: str, settings: Mapping[str, Any]) -> str:
    """Equal for runs that differ in pair, seed and goal alone."""
    return short_digest([method, dict(settings)])


def identities(plan: Plan, row: Row) -> set[str]:
    """Those of a row: one, or one per point of the grid."""
    return {identity(row.method, settings) for settings in plan.settings_for(row)}


def _of_versions(planned: Mapping[str, RunSpec], data: tuple[str, ...]) -> dict[str, RunSpec]:
    """Only the versions that are named, of data sets that have such a one."""
    restricted = {spec.dataset for spec in planned.values() if spec.data.startswith(data)} if data else set()
    return {d: spec for d, spec in planned.items() if spec.dataset not in restricted or spec.data.startswith(data)}


def _place(spec: RunSpec) -> tuple[int, int, int]:
    return spec.source, spec.target, spec.seed


def _at(place: tuple[int, int, int], choices: Iterable[Choice]) -> Choice | None:
    return next((choice for choice in choices if _place(choice.spec) == place), None)


def _moved(plan: Plan, row: Row, place: RunSpec) -> RunSpec:
    """The run of a row where another row has `place`; nobody planned it."""
    values = {**place.as_dict(), "method": row.method, "settings": plan.settings_for(row)[0], "goal": row.goal}
    return RunSpec.from_dict(values)
