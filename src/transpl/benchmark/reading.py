"""Which runs a table is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transpl._utils.errors import check_choice, invalid
from transpl.benchmark.paper_tables import PaperTable
from transpl.benchmark.plan import Plan, Row, with_changes
from transpl.benchmark.selection import DEFAULT_RULE, RULES

_OPEN_TABLES = ("full", "pseudo", "weak", "beyond")  # their rows are methods, so that others may join


@dataclass(frozen=True)
class Reading:
    """Which runs a table is made of: their preset, changed settings and grid, and the rule that chooses in a grid.

    methods : only these; those that the paper's table does not have become further rows. Empty: the paper's
    data : beginnings of fingerprints, where a data set was run in several versions
    """

    preset: str = "paper"
    changes: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    select: str = DEFAULT_RULE
    methods: Sequence[str] = ()
    data: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_choice("select", self.select, tuple(RULES))

    def plan(self, table: PaperTable, dataset: str) -> Plan:
        """The rows of a table with these settings."""
        rows = with_changes(self._rows(table, dataset), self.changes)
        return Plan(dataset, rows, preset=self.preset, grid=self.grid)

    def in_words(self) -> str:
        """What of this a caption has to say, in sentences; empty for the paper's settings."""
        said = [f"Preset {self.preset}."] if self.preset != "paper" else []
        if self.changes:
            said.append(f"Settings changed: {', '.join(f'{name}={value}' for name, value in self.changes.items())}.")
        if self.grid:
            values = "; ".join(f"{name} of {', '.join(map(str, values))}" for name, values in self.grid.items())
            said.append(f"Chosen per run by {self.select} ({RULES[self.select].what}): {values}.")
        return " ".join(said)

    def _rows(self, table: PaperTable, dataset: str) -> list[Row]:
        rows = list(table.rows(dataset))
        if not self.methods:
            return rows
        more = [name for name in self.methods if name not in {row.method for row in rows}]
        if more and table.name not in _OPEN_TABLES:
            known = ", ".join(sorted({row.method for row in rows}))
            got, advice = ", ".join(more), "Use --which full for others."
            raise invalid("methods", expected=f"methods of this table ({known})", got=got, advice=advice)
        goal = "adapt" if table.part == "test" else "label"
        return [row for row in rows if row.method in self.methods] + [Row(name, name, goal=goal) for name in more]
