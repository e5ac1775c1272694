r"""
Write a witness
===============

A witness of the council is a class with ``rows``, ``learn`` and ``answer``; ``@register`` gives it a name. This one
looks at the rhythm of a window, the autocorrelation r of every channel at the lags 1..16, and answers

    p(k | r) \propto exp(-d(r, m_k) / (2 v)),      d(r, m) = mean_j (r_j - m_j)^2

with the mean m_k of class k, and v the mean of d(r, m_k) over the source windows of all classes.

A file like this one in ``src/transpl/council/witnesses`` is found by its name, and the tests of all witnesses cover it.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from transpl import TransPL, datasets
from transpl.council.settings import WITNESSES
from transpl.council.witnesses import ViewedWindows, Witness, register

LAGS = 16
ABSENT = 1e6  # distance to a class without source windows
LEAST = 1e-6


# %%
# The witness
# -----------


def autocorrelations(values: NDArray) -> NDArray[np.float64]:
    """Windows (n, D, T) -> (n, D * LAGS), each at most 1 in size; lags longer than a window are 0."""
    n, D, T = values.shape
    x = values.astype(np.float64) - values.mean(axis=2, keepdims=True)
    power = np.maximum((x**2).sum(axis=2), 1e-12)
    found = np.zeros((n, D, LAGS))
    for lag in range(1, min(LAGS, T - 1) + 1):
        found[:, :, lag - 1] = (x[:, :, lag:] * x[:, :, :-lag]).sum(axis=2) / power
    return found.reshape(n, D * LAGS)


@register
class Rhythm(Witness):
    """The class whose mean autocorrelation is nearest."""

    name = "rhythm"

    def rows(self, viewed: ViewedWindows) -> NDArray:
        return viewed.features("autocorrelations", autocorrelations)

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        self.n_classes = n_classes
        self.shown = np.bincount(y, minlength=n_classes) > 0
        self.means = np.array([rows[y == k].mean(axis=0) if self.shown[k] else rows[0] for k in range(n_classes)])
        self.spread = max(float(((rows - self.means[y]) ** 2).mean()), LEAST)
        return self

    def answer(self, rows: NDArray) -> NDArray[np.float64]:
        distances = ((rows[:, None] - self.means) ** 2).mean(axis=2) / self.spread
        distances[:, ~self.shown] = ABSENT
        p = np.maximum(softmax(-distances / 2, axis=1), LEAST)
        return p / p.sum(axis=1, keepdims=True)

    def arrays(self) -> dict[str, NDArray]:
        return {"means": self.means, "shown": self.shown, "spread": np.array([self.spread])}

    def restore(self, arrays: dict[str, NDArray], n_classes: int) -> Self:
        self.n_classes, self.means = n_classes, arrays["means"]
        self.shown, self.spread = arrays["shown"], float(arrays["spread"][0])
        return self


# %%
# The council with and without it
# -------------------------------
# The last column is how often it names the council's class on the target.


def main() -> None:
    data = datasets.load("synthetic")
    print("pair   witnesses      accuracy  estimated  rhythm here")
    for source, target in ((0, 1), (1, 2)):
        one, other = data.domain(source), data.domain(target)
        for chosen in (WITNESSES, (*WITNESSES, "rhythm")):
            model = TransPL(witnesses=chosen).fit(one.X_train, one.y_train).adapt(other.X_train)
            accuracy, estimated = model.score(other.X_test, other.y_test), model.estimated_accuracy_.accuracy
            here = [standing.accuracy for standing in model.witnesses_ if standing.witness == "rhythm"]
            told = f"{max(here):8.3f}" if here else "       -"
            name = "with rhythm" if here else "default"
            print(f"{source} - {target}  {name:<12}  {accuracy:8.3f}   {estimated:8.3f}  {told}", flush=True)


if __name__ == "__main__":
    main()
