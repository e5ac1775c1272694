"""Mean and spread of runs: pairs of domains are averaged first, then seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Mean over `n` runs; std over seeds, None with one seed."""

    mean: float
    std: float | None
    n: int


def spread(values: Iterable[tuple[int, float]]) -> Spread:
    """Of (seed, score), one or more: mean of each seed first, then mean and standard deviation over seeds."""
    by_seed: dict[int, list[float]] = {}
    for seed, value in values:
        by_seed.setdefault(seed, []).append(value)
    means = [float(np.mean(found)) for found in by_seed.values()]
    return Spread(
        mean=float(np.mean(means)),
        std=float(np.std(means, ddof=1)) if len(means) > 1 else None,
        n=sum(len(found) for found in by_seed.values()),
    )
