"""From stored runs to a table: our scores, the published figure beside each, and which runs are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from transpl._utils.errors import check_choice, invalid
from transpl.benchmark.measures import (
    METRIC_BY_NAME,
    means_over_equal_seeds,
    metric_value,
    part_scores,
    spread_over_seeds,
)
from transpl.benchmark.paper_tables import SETS, PaperTable, paper_table
from transpl.benchmark.plan import Plan, settings_without_seed
from transpl.benchmark.published import AVERAGE, PublishedFigure, published_figure
from transpl.benchmark.rendering import Cell, Column, TableData, TableRow
from transpl.benchmark.run_index import RunIndex, SelectedRun, TableQuery
from transpl.benchmark.run_spec import RunSpec, run_identity
from transpl.benchmark.store import Result, package_versions
from transpl.datasets.pairs import PUBLISHED
from transpl.methods.registry import entries

SCORES = ("accuracy", "macro_f1", "binary_f1")
RUN_KEYS = ("dataset", "row", "pair", "seed")
ALL = "all"  # the table of what a folder holds
_SETS_OF_TWO_CLASSES = ("ptb",)
_CSV_DECIMALS = 3
_MOST_NAMED_SETTINGS = 6


@dataclass(frozen=True)
class Block:
    """The part of a table that one data set fills.

    plan : what the table wants; None for the table of what a folder holds
    runs : label of a row -> its runs, one per pair and seed
    """

    table: PaperTable
    dataset: str
    query: TableQuery
    plan: Plan | None
    runs: Mapping[str, Sequence[SelectedRun]]
    metrics: tuple[str, ...]

    @property
    def pairs(self) -> list[str]:
        return list(dict.fromkeys(run.spec.pair for run in self.all_runs()))

    def all_runs(self) -> Iterator[SelectedRun]:
        return (run for runs in self.runs.values() for run in runs)

    def printed_as(self, label: str) -> str:
        """The row among the published figures; "" for runs that do not have the paper's settings."""
        if self.plan is not None:
            return label
        spec = self.runs[label][0].spec
        if not spec.settings:  # a line of a file, whose label says what differs
            return label
        if spec.normalise != "none":
            return ""
        known = entries().get(spec.method)  # no name of an estimator, which to look up is to import
        if known is None:
            return ""
        usual = run_identity(spec.method, settings_without_seed(known.settings(spec.dataset)))
        return spec.method if run_identity(spec.method, spec.settings) == usual else ""

    def value(self, result: Result, metric: str) -> float:
        """What the table shows of a run."""
        return metric_value(self.table.part, result, metric)

    def cell(self, runs: Iterable[SelectedRun], metric: str, published: PublishedFigure | None) -> Cell:
        """Our score over some runs beside a published figure."""
        runs = list(runs)
        values = [(run.spec.seed, self.value(run.result, metric)) for run in runs if run.result is not None]
        ours = spread_over_seeds(values) if values else None
        return Cell(
            mean=None if ours is None else ours.mean,
            std=None if ours is None else ours.std,
            n=len(values),
            published=None if published is None else published.value,
            flag=None if published is None else published.flag,
            missing=sum(run.result is None for run in runs),
        )


def _make_block(table: PaperTable, index: RunIndex, dataset: str, query: TableQuery) -> Block:
    plan = query.plan(table, dataset)
    return Block(table, dataset, query, plan, index.rows(plan, query.select), _metrics(table, index, dataset))


def _metrics(table: PaperTable, index: RunIndex, dataset: str) -> tuple[str, ...]:
    scores = (part_scores(table.part, result) for _, result in index.finished(dataset))
    two_classes = dataset in _SETS_OF_TWO_CLASSES or any("binary_f1" in found for found in scores)
    return ("accuracy", "macro_f1", *(("binary_f1",) if two_classes else ()), *table.extras)


def _held_block(index: RunIndex, dataset: str, query: TableQuery) -> Block:
    """What the folder holds of a data set; published figures only beside rows with the paper's settings."""
    runs = index.held(dataset, query)
    labels_only = any(run.spec.goal == "label" for of_row in runs.values() for run in of_row)
    part, published = ("labels", "pseudo") if labels_only else ("test", "full")
    table = PaperTable(ALL, "What was run", part, lambda _: (), published=published)
    return Block(table, dataset, query, None, runs, _metrics(table, index, dataset))


def _make_blocks(which: str, index: RunIndex, datasets: Sequence[str], query: TableQuery) -> list[Block]:
    """A table by data set. Default: the table's data sets that the folder has and the user's own, or else all."""
    known = index.datasets()
    if which == ALL:
        return [block for name in datasets or known if (block := _held_block(index, name, query)).runs]
    table = paper_table(which)
    if not datasets:
        datasets = [name for name in table.datasets if name in known] + [name for name in known if name not in SETS]
    return [
        _make_block(table, index, name, _found_settings(table, index, name, query))
        for name in datasets or table.datasets
    ]


