"""From stored results to a table of the paper: ours, the published figure beside it, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from transpl.benchmark.paper_tables import PaperTable, paper_table
from transpl.benchmark.plan import Plan, Row, with_changes
from transpl.benchmark.published import AVERAGE, Figure, figure
from transpl.benchmark.result import Result
from transpl.benchmark.selection import DEFAULT, RULES, best
from transpl.benchmark.spec import RunSpec, digest_of
from transpl.benchmark.store import Store
from transpl.benchmark.table_data import Cell, Column, TableData
from transpl.benchmark.table_data import Row as TableRow
from transpl.errors import one_of

METRICS = {"accuracy": "Acc", "macro_f1": "MF1", "binary_f1": "F1 of class 1", "mse": "MSE", "dead_codes": "Dead %"}
_TWO_CLASSES = ("ptb",)
_PERCENT = 100.0


@dataclass(frozen=True)
class Reading:
    """Which runs a table is made of: their preset, changed settings and grid, and the rule that chooses in a grid."""

    preset: str = "paper"
    changes: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    select: str = DEFAULT

    def __post_init__(self) -> None:
        one_of("select", self.select, tuple(RULES))

    def plan(self, table: PaperTable, dataset: str) -> Plan:
        """The rows of a table with these settings."""
        rows = with_changes(table.rows(dataset), self.changes)
        return Plan(dataset, rows, preset=self.preset, grid=self.grid)


@dataclass(frozen=True)
class Choice:
    """The runs of one row on one pair with one seed: planned ones, and the finished one that a rule chose."""

    spec: RunSpec
    result: Result | None


class Shelf:
    """What a folder has and what it was meant to have, by row."""

    def __init__(self, folder: Path) -> None:
        store = Store(folder)
        self.finished = {spec.digest: (spec, result) for spec, result in store.results()}
        self.planned = {spec.digest: spec for spec in store.planned()} | {d: s for d, (s, _) in self.finished.items()}

    def choices(self, plan: Plan, row: Row, select: str) -> list[Choice]:
        """One choice per planned (pair, seed) of a row; with a grid, the candidate that the rule prefers."""
        wanted = {_identity(row.method, settings) for settings in plan.settings_for(row)}
        groups: dict[tuple[int, int, int], list[RunSpec]] = {}
        for spec in self.planned.values():
            meant = spec.dataset == plan.dataset and _identity(spec.method, spec.settings) in wanted
            if meant and spec.goal in (row.goal, "adapt"):  # a run that adapts has labels too
                groups.setdefault((spec.source, spec.target, spec.seed), []).append(spec)
        return [self._chosen(specs, row.goal, select) for _, specs in sorted(groups.items())]

    def others(self, plan: Plan, rows: Iterable[Row]) -> int:
        """How many finished runs of these methods have settings that no row has."""
        rows = list(rows)
        wanted = {_identity(row.method, settings) for row in rows for settings in plan.settings_for(row)}
        methods = {row.method for row in rows}
        found = [spec for spec, _ in self.finished.values() if spec.dataset == plan.dataset and spec.method in methods]
        return sum(_identity(spec.method, spec.settings) not in wanted for spec in found)

    def _chosen(self, specs: list[RunSpec], goal: str, select: str) -> Choice:
        exact = [spec for spec in specs if spec.goal == goal] or specs
        done = {spec.digest: self.finished[spec.digest][1] for spec in exact if spec.digest in self.finished}
        if len(done) < len({_identity(spec.method, spec.settings) for spec in exact}):
            return Choice(exact[0], None)  # a choice among some of the candidates would be another rule
        name = next(iter(done)) if len(done) == 1 else best({d: r.risks for d, r in done.items()}, select)
        return Choice(self.planned[name], done[name])


def paper_table_from(folder: Path, which: str, datasets: Sequence[str] = (), how: Reading | None = None) -> TableData:
    """One of the paper's tables from the results in a folder, means and standard deviations over seeds."""
    how = how or Reading()
    table, shelf = paper_table(which), Shelf(folder)
    sets = [name for name in (datasets or table.datasets) if datasets or _has(shelf, name)] or list(table.datasets)
    plans = {name: how.plan(table, name) for name in sets}
    filled = {name: [shelf.choices(plan, row, how.select) for row in plan.rows] for name, plan in plans.items()}
    labels = list(dict.fromkeys(row.label for plan in plans.values() for row in plan.rows))
    columns = [(name, metric) for name in sets for metric in _metrics(table, name)]
    return TableData(
        title=table.title,
        caption=_caption(table, how, filled),
        columns=tuple(_column(name, metric) for name, metric in columns),
        rows=tuple(
            TableRow(label, tuple(_cell(table, plans, filled, label, name, metric) for name, metric in columns))
            for label in labels
        ),
        missing_runs=tuple(str(c.spec) for rows in filled.values() for row in rows for c in row if c.result is None),
        notes=_notes(shelf, plans),
        label=f"tab:{which}",
        corner={"patch": "Patch length", "codebook": "Coarse/fine"}.get(which, "Method"),
    )


