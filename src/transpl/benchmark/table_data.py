"""A table of scores beside published ones: what is in it, not how it is written (`rendering`).

Values are in the unit that is shown (percent: 69.0, not 0.69).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from transpl._utils.errors import check_choice, check_int, invalid

BETTER = ("higher", "lower", "none")
MOST_NAMED = 20  # missing runs that a caption names


@dataclass(frozen=True)
class Cell:
    """Our score over runs, and the published one.

    mean, std : over the `n` runs that are there; None without any
    flag : why the published figure is not to be trusted
    missing : runs that are planned but not there
    """

    mean: float | None = None
    std: float | None = None
    n: int = 0
    published: float | None = None
    flag: str | None = None
    missing: int = 0

    def __post_init__(self) -> None:
        for name in ("mean", "std", "published"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise invalid(
                    name, expected="a finite number or None", got=value, advice="Count such a run as missing."
                )
        for name in ("n", "missing"):
            check_int(name, getattr(self, name), least=0)

    @property
    def complete(self) -> bool:
        """Whether every planned run is there."""
        return self.mean is not None and self.missing == 0

    @property
    def difference(self) -> float | None:
        """Ours minus the published figure."""
        return None if self.mean is None or self.published is None else self.mean - self.published


@dataclass(frozen=True)
class Column:
    """A score: columns that follow each other with one `group` share a heading."""

    label: str
    group: str = ""
    decimals: int = 1
    better: str = "higher"

    def __post_init__(self) -> None:
        check_choice("better", self.better, BETTER)
        check_int("decimals", self.decimals, least=0)

    @property
    def name(self) -> str:
        """The whole heading."""
        return f"{self.group} {self.label}".strip()


@dataclass(frozen=True)
class Row:
    """A line of the table; a cell that makes no sense is None."""

    label: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class TableData:
    """All that is in a table.

    missing_runs : names of the runs that are not there, for the caption
    notes : lines below the table
    label : LaTeX's name of the table, for references
    corner : heading of the first column
    """

    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    missing_runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    label: str = ""
    corner: str = "Method"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                got = f"{len(row.cells)} in row {row.label!r}"
                raise invalid("rows", expected=f"{len(self.columns)} cells", got=got, advice="Put None where none is.")

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell that is there, row by row."""
        return (cell for row in self.rows for cell in row.cells if cell is not None)

    def full_caption(self) -> str:
        """The caption, and which runs are missing."""
        if not self.missing_runs:
            return self.caption
        return f"{as_sentence(self.caption)} Missing runs: {self._named()}.".strip()

    def _named(self) -> str:
        more = len(self.missing_runs) - MOST_NAMED
        return ", ".join(self.missing_runs[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def as_sentence(text: str) -> str:
    """The text with a full stop, unless it is empty or has an end."""
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