def _found_settings(table: PaperTable, index: RunIndex, dataset: str, query: TableQuery) -> TableQuery:
    """The query with the settings that the runs have, if it names none and no run has the paper's."""
    if query.changes or query.grid or query.preset != TableQuery.preset:
        return query
    plan = query.plan(table, dataset)
    if any(run.result for runs in index.rows(plan, query.select).values() for run in runs):
        return query
    own = {name for row in plan.rows for name in row.changes}
    changes = index.changes(dataset, {row.method for row in plan.rows}, plan.preset)
    return replace(query, changes={name: value for name, value in changes.items() if name not in own})


# Tables


def paper_table_from(
    folder: Path, which: str, datasets: Sequence[str] = (), query: TableQuery | None = None
) -> TableData:
    """One of the paper's tables, with means and standard deviations over seeds.

    Parameters
    ----------
    folder : Path
        Folder of a benchmark.
    which : str
        Name of the table, such as "full".
    datasets : sequence of str
        Default: those that have runs.
    query : TableQuery, optional
        Default: the paper's settings.

    Returns
    -------
    TableData
        See `transpl.benchmark.render`.
    """
    query = query or TableQuery()
    index = RunIndex(folder, query.data)
    blocks = _make_blocks(which, index, datasets, query)
    if not blocks:
        advice = "Name other methods, settings or data sets, or leave them out."
        raise invalid("runs", expected="some of these methods, settings and data sets", got="none", advice=advice)
    columns = [(block, METRIC_BY_NAME[metric]) for block in blocks for metric in block.metrics]

    def cell(block: Block, label: str, metric: str) -> Cell | None:
        if label not in block.runs:
            return None
        printed = block.table.published
        published = (
            None if printed is None else _find_published(printed, block.dataset, block.printed_as(label), metric)
        )
        return block.cell(block.runs[label], metric, published)

    table, rows = blocks[0].table, list(dict.fromkeys(label for block in blocks for label in block.runs))
    cells = {(label, i): cell(block, label, metric.name) for label in rows for i, (block, metric) in enumerate(columns)}

    return TableData(
        title=table.title,
        caption=_caption(table, blocks, query, cells.values()),
        columns=tuple(
            Column(metric.heading, block.dataset, metric.decimals, metric.better) for block, metric in columns
        ),
        rows=tuple(TableRow(label, tuple(cells[label, i] for i in range(len(columns)))) for label in rows),
        missing_runs=_missing_runs(blocks),
        notes=_notes(index, blocks),
        label=f"tab:{which}",
        corner={"patch": "Patch length", "codebook": "Coarse/fine"}.get(which, "Method"),
    )


def pair_table_from(folder: Path, dataset: str, metric: str = "accuracy", query: TableQuery | None = None) -> TableData:
    """The appendix's table of a data set: every method that was run on every pair.

    With a grid or a preset, the methods of the full table.
    """
    query = query or TableQuery()
    check_choice("metric", metric, SCORES)
    index = RunIndex(folder, query.data)
    planned = query.grid or query.preset is not None
    block = _make_block(paper_table("full"), index, dataset, query) if planned else _held_block(index, dataset, query)
    if not block.runs:
        advice = "Name other methods, settings or data sets, or leave them out."
        raise invalid("runs", expected="some of these methods, settings and data sets", got="none", advice=advice)
    columns = (*block.pairs, AVERAGE)

    def cell(label: str, pair: str) -> Cell:
        runs = (run for run in block.runs[label] if pair in (run.spec.pair, AVERAGE))
        return block.cell(runs, metric, _find_published("pairs", dataset, block.printed_as(label), metric, pair))

    cells = {(label, pair): cell(label, pair) for label in block.runs for pair in columns}
    return TableData(
        title=f"{dataset}, every pair: {METRIC_BY_NAME[metric].heading}",
        caption=_caption(block.table, [block], query, cells.values()),
        columns=tuple(map(Column, columns)),
        rows=tuple(TableRow(label, tuple(cells[label, pair] for pair in columns)) for label in block.runs),
        missing_runs=_missing_runs([block]),
        notes=_notes(index, [block]),
        label=f"tab:pairs-{dataset}-{metric.replace('_', '-')}",
    )


def scores_by_pair(
    folder: Path, which: str, datasets: Sequence[str], metric: str = "accuracy", query: TableQuery | None = None
) -> dict[str, dict[Hashable, float | None]]:
    """{row: {(data set, pair): mean over seeds}} for statistics over pairs; None where a row lacks another's seed.

    Rows without any result are left out.
    """
    query = query or TableQuery()
    found: dict[str, dict[Hashable, dict[int, float]]] = {}
    for block in _make_blocks(which, RunIndex(folder, query.data), datasets, query):
        for label, runs in block.runs.items():
            if any(run.result for run in runs):
                by_pair = found.setdefault(label, {})
                for run in runs:
                    by_seed = by_pair.setdefault((block.dataset, run.spec.pair), {})
                    if run.result is not None:
                        by_seed[run.spec.seed] = block.value(run.result, metric)
    return means_over_equal_seeds(found)


