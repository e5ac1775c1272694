"""From stored results to a table of the paper: ours, the published figure beside it, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path

from transpl._utils.errors import check_choice
from transpl.benchmark.blocks import SCORES, Block, block_of, blocks_of
from transpl.benchmark.equal_seeds import means_over_equal_seeds
from transpl.benchmark.measures import BY_NAME
from transpl.benchmark.paper_tables import PaperTable, paper_table
from transpl.benchmark.plan import RunSpec
from transpl.benchmark.published import AVERAGE, Figure, figure
from transpl.benchmark.reading import Reading
from transpl.benchmark.shelf import Choice, Shelf
from transpl.benchmark.spread import spread
from transpl.benchmark.store import Result, package_versions
from transpl.benchmark.table_data import Cell, Column, TableData
from transpl.benchmark.table_data import Row as TableRow
from transpl.datasets.pairs import PUBLISHED

__all__ = ["Choice", "Reading", "Shelf", "pair_table_from", "paper_table_from", "scores_by_pair"]

_MOST_NAMED_SETTINGS = 6


def paper_table_from(folder: Path, which: str, datasets: Sequence[str] = (), how: Reading | None = None) -> TableData:
    """One of the paper's tables from the results in a folder, means and standard deviations over seeds."""
    how = how or Reading()
    table, shelf = paper_table(which), Shelf(folder, how.data)
    blocks = blocks_of(which, shelf, datasets, how)
    labels = dict.fromkeys(row.label for block in blocks for row in block.plan.rows)
    columns = [(block, metric) for block in blocks for metric in block.metrics]
    return TableData(
        title=table.title,
        caption=_caption(table, blocks, how),
        columns=tuple(_column(block.dataset, metric) for block, metric in columns),
        rows=tuple(
            TableRow(label, tuple(_cell(block, label, metric) for block, metric in columns)) for label in labels
        ),
        missing_runs=_missing(blocks),
        notes=_notes(shelf, blocks),
        label=f"tab:{which}",
        corner={"patch": "Patch length", "codebook": "Coarse/fine"}.get(which, "Method"),
    )


def pair_table_from(folder: Path, dataset: str, metric: str = "accuracy", how: Reading | None = None) -> TableData:
    """The appendix's table of a data set: every method of the full table on every pair."""
    how = how or Reading()
    check_choice("metric", metric, SCORES)
    shelf = Shelf(folder, how.data)
    block = block_of(paper_table("full"), shelf, dataset, how)
    columns = (*block.pairs(), AVERAGE)
    return TableData(
        title=f"{dataset}, every pair: {BY_NAME[metric].heading}",
        caption=_caption(block.table, [block], how),
        columns=tuple(Column(pair) for pair in columns),
        rows=tuple(
            TableRow(row.label, tuple(_pair_cell(block, row.label, metric, pair) for pair in columns))
            for row in block.plan.rows
        ),
        missing_runs=_missing([block]),
        notes=_notes(shelf, [block]),
        label=f"tab:pairs-{dataset}-{metric.replace('_', '-')}",
    )


def scores_by_pair(
    folder: Path, which: str, datasets: Sequence[str], metric: str = "accuracy", how: Reading | None = None
) -> dict[str, dict[Hashable, float | None]]:
    """{row: {(data set, pair): mean over seeds}} for statistics over pairs; None where a row lacks another's seed.

    Rows without any result are left out.
    """
    how = how or Reading()
    found: dict[str, dict[Hashable, dict[int, float]]] = {}
    for block in blocks_of(which, Shelf(folder, how.data), datasets, how):
        for row, choices in block.rows():
            for pair in block.pairs() if any(choice.result for choice in choices) else ():
                there = [(choice.spec.seed, choice.result) for choice in choices if choice.spec.pair == pair]
                values = {seed: block.value(result, metric) for seed, result in there if result is not None}
                found.setdefault(row.label, {})[block.dataset, pair] = values
    return means_over_equal_seeds(found)


def _cell(block: Block, label: str, metric: str) -> Cell | None:
    choices = block.of(label)
    if choices is None:
        return None
    table = block.table.published
    published = None if table is None else _published(table, block.dataset, label, metric)
    return _summary(choices, lambda result: block.value(result, metric), published)


def _pair_cell(block: Block, label: str, metric: str, pair: str) -> Cell:
    there = [choice for choice in block.of(label) or () if pair in (choice.spec.pair, AVERAGE)]
    published = _published("pairs", block.dataset, label, metric, pair)
    return _summary(there, lambda result: block.value(result, metric), published)


