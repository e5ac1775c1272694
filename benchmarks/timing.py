"""Timing things against each other in the same minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np


def interleaved(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each task; tasks take turns, so that a noisy minute hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}
