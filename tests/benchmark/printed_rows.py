"""The rows of the paper's tables, for tests that hold ours against them."""

from __future__ import annotations

from transpl.benchmark.published import published_figures


def printed_rows(table: str, dataset: str) -> tuple[str, ...]:
    """The rows of a table for a data set, as printed from top to bottom."""
    return tuple(dict.fromkeys(key.row for key in published_figures() if (key.table, key.dataset) == (table, dataset)))