def _published(table: str, dataset: str, label: str, metric: str, pair: str = AVERAGE) -> Figure | None:
    """The published figure that measures `metric`, whatever its heading says."""
    printed = [figure(table, dataset, label, heading, pair) for heading in (metric, "macro_f1")]
    return next((found for found in printed if found is not None and found.measures == metric), None)


def _summary(choices: Sequence[Choice], value: Callable[[Result], float], published: Figure | None) -> Cell:
    values = [(choice.spec.seed, value(choice.result)) for choice in choices if choice.result is not None]
    ours = spread(values) if values else None
    return Cell(
        mean=None if ours is None else ours.mean,
        std=None if ours is None else ours.std,
        n=len(values),
        published=None if published is None else published.value,
        flag=None if published is None else published.flag,
        missing=sum(choice.result is None for choice in choices),
    )


def _column(dataset: str, metric: str) -> Column:
    shown = BY_NAME[metric]
    return Column(shown.heading, dataset, shown.decimals, shown.better)


def _caption(table: PaperTable, blocks: Iterable[Block], how: Reading) -> str:
    blocks = list(blocks)
    of_what = "the target's test part" if table.part == "test" else "pseudo-labels of the target's train part"
    seeds = sorted({choice.spec.seed for block in blocks for choice in block.every()})
    said = [
        f"Percent on {of_what}: mean over pairs, then mean ± standard deviation over seeds "
        f"({', '.join(map(str, seeds)) or 'none'}).",
        f"Pairs: {'; '.join(_pairs_in_words(block) for block in blocks)}.",
        "In brackets the published figure and our difference." if table.published else "",
        "Seconds of adaptation, on one thread." if "seconds" in table.extras else "",
        how.in_words(),
    ]
    return " ".join(sentence for sentence in said if sentence)


def _pairs_in_words(block: Block) -> str:
    """As "ucihar all 10" or "ucihar 2-11, 6-23 (2 of 10)": a mean over other pairs than the print's is another one."""
    pairs = block.pairs()
    known = [f"{source}-{target}" for source, target in PUBLISHED.get(block.dataset, ())]
    if known and set(known) <= set(pairs):
        return f"{block.dataset} all {len(known)}"
    of_all = f" ({len(pairs)} of {len(known)})" if known else ""
    return f"{block.dataset} {', '.join(pairs) or 'none'}{of_all}"


def _missing(blocks: Iterable[Block]) -> tuple[str, ...]:
    """Names of the runs that are not there; a row that has none at all is one name."""
    named = []
    for block in blocks:
        for row, choices in block.rows():
            lacking = [choice.spec for choice in choices if choice.result is None]
            if lacking and len(lacking) == len(choices):
                named.append(f"{block.dataset} {row.label} (all {len(choices)})")
            else:
                named += [f"{spec.dataset} {spec.pair} {row.label} seed {spec.seed}" for spec in lacking]
    return tuple(named)


def _notes(shelf: Shelf, blocks: Iterable[Block]) -> tuple[str, ...]:
    blocks = list(blocks)
    return (*_settings_notes(shelf, blocks), *_method_notes(shelf, blocks), *_version_notes(blocks))


def _settings_notes(shelf: Shelf, blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        others = shelf.others(block.plan, block.plan.rows)
        if others:
            what = "finished runs of these methods have other settings"
            yield f"{block.dataset}: {len(others)} {what}{_what_differs(block, others)} and are not in this table."


def _what_differs(block: Block, others: Iterable[RunSpec]) -> str:
    """As " (max_epochs=2, width=16)": what to ask for with --set to see them."""
    meant = {row.method: block.plan.settings_for(row)[0] for row in reversed(block.plan.rows)}
    found = dict.fromkeys(
        f"{name}={value}"
        for spec in others
        for name, value in spec.settings.items()
        if meant[spec.method].get(name) != value
    )
    if not found:
        return ""
    named = list(found)[:_MOST_NAMED_SETTINGS]
    return f" ({', '.join(named)}{', ...' if len(found) > len(named) else ''})"


def _method_notes(shelf: Shelf, blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        shown = {row.method for row in block.plan.rows}
        there = Counter(spec.method for spec, _ in shelf.results_of(block.dataset))
        others = [f"{method} ({n})" for method, n in sorted(there.items()) if method not in shown]
        if others:
            yield f"{block.dataset}: there are also runs of {', '.join(others)}."


def _version_notes(blocks: Iterable[Block]) -> Iterator[str]:
    """Which packages had several versions among the runs of the table."""
    results = (choice.result for block in blocks for choice in block.every())
    found = package_versions(result for result in results if result is not None)
    several = [f"{name} {', '.join(found[name])}" for name in sorted(found) if len(found[name]) > 1]
    if several:
        yield f"Runs were made with several versions: {'; '.join(several)}."
