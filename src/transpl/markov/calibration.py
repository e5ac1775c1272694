"""How sharp scores may be: set where the truth is known, or where it is known how often they are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import softmax

from transpl.errors import wrong

DULLEST, SHARPEST = 1e-3, 1e4
MOST_TEMPERED = 0.05  # what is duller than that says next to nothing, to those who learn from it too
_LEAST = np.finfo(np.float64).tiny  # its logarithm is still a number


def fit_sharpness(
    probabilities: Callable[[float], NDArray[np.float64]], labels: ArrayLike, sharpest: float = SHARPEST
) -> float:
    r"""a = argmin_a -(1 / n) \sum_i log p_{y_i}(i; a), the inverse of a temperature.

    probabilities : from a to p, (n, K); 0 for a class that is impossible
    labels : (n,) class indices; rows whose own class is impossible say nothing about a and are left out
    sharpest : a at most; a few rows that are all right would make it as large as it may be
    returns : a in [1e-3, `sharpest`]; 1, or `sharpest` if that is less, if no row is left
    """
    y = np.asarray(labels)
    at_one = probabilities(1.0)
    if at_one.ndim != 2 or y.shape != at_one.shape[:1]:
        expected, got = "one class index for every row", f"shape {y.shape} for {at_one.shape}"
        raise wrong("labels", expected=expected, got=got, advice="Pass the labels of the same windows.")
    rows = np.flatnonzero(at_one[np.arange(len(y)), y] > 0)
    if not len(rows):
        return min(1.0, sharpest)

    def loss(log_a: float) -> float:
        return float(-np.log(np.maximum(probabilities(np.exp(log_a))[rows, y[rows]], _LEAST)).mean())

    found = minimize_scalar(loss, bounds=(np.log(DULLEST), np.log(sharpest)), method="bounded")
    return float(np.exp(found.x))


def tempered(y: NDArray[np.float64], temper: float) -> NDArray[np.float64]:
    r"""y_k^c / \sum_j y_j^c: less sure for c below 1, the order of the classes stays (but for ties within rounding).

    y : (n, K) probabilities, of which one that is too small for a float counts as impossible; temper : c
    """
    if temper == 1:
        return y
    with np.errstate(divide="ignore"):
        return softmax(temper * np.log(y), axis=1)


def fit_temper(parts: Sequence[NDArray[np.float64]], mean_confidence: float) -> float:
    r"""c in [0.05, 1] with (1 / n) \sum_i max_k y_{i,k}^c / \sum_j y_{i,j}^c = r.

    The left side never falls as c grows. Where no c reaches r, the nearest does: 1 if y is not that sure anyway, and
    also if all of it is certain, which no power changes.

    parts : y of n windows, (n, K), in as many parts as they came in; mean_confidence : r
    """

    def too_sure(log_c: float) -> float:
        confidence = [tempered(y, float(np.exp(log_c))).max(axis=1) for y in parts]
        return float(np.concatenate(confidence).mean()) - mean_confidence

    least = float(np.log(MOST_TEMPERED))
    by_much, by_least = too_sure(0.0), too_sure(least)
    if by_much <= 0 or by_least == by_much:
        return 1.0
    return MOST_TEMPERED if by_least >= 0 else float(np.exp(brentq(too_sure, least, 0.0)))
