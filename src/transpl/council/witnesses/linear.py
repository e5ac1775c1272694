"""Logistic regression on statistics of the window."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from transpl.council.witnesses.base import Arrays, Floats, Sight, Witness, as_arrays, register, with_all_classes
from transpl.council.witnesses.statistics import statistics


class LinearWitness(Witness):
    r"""softmax_k [ w_k \cdot x + b_k ] on rows x of numbers; classes that were never shown are next to impossible.

    strength : C of scikit-learn's LogisticRegression, the inverse of the ridge
    """

    strength = 0.1

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        self.n_classes, self.classes = n_classes, np.unique(y)
        self.weights, self.bias = np.zeros((len(self.classes), rows.shape[1])), np.zeros(len(self.classes))
        if len(self.classes) > 1:
            model = LogisticRegression(C=self.strength, max_iter=1000).fit(rows, y)
            one_sided = len(model.coef_) < len(self.classes)  # of two classes only the log odds are fitted
            self.weights = np.concatenate([-model.coef_ / 2, model.coef_ / 2]) if one_sided else model.coef_
            self.bias = np.concatenate([-model.intercept_ / 2, model.intercept_ / 2]) if one_sided else model.intercept_
        return self

    def answer(self, rows: NDArray) -> Floats:
        p = softmax(rows @ self.weights.T + self.bias, axis=1)
        return with_all_classes(p, self.classes, self.n_classes)

    def arrays(self) -> Arrays:
        return as_arrays(classes=self.classes, weights=self.weights, bias=self.bias)

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        self.n_classes, self.classes = n_classes, arrays["classes"]
        self.weights, self.bias = arrays["weights"], arrays["bias"]
        return self


@register
class Linear(LinearWitness):
    """Logistic regression on means, spreads, quantiles, spectra and products of channels."""

    name = "linear"

    def rows(self, sight: Sight) -> NDArray:
        return sight.once("statistics", statistics)
