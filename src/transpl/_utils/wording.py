"""Numbers and lists in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def counted(n: int, noun: str) -> str:
    """As 1 row, 2,000 rows, 2 classes."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{n:,} {noun}{'' if n == 1 else plural}"


def listed(names: Iterable[object], joint: str = "and") -> str:
    """As a; a and b; a, b and c."""
    *first, last = [str(name) for name in names] or ["none"]
    return f"{', '.join(first)} {joint} {last}" if first else last