def pair_table_from(folder: Path, dataset: str, metric: str = "accuracy", how: Reading | None = None) -> TableData:
    """The appendix's table of a data set: every method of the full table on every pair."""
    how = how or Reading()
    one_of("metric", metric, tuple(METRICS)[:3])
    table, shelf = paper_table("full"), Shelf(folder)
    plan = how.plan(table, dataset)
    filled = [shelf.choices(plan, row, how.select) for row in plan.rows]
    pairs = list(dict.fromkeys(choice.spec.pair for row in filled for choice in row))
    return TableData(
        title=f"{dataset}, every pair: {METRICS[metric]}",
        caption="Percent on the target's test part; mean ± standard deviation over seeds.",
        columns=tuple(Column(pair) for pair in (*pairs, AVERAGE)),
        rows=tuple(
            TableRow(
                row.label,
                tuple(
                    _summary(
                        [c for c in choices if pair in (c.spec.pair, AVERAGE)],
                        lambda result: _value(table, result, metric),
                        _published("pairs", dataset, row.label, metric, pair),
                    )
                    for pair in (*pairs, AVERAGE)
                ),
            )
            for row, choices in zip(plan.rows, filled, strict=True)
        ),
        missing_runs=tuple(str(c.spec) for row in filled for c in row if c.result is None),
        notes=_notes(shelf, {dataset: plan}),
        label=f"tab:pairs-{dataset}-{metric.replace('_', '-')}",
    )


def scores_by_pair(
    folder: Path, which: str, datasets: Sequence[str], metric: str = "accuracy", how: Reading | None = None
) -> dict[str, dict[Hashable, float | None]]:
    """{row: {(data set, pair): mean over seeds}} for statistics over pairs; finished cells only."""
    how = how or Reading()
    table, shelf = paper_table(which), Shelf(folder)
    found: dict[str, dict[Hashable, list[float]]] = {}
    for name in datasets or [name for name in table.datasets if _has(shelf, name)]:
        plan = how.plan(table, name)
        for row in plan.rows:
            for choice in shelf.choices(plan, row, how.select):
                if choice.result is not None:
                    cell = found.setdefault(row.label, {}).setdefault((name, choice.spec.pair), [])
                    cell.append(_value(table, choice.result, metric))
    return {row: {key: float(np.mean(values)) for key, values in cells.items()} for row, cells in found.items()}


def _cell(
    table: PaperTable,
    plans: Mapping[str, Plan],
    filled: Mapping[str, Sequence[list[Choice]]],
    label: str,
    dataset: str,
    metric: str,
) -> Cell | None:
    labels = [row.label for row in plans[dataset].rows]
    if label not in labels:
        return None
    choices = filled[dataset][labels.index(label)]
    published = _published(table.name, dataset, label, metric)
    return _summary(choices, lambda result: _value(table, result, metric), published)


def _published(table: str, dataset: str, label: str, metric: str, pair: str = AVERAGE) -> Figure | None:
    """The published figure that measures `metric`, whatever its heading says."""
    printed = [figure(table, dataset, label, heading, pair) for heading in (metric, "macro_f1")]
    return next((found for found in printed if found is not None and found.measures == metric), None)


def _summary(choices: Sequence[Choice], value: Callable[[Result], float], published: Figure | None) -> Cell:
    """Mean over pairs first, then mean and standard deviation over seeds."""
    by_seed: dict[int, list[float]] = {}
    for choice in choices:
        if choice.result is not None:
            by_seed.setdefault(choice.spec.seed, []).append(value(choice.result))
    means = [float(np.mean(values)) for values in by_seed.values()]
    return Cell(
        mean=float(np.mean(means)) if means else None,
        std=float(np.std(means, ddof=1)) if len(means) > 1 else None,
        n=sum(len(values) for values in by_seed.values()),
        published=None if published is None else published.value,
        flag=None if published is None else published.flag,
        missing=sum(choice.result is None for choice in choices),
    )


def _value(table: PaperTable, result: Result, metric: str) -> float:
    if metric == "mse":
        return float(result.details["reconstruction_error"])
    if metric == "dead_codes":
        books = result.details["codebooks"].values()
        return _PERCENT * sum(book["dead"] for book in books) / sum(book["codes"] for book in books)
    scores = result.test if table.part == "test" else result.pseudo_labels["initial"]
    return _PERCENT * scores[metric]


def _metrics(table: PaperTable, dataset: str) -> tuple[str, ...]:
    two = ("binary_f1",) if dataset in _TWO_CLASSES else ()
    return ("accuracy", "macro_f1", *two, *table.extras)


def _column(dataset: str, metric: str) -> Column:
    lower = metric in ("mse", "dead_codes")
    return Column(METRICS[metric], dataset, decimals=3 if metric == "mse" else 1, better="lower" if lower else "higher")


def _caption(table: PaperTable, how: Reading, filled: Mapping[str, Sequence[list[Choice]]]) -> str:
    part = "the target's test part" if table.part == "test" else "pseudo-labels of the target's train part"
    seeds = sorted({c.spec.seed for rows in filled.values() for row in rows for c in row})
    chosen = f" {', '.join(how.grid)} chosen per run by {how.select} ({RULES[how.select]})." if how.grid else ""
    changed = f" Settings changed: {', '.join(f'{k}={v}' for k, v in how.changes.items())}." if how.changes else ""
    over = f"mean over pairs, then mean ± standard deviation over seeds ({', '.join(map(str, seeds)) or 'none'})"
    return f"Percent on {part}: {over}. In brackets the published figure and our difference.{chosen}{changed}"


def _notes(shelf: Shelf, plans: Mapping[str, Plan]) -> tuple[str, ...]:
    others = {name: shelf.others(plan, plan.rows) for name, plan in plans.items()}
    return tuple(
        f"{name}: {n} finished runs of these methods have other settings and are not in this table."
        for name, n in others.items()
        if n
    )


def _has(shelf: Shelf, dataset: str) -> bool:
    return any(spec.dataset == dataset for spec in shelf.planned.values())


def _identity(method: str, settings: Mapping[str, Any]) -> str:
    return digest_of([method, dict(settings)])