def runs_as_csv(folder: Path, which: str, datasets: Sequence[str] = (), query: TableQuery | None = None) -> str:
    """Every finished run of a table on a line of its own, as CSV: `RUN_KEYS`, then what the table shows of a run."""
    query = query or TableQuery()
    blocks = _make_blocks(which, RunIndex(folder, query.data), datasets, query)
    metrics = dict.fromkeys(metric for block in blocks for metric in block.metrics)
    lines = [
        {"dataset": block.dataset, "row": label, "pair": run.spec.pair, "seed": run.spec.seed}
        | {metric: round(block.value(run.result, metric), _CSV_DECIMALS) for metric in block.metrics}
        for block in blocks
        for label, runs in block.runs.items()
        for run in runs
        if run.result is not None
    ]
    return pd.DataFrame(lines, columns=[*RUN_KEYS, *metrics]).to_csv(index=False, lineterminator="\n")


def _find_published(table: str, dataset: str, label: str, metric: str, pair: str = AVERAGE) -> PublishedFigure | None:
    """The published figure that measures `metric`, whatever its heading says."""
    printed = [published_figure(table, dataset, label, heading, pair) for heading in (metric, "macro_f1")]
    return next((found for found in printed if found is not None and found.measures == metric), None)


# Captions and notes


def _caption(table: PaperTable, blocks: Sequence[Block], query: TableQuery, cells: Iterable[Cell | None]) -> str:
    part = "the target's test part" if table.part == "test" else "pseudo-labels of the target's train part"
    seeds = sorted({run.spec.seed for block in blocks for run in block.all_runs()})
    sentences = [
        f"Percent on {part}: mean over pairs, then mean ± standard deviation over seeds "
        f"({', '.join(map(str, seeds)) or 'none'}).",
        f"Pairs: {'; '.join(map(_describe_pairs, blocks))}.",
        "In brackets the published figure and our difference."
        if any(cell is not None and cell.published is not None for cell in cells)
        else "",
        "Seconds of adaptation, on one thread." if "seconds" in table.extras else "",
        *dict.fromkeys(block.query.describe(table) for block in blocks),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _describe_pairs(block: Block) -> str:
    """As "ucihar all 10" or "ucihar 2-11, 6-23 (2 of 10)": a mean over other pairs is not the published one."""
    known = [f"{source}-{target}" for source, target in PUBLISHED.get(block.dataset, ())]
    if known and set(known) <= set(block.pairs):
        return f"{block.dataset} all {len(known)}"
    of_all = f" ({len(block.pairs)} of {len(known)})" if known else ""
    return f"{block.dataset} {', '.join(block.pairs) or 'none'}{of_all}"


def _missing_runs(blocks: Iterable[Block]) -> tuple[str, ...]:
    """Names of the missing runs; one name for a row that has none at all."""
    names = []
    for block in blocks:
        for label, runs in block.runs.items():
            missing = [run.spec for run in runs if run.result is None]
            if missing and len(missing) == len(runs):
                names.append(f"{block.dataset} {label} (all {len(runs)})")
            else:
                names += [f"{spec.dataset} {spec.pair} {label} seed {spec.seed}" for spec in missing]
    return tuple(names)


def _notes(index: RunIndex, blocks: Sequence[Block]) -> tuple[str, ...]:
    """What the folder has besides the table, and several versions of one package."""
    settings, methods = [], []
    for block in blocks:
        if block.plan is None:
            continue
        if others := index.with_other_settings(block.plan):
            what = f"finished runs of these methods have other settings{_describe_settings(block.plan, others)}"
            how = "See them with --set, or all runs without --which."
            settings.append(f"{block.dataset}: {len(others)} {what} and are not in this table. {how}")
        shown = {row.method for row in block.plan.rows}
        counts = Counter(spec.method for spec, _ in index.finished(block.dataset))
        if unused := [f"{method} ({n})" for method, n in sorted(counts.items()) if method not in shown]:
            methods.append(f"{block.dataset}: there are also runs of {', '.join(unused)}.")
    results = (run.result for block in blocks for run in block.all_runs() if run.result is not None)
    several = {name: versions for name, versions in package_versions(results).items() if len(versions) > 1}
    mixed = "; ".join(f"{name} {', '.join(several[name])}" for name in sorted(several))
    return (*settings, *methods, *([f"Runs were made with several versions: {mixed}."] if mixed else []))


def _describe_settings(plan: Plan, specs: Iterable[RunSpec]) -> str:
    """As " (max_epochs=2, width=16)": what to pass with --set to see these runs."""
    shown = {row.method: plan.settings_for(row)[0] for row in reversed(plan.rows)}
    different = dict.fromkeys(
        f"{name}={value}"
        for spec in specs
        for name, value in spec.settings.items()
        if shown[spec.method].get(name) != value
    )
    named = list(different)[:_MOST_NAMED_SETTINGS]
    return f" ({', '.join(named)}{', ...' if len(different) > len(named) else ''})" if named else ""
