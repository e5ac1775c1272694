"""How sharp scores may be: set where the truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from transpl.errors import wrong

DULLEST, SHARPEST = 1e-3, 1e4
_LEAST = np.finfo(np.float64).tiny  # its logarithm is still a number


def fit_sharpness(probabilities: Callable[[float], NDArray[np.float64]], labels: ArrayLike) -> float:
    r"""a = argmin_a -(1 / n) \sum_i log p_{y_i}(i; a), the inverse of a temperature.

    probabilities : from a to p, (n, K); 0 for a class that is impossible
    labels : (n,) class indices; rows whose own class is impossible say nothing about a and are left out
    returns : a in [1e-3, 1e4]; 1 if no row is left
    """
    y = np.asarray(labels)
    at_one = probabilities(1.0)
    if at_one.ndim != 2 or y.shape != at_one.shape[:1]:
        expected, got = "one class index for every row", f"shape {y.shape} for {at_one.shape}"
        raise wrong("labels", expected=expected, got=got, advice="Pass the labels of the same windows.")
    rows = np.flatnonzero(at_one[np.arange(len(y)), y] > 0)
    if not len(rows):
        return 1.0

    def loss(log_a: float) -> float:
        return float(-np.log(np.maximum(probabilities(np.exp(log_a))[rows, y[rows]], _LEAST)).mean())

    found = minimize_scalar(loss, bounds=(np.log(DULLEST), np.log(SHARPEST)), method="bounded")
    return float(np.exp(found.x))
