"""Codes of a known process, for the tests of drift."""

from __future__ import annotations

import numpy as np

from transpl.markov import transport_cost

COST = transport_cost(np.random.default_rng(9).normal(size=(4, 8)))


def chains(n: int, seed: int, stay: float = 0.6, channels: int = 2, length: int = 12) -> np.ndarray:
    """Codes that stay with probability `stay`, else are drawn anew."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 4, (n, channels, length))
    for t in range(1, length):
        s[..., t] = np.where(rng.random((n, channels)) < stay, s[..., t - 1], s[..., t])
    return s
