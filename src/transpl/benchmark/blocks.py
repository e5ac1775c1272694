"""The part of a table that one data set fills, and what a table shows of each of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transpl._utils.errors import invalid
from transpl.benchmark.paper_tables import SETS, PaperTable, paper_table
from transpl.benchmark.plan import Plan, Row
from transpl.benchmark.reading import Reading
from transpl.benchmark.shelf import Choice, Shelf
from transpl.benchmark.store import Result

SCORES = ("accuracy", "macro_f1", "binary_f1")
_TWO_CLASSES = ("ptb",)
_PERCENT = 100.0


@dataclass(frozen=True)
class Block:
    """The part of a table that one data set fills."""

    table: PaperTable
    plan: Plan
    choices: list[list[Choice]]  # of each row, one per pair and seed
    metrics: tuple[str, ...]

    @property
    def dataset(self) -> str:
        return self.plan.dataset

    def of(self, label: str) -> list[Choice] | None:
        """The choices of a row; None if this data set has no such row."""
        return next((c for row, c in self.rows() if row.label == label), None)

    def rows(self) -> Iterator[tuple[Row, list[Choice]]]:
        return zip(self.plan.rows, self.choices, strict=True)

    def every(self) -> Iterator[Choice]:
        return (choice for choices in self.choices for choice in choices)

    def pairs(self) -> list[str]:
        return list(dict.fromkeys(choice.spec.pair for choice in self.every()))

    def value(self, result: Result, metric: str) -> float:
        """What the table shows of a run."""
        return value_of(self.table.part, result, metric)


def blocks_of(which: str, shelf: Shelf, datasets: Sequence[str], how: Reading) -> list[Block]:
    """A table, data set by data set; by default those that the folder has."""
    table = paper_table(which)
    return [block_of(table, shelf, name, how) for name in datasets or _sets(table, shelf)]


def block_of(table: PaperTable, shelf: Shelf, dataset: str, how: Reading) -> Block:
    """The part of a table that this data set fills."""
    plan = how.plan(table, dataset)
    return Block(table, plan, shelf.rows(plan, how.select), _metrics(table, dataset, shelf))


def _sets(table: PaperTable, shelf: Shelf) -> list[str]:
    """The table's data sets that the folder has, and the user's own; those of the print if there are none."""
    there = shelf.datasets()
    ours = [name for name in table.datasets if name in there] + [name for name in there if name not in SETS]
    return ours or list(table.datasets)


def value_of(part: str, result: Result, metric: str) -> float:
    """What a table of this part shows of a run, scores in percent."""
    if metric == "mse":
        return float(result.details["reconstruction_error"])
    if metric == "seconds":
        return result.seconds["adapt"]
    if metric == "dead_codes":
        books = result.details["codebooks"].values()
        return _PERCENT * sum(book["dead"] for book in books) / sum(book["codes"] for book in books)
    scores = _scores(part, result)
    if metric not in scores:
        expected, got = f"a score of {result.dataset} ({', '.join(scores)})", repr(metric)
        raise invalid("metric", expected=expected, got=got, advice="Choose one of these.")
    return _PERCENT * scores[metric]


def _scores(part: str, result: Result) -> dict[str, float]:
    return result.test if part == "test" else result.pseudo_labels.get("initial", {})


def _metrics(table: PaperTable, dataset: str, shelf: Shelf) -> tuple[str, ...]:
    scores = (_scores(table.part, result) for _, result in shelf.results_of(dataset))
    two_classes = dataset in _TWO_CLASSES or any("binary_f1" in found for found in scores)
    return ("accuracy", "macro_f1", *(("binary_f1",) if two_classes else ()), *table.extras)
