"""Which windows to take where there are too many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST = 400


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """At most so many of the rows 0..n-1, the first and the last among them, in equal steps; the same at every call."""
    if n <= at_most:
        return np.arange(n)
    return np.linspace(0, n - 1, at_most).round().astype(np.int64)


def thinned(probabilities: NDArray[np.float64], most: int = MOST) -> NDArray[np.int64]:
    """Choose at most `most` of n windows, in ascending order; the same windows for the same numbers.

    Half of them are the least confident. The rest are spread evenly over classes, and in each over confidence.
    """
    n, K = probabilities.shape
    if n <= most:
        return np.arange(n)
    confidence, label = probabilities.max(axis=1), probabilities.argmax(axis=1)
    order = np.argsort(confidence, kind="stable")
    doubtful, others = order[: most // 2], order[most // 2 :]
    groups = [others[label[others] == k] for k in range(K)]
    quotas = _quotas([len(group) for group in groups], most - len(doubtful))
    spread = [group[evenly_spaced(len(group), quota)] for group, quota in zip(groups, quotas, strict=True)]
    return np.sort(np.concatenate([doubtful, *spread]))


def _quotas(sizes: list[int], total: int) -> list[int]:
    """Share `total` out as equally as the sizes allow; what is left over goes to the first groups that have room."""
    quotas = [0] * len(sizes)
    while total and any(size > quota for size, quota in zip(sizes, quotas, strict=True)):
        open_ = [k for k, size in enumerate(sizes) if size > quotas[k]]
        each = max(1, total // len(open_))
        for k in open_[:total]:
            more = min(each, sizes[k] - quotas[k])
            quotas[k] += more
            total -= more
    return quotas
