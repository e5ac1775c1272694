"""The figures printed in the paper, as data, with a flag on those that are known to be wrong or doubtful.

Figures are as printed: percent, and the reconstruction error (mse) as it is. Rows of a table are names of methods;
in "ablation" they are TransPL with and without its two parts, in "patch" patch lengths, in "codebook" sizes
"coarse/fine". The table "pairs" is the appendix: every method on every pair. A score that is no pair's is an average
over pairs and stands under the pair "average".
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

TABLES = ("full", "pseudo", "weak", "ablation", "patch", "codebook", "pairs")
AVERAGE = "average"

_FILE = Path(__file__).with_name("published.json")


@dataclass(frozen=True)
class Key:
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
    measures : the metric that is really printed, where it is another one than its heading says or may be
    """

    name: str
    kind: str
    reason: str
    measures: str | None
    where: Mapping[str, tuple[str, ...]]  # part of the key -> the values it may have; parts left out may have any

    def concerns(self, key: Key) -> bool:
        """Whether the figure printed there is in doubt."""
        return all(getattr(key, part) in values for part, values in self.where.items())


@dataclass(frozen=True)
class Figure:
    """A printed number and what is known against it."""

    key: Key
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


def figure(table: str, dataset: str, row: str, metric: str, pair: str = AVERAGE) -> Figure | None:
    """The printed figure, or None if none is printed there."""
    check_choice("table", table, TABLES)
    return figures().get(Key(table, dataset, row, metric, pair))


@cache
def figures() -> Mapping[Key, Figure]:
    """Every printed figure, in the order of print."""
    content = read_json(_FILE)
    known = tuple(_doubt(**entry) for entry in content["doubts"])
    return MappingProxyType(
        {
            key: Figure(key, float(value), tuple(doubt for doubt in known if doubt.concerns(key)))
            for key, value in _cells(content)
            if value is not None
        }
    )


def _cells(content: dict[str, Any]) -> Iterator[tuple[Key, float | None]]:
    for table, entry in content["tables"].items():
        for dataset, rows in entry["datasets"].items():
            for row, values in rows.items():
                for metric, value in zip(entry["metrics"], values, strict=True):
                    yield Key(table, dataset, row, metric), value
    for dataset, entry in content["pairs"].items():
        for metric in ("accuracy", "macro_f1"):
            for row, values in entry[metric].items():
                for pair, value in zip(entry["columns"], values, strict=True):
                    yield Key("pairs", dataset, row, metric, pair), value


def _doubt(name: str, kind: str, reason: str, where: dict[str, list[str]], measures: str | None = None) -> Doubt:
    return Doubt(name, kind, reason, measures, MappingProxyType({part: tuple(where[part]) for part in where}))
