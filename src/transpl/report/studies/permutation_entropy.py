"""Permutation entropy: how varied the ups and downs of a series are (Bandt and Pompe 2002)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_int, invalid


def permutation_entropy(x: ArrayLike, order: int = 3, delay: int = 1, *, normalised: bool = True) -> float:
    r"""H = -\sum_\pi p(\pi) log p(\pi) / log(n!), with p(\pi) the share of stretches whose values are in order \pi.

    x : (T,); a stretch is (x_t, x_{t+l}, ..., x_{t+(n-1)l}) with n = `order` and l = `delay`
    normalised : from 0 (always the same order) to 1 (all n! orders equally often); else in bits, -\sum p log_2 p

    Equal values are ordered by time, the earlier counts as the smaller: a constant series looks like a rising one.
    A series of fewer than n! stretches cannot reach 1.
    """
    orders = ordinal_patterns(x, order, delay)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    p = counts / counts.sum()
    bits = float(-(p * np.log2(p)).sum())
    most = math.log2(math.factorial(order)) if normalised else 1.0
    return max(0.0, bits / most)  # a single order gives -0.0


def ordinal_patterns(x: ArrayLike, order: int, delay: int = 1) -> NDArray[np.intp]:
    """For every stretch the positions of its values, from the smallest to the largest, (stretches, order)."""
    check_int("order", order, least=2)
    check_int("delay", delay, least=1)
    series = np.asarray(x, dtype=np.float64)
    needed = (order - 1) * delay + 1
    if series.ndim != 1 or len(series) < needed:
        expected = f"a series of at least {needed} values for order {order} and delay {delay}"
        raise invalid("x", expected=expected, got=f"shape {series.shape}", advice="Choose a smaller order or delay.")
    if not np.isfinite(series).all():
        raise invalid("x", expected="finite values", got="others", advice="Leave them out.")
    stretches = np.lib.stride_tricks.sliding_window_view(series, needed)[:, ::delay]
    return np.argsort(stretches, axis=1, kind="stable")
