"""Logistic regression on statistics of the window, and these statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from transpl._utils.layout import Layout, check_numbers
from transpl.council.witnesses.witness import (
    Arrays,
    Floats,
    ViewedWindows,
    Witness,
    as_arrays,
    register,
    with_all_classes,
)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BANDS = 11  # of the spectrum, equally wide in octaves
MAX_PAIRS = 120  # all pairs of sixteen channels
_MIN_POWER = 1e-6  # per time step, so that silence has a finite logarithm


class LinearWitness(Witness):
    r"""softmax_k [ w_k \cdot x + b_k ] of rows x; classes without source windows are next to impossible."""

    layout: ClassVar[Layout] = {"classes": "i classes", "weights": "f classes columns", "bias": "f classes"}
    C = 0.1  # of LogisticRegression, the inverse of the ridge penalty

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        self.n_classes, self.classes = n_classes, np.unique(y)
        self.weights, self.bias = np.zeros((len(self.classes), rows.shape[1])), np.zeros(len(self.classes))
        if len(self.classes) > 1:
            from sklearn.linear_model import LogisticRegression  # loads slowly, and labelling needs none of it

            model = LogisticRegression(C=self.C, max_iter=1000).fit(rows, y)
            self.weights, self.bias = model.coef_, model.intercept_
            if len(self.classes) == 2:  # scikit-learn keeps only the log odds
                self.weights, self.bias = (np.concatenate([-each / 2, each / 2]) for each in (self.weights, self.bias))
        return self

    def answer(self, rows: NDArray) -> Floats:
        p = softmax(rows @ self.weights.T + self.bias, axis=1)
        return with_all_classes(p, self.classes, self.n_classes)

    def arrays(self) -> Arrays:
        return as_arrays(classes=self.classes, weights=self.weights, bias=self.bias)

    def check_columns(self, n: int) -> None:
        check_numbers("columns of weights", np.array(self.weights.shape[1:]), n, n)

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        check_numbers("classes", arrays["classes"], 0, n_classes - 1)
        self.n_classes, self.classes = n_classes, arrays["classes"]
        self.weights, self.bias = arrays["weights"], arrays["bias"]
        return self


@register
class Linear(LinearWitness):
    """Logistic regression on means, spreads, quantiles, spectra and products of channels."""

    name = "linear"

    def rows(self, viewed: ViewedWindows) -> NDArray:
        return viewed.features("statistics", statistics)


def statistics(values: NDArray) -> Floats:
    """Describe windows (n, D, T) by level, spread, quantiles, spectrum and products of channels, (n, F).

    `statistic_names` has the names of the columns.
    """
    x = np.asarray(values, np.float64)
    n, _, T = x.shape
    level = x.mean(axis=2)
    steps = np.diff(x, axis=2).std(axis=2) if T > 1 else np.zeros_like(level)
    blocks = [level, x.std(axis=2), steps, *np.quantile(x, QUANTILES, axis=2)]
    centred = x - level[:, :, None]
    power = np.abs(np.fft.rfft(centred, axis=2)) ** 2
    blocks += [np.log(power[:, :, a:b].sum(axis=2) + _MIN_POWER * T) for a, b in _bands(T)]
    first, second = _channel_pairs(x.shape[1])
    blocks.append(np.einsum("npt,npt->np", centred[:, first], centred[:, second]) / T)
    return np.concatenate(blocks, axis=1).reshape(n, -1)


def statistic_names(channel_names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (channel, quantity) for each column of `statistics`; products join two channels by " x "."""
    quantities = ["mean", "deviation", "deviation of steps"]
    quantities += [f"{100 * q:g} % quantile" for q in QUANTILES]
    quantities += [f"energy in band {b + 1} of {BANDS}" for b in range(BANDS)]
    names = [(channel, quantity) for quantity in quantities for channel in channel_names]
    first, second = _channel_pairs(len(channel_names))
    return names + [(f"{channel_names[a]} x {channel_names[b]}", "product") for a, b in zip(first, second, strict=True)]


def _bands(T: int) -> list[tuple[int, int]]:
    """Return ranges of bins of the spectrum, from the lowest frequency above 0; short windows have empty ranges."""
    bins = T // 2 + 1
    edges = np.round(np.geomspace(1, max(bins, 2), BANDS + 1)).astype(int)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _channel_pairs(D: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(D, 1)
    return first[:MAX_PAIRS], second[:MAX_PAIRS]
