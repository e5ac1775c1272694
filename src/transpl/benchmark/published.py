"""The figures printed in the paper, with a flag on those that are known to be wrong or doubtful.

Figures are as printed: percent, and the reconstruction error (mse) as it is. Rows of a table are names of methods;
in "ablation" they are TransPL with and without its two parts, in "patch" patch lengths, in "codebook" sizes
"coarse/fine". The table "pairs" is the appendix: every method on every pair. A score that belongs to no pair is an
average over pairs, under the pair "average".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transpl._utils.errors import check_choice
from transpl._utils.files import read_json

PUBLISHED_TABLES = ("full", "pseudo", "weak", "ablation", "patch", "codebook", "pairs")
AVERAGE = "average"

_FILE = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class FigureKey:
    """Where a figure is printed."""

    table: str
    dataset: str
    row: str
    metric: str
    pair: str = AVERAGE


@dataclass(frozen=True)
class Doubt:
    """Why figures cannot be taken as printed.

    kind : "wrong" or "doubtful"
    measures : the metric that is really printed, where it is or may be another one than its heading says
    where : part of the key -> the values it may have; a part that is left out may have any
    """

    name: str
    kind: str
    reason: str
    measures: str | None
    where: Mapping[str, tuple[str, ...]]

    def concerns(self, key: FigureKey) -> bool:
        """Whether the figure printed there is in doubt."""
        return all(getattr(key, part) in values for part, values in self.where.items())


@dataclass(frozen=True)
class PublishedFigure:
    """A printed number, and what is known against it."""

    key: FigureKey
    value: float
    doubts: tuple[Doubt, ...] = ()

    @property
    def flag(self) -> str | None:
        """What is known against it, in one line; None if nothing is."""
        return "; ".join(doubt.reason for doubt in self.doubts) or None

    @property
    def measures(self) -> str:
        """The metric to compare with: the heading's, unless something else was printed under it."""
        return next((doubt.measures for doubt in self.doubts if doubt.measures), self.key.metric)


def published_figure(table: str, dataset: str, row: str, metric: str, pair: str = AVERAGE) -> PublishedFigure | None:
    """The printed figure, or None if there is none."""
    check_choice("table", table, PUBLISHED_TABLES)
    return published_figures().get(FigureKey(table, dataset, row, metric, pair))


@cache
def published_figures() -> Mapping[FigureKey, PublishedFigure]:
    """Every printed figure, in the order of print."""
    content = read_json(_FILE)
    doubts = [
        Doubt(
            values["name"],
            values["kind"],
            values["reason"],
            values.get("measures"),
            MappingProxyType({part: tuple(found) for part, found in values["where"].items()}),
        )
        for values in content["doubts"]
    ]
    return MappingProxyType(
        {
            key: PublishedFigure(key, float(value), tuple(doubt for doubt in doubts if doubt.concerns(key)))
            for key, value in _cells(content)
            if value is not None
        }
    )


def _cells(content: dict[str, Any]) -> Iterator[tuple[FigureKey, float | None]]:
    for table, entry in content["tables"].items():
        for dataset, rows in entry["datasets"].items():
            for row, values in rows.items():
                for metric, value in zip(entry["metrics"], values, strict=True):
                    yield FigureKey(table, dataset, row, metric), value
    for dataset, entry in content["pairs"].items():
        for metric in ("accuracy", "macro_f1"):
            for row, values in entry[metric].items():
                for pair, value in zip(entry["columns"], values, strict=True):
                    yield FigureKey("pairs", dataset, row, metric, pair), value
