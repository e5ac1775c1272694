"""What every loss between two sets of rows asks of its input."""

from __future__ import annotations

from torch import Tensor

from transpl._utils.errors import invalid


def same_width(first: str, a: Tensor, second: str, b: Tensor) -> None:
    """Raise unless `a` and `b` (called `first` and `second`) are matrices with equally many columns."""
    if a.ndim != 2:
        raise invalid(first, expected="shape (rows, columns)", got=tuple(a.shape), advice="Flatten or add axes.")
    if b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise invalid(
            second,
            expected=f"shape (rows, {a.shape[1]}), as {first} has {a.shape[1]} columns",
            got=tuple(b.shape),
            advice="Take both from the same layer.",
        )


def nothing(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum over no rows: exactly 0, and still part of the graph of both."""
    return a[:0].sum() + b[:0].sum()
