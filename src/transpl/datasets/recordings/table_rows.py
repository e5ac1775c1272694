"""Rows of a table on their way into windows, and how many of them ended in none."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from transpl.datasets.recordings.clocks import Floats, Ints


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table, in order.

    number : row of the file, from 0 after the header; increasing
    values : (rows, channels), NaN where missing
    time : seconds from any origin; None without a clock
    label : index of the row's label, -1 for a row without one
    domain, group : indices, or None
    """

    number: Ints
    values: Floats
    time: Floats | None
    label: Ints
    domain: Ints | None = None
    group: Ints | None = None

    def at(self, rows: Any) -> TableRows:
        """Return some of the rows."""
        columns: list[Any] = [None if column is None else column[rows] for column in self._columns()]
        return TableRows(*columns)

    def followed_by(self, others: TableRows) -> TableRows:
        """Return these rows and others after them; a column is absent if either lacks it."""
        pairs = zip(self._columns(), others._columns(), strict=True)
        columns: list[Any] = [None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs]
        return TableRows(*columns)

    def _columns(self) -> tuple[Any, ...]:
        return self.number, self.values, self.time, self.label, self.domain, self.group

    def __len__(self) -> int:
        return len(self.number)


@dataclass
class Tally:
    """How many rows are in no window, by reason; samples instead of rows where runs are resampled."""

    rows: int = 0
    missing: int = 0  # rows in which a channel lacks a value that is not filled in
    bridged: int = 0  # of the missing ones, those that samples between their neighbours stand for
    filled: int = 0  # samples that were filled in
    uneven: int = 0  # rows of recordings with an uneven clock
    unlabelled: int = 0
    backwards: int = 0
    standing: int = 0
    gaps: int = 0
    before_gap: int = 0
    before_label: int = 0
    at_end: int = 0
    between: int = 0
    longest_run: int = 0

    def add(self, other: Tally) -> None:
        longest = max(self.longest_run, other.longest_run)
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        self.longest_run = longest

    @property
    def left_out(self) -> int:
        lacking = self.missing - self.bridged + self.unlabelled
        return lacking + self.before_gap + self.before_label + self.at_end + self.between
