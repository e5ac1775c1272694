"""Which windows to show where there are too many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST = 400


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
    spread = [_evenly(group, quota) for group, quota in zip(groups, quotas, strict=True)]
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


def _evenly(rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Take n of the rows at equal distances, both ends included."""
    return rows[np.linspace(0, len(rows) - 1, n).round().astype(np.int64)] if n else rows[:0]
