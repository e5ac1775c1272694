r"""Relearning from the council's own labels: the target's windows form clusters that the source never saw.

log p(k | x) = -1/2 (z - \mu_k)' \Sigma^{-1} (z - \mu_k) + const, z = V'(x - m): Gaussian classes with one covariance
\Sigma on the first principal axes V of a seat's rows on the target. \mu and \Sigma are means weighted by the council's
class probabilities. A window is judged by classes learnt without it and its recording (ten folds), so that it cannot
confirm itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from transpl._utils.layout import Layout

Floats = NDArray[np.float64]

MAX_AXES = 30
_FOLDS = 10
_SHRINKAGE = 0.1  # of the covariance towards a sphere
_MIN_WINDOWS = 1.5  # of a class, by probability; a class with fewer is not learnt
_ABSENT = -1e3
_TINY = 1e-6
_MAX_FOR_AXES = 2000  # windows that determine the axes


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """z = V'(x - m): m (F,), V (F, axes)."""

    mean: Floats
    axes: Floats

    @classmethod
    def fit(cls, rows: NDArray) -> PrincipalAxes:
        """Find the principal axes of rows (n, F)."""
        x = np.asarray(rows[:: max(1, len(rows) // _MAX_FOR_AXES)], np.float64)
        mean = x.mean(axis=0)
        _, lengths, axes = np.linalg.svd(x - mean, full_matrices=False)
        n_axes = min(MAX_AXES, max(1, len(x) // 3), int((lengths > 1e-6 * lengths.max(initial=0)).sum()))
        return cls(mean, axes[:n_axes].T)

    def transform(self, rows: NDArray) -> Floats:
        """Return z, (n, axes)."""
        return (np.asarray(rows, np.float64) - self.mean) @ self.axes


@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """A Gaussian classifier of the target, learnt from the council's class probabilities.

    Attributes
    ----------
    axes : PrincipalAxes
    means : (K, axes) array
    precision : (axes, axes) array
    shown : (K,) bool array
        Which classes had enough windows.
    """

    axes: PrincipalAxes
    means: Floats
    precision: Floats
    shown: NDArray[np.bool_]
    layout: ClassVar[Layout] = {
        "mean": "f columns",
        "axes": "f columns axes",
        "means": "f K axes",
        "precision": "f axes axes",
        "shown": "b K",
    }

    def answer(self, rows: NDArray) -> Floats:
        """Return class probabilities (n, K) of rows (n, F)."""
        return _answer(self.axes.transform(rows), self.means, self.precision, self.shown)

    def arrays(self) -> dict[str, NDArray]:
        """Return everything as named arrays, to save."""
        return {
            "mean": self.axes.mean,
            "axes": np.ascontiguousarray(self.axes.axes),
            "means": self.means,
            "precision": self.precision,
            "shown": self.shown,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray]) -> GaussianClasses:
        """Restore the classifier from the result of `arrays`."""
        axes = PrincipalAxes(arrays["mean"], arrays["axes"])
        return cls(axes, arrays["means"], arrays["precision"], arrays["shown"].astype(bool))


def folds(n: int, groups: NDArray[np.int64] | None, seed: int) -> NDArray[np.int64]:
    """Assign each of n windows to a fold 0..9, windows of one group to the same."""
    _, group = np.unique(np.arange(n) if groups is None else groups, return_inverse=True)
    of_group = np.random.default_rng(seed).permutation(group.max() + 1) % _FOLDS
    return of_group[group]


def relearn(axes: PrincipalAxes, rows: NDArray, q: Floats, fold: NDArray[np.int64]) -> tuple[GaussianClasses, Floats]:
    """Learn from rows (n, F) with class probabilities q (n, K).

    Returns the classifier, and class probabilities (n, K) of each row by a classifier learnt without its fold.
    """
    z = axes.transform(rows)
    answers = np.full_like(q, 1 / q.shape[1])
    for out in np.unique(fold):
        kept = fold != out
        if not kept.any():
            continue
        answers[~kept] = _answer(z[~kept], *_learn(z[kept], q[kept]))
    return GaussianClasses(axes, *_learn(z, q)), answers


def _learn(z: Floats, q: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    sizes = q.sum(axis=0)
    means = (q.T @ z) / np.maximum(sizes, _TINY)[:, None]
    d = z.shape[1]
    spread = np.zeros((d, d))
    for k in range(q.shape[1]):
        apart = z - means[k]
        spread += (apart * q[:, k : k + 1]).T @ apart
    spread /= len(z)
    size = np.trace(spread) / d if d else 0.0
    precision = np.linalg.inv((1 - _SHRINKAGE) * spread + (_SHRINKAGE * size + _TINY) * np.eye(d)).astype(np.float64)
    return means, precision, sizes >= _MIN_WINDOWS


def _answer(z: Floats, means: Floats, precision: Floats, shown: NDArray[np.bool_]) -> Floats:
    apart = z[:, None] - means
    log_p = -0.5 * np.einsum("nkd,de,nke->nk", apart, precision, apart, optimize=True)
    if shown.any():
        log_p[:, ~shown] = log_p.min(axis=1, keepdims=True) + _ABSENT
    p = np.maximum(softmax(log_p, axis=1), _TINY)
    return p / p.sum(axis=1, keepdims=True)
