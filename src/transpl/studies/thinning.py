"""A few rows that stand for many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """At most so many of the rows 0..n-1, the first and the last among them, in equal steps; the same at every call."""
    if n <= at_most:
        return np.arange(n)
    return np.linspace(0, n - 1, at_most).round().astype(np.int64)
