"""Logistic regression on how often and how strongly random convolutions respond.

After Dempster, Petitjean and Webb 2020, ROCKET: exceptionally fast and accurate time series classification using random
convolutional kernels. Here kernels cover several channels, and thresholds are quantiles of the responses to the source.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.layout import Layout, check_numbers
from transpl.council.witnesses.linear import LinearWitness
from transpl.council.witnesses.witness import Arrays, ViewedWindows, as_arrays, register

N_KERNELS = 1000
LENGTH = 9
_DILATIONS = (1, 2, 4, 8)
_FOR_THRESHOLDS = 64  # windows
_AT_ONCE = 1 << 22  # responses in memory, about what the processor's cache holds


@register
class Kernels(LinearWitness):
    """Logistic regression on the responses of random convolutions."""

    name = "kernels"
    layout: ClassVar[Layout] = {
        **LinearWitness.layout,
        "dilations": "i kernels",
        "kernels": "f kernels values",
        "thresholds": "f kernels",
    }
    C = 0.01

    def prepare(self, source: ViewedWindows) -> None:
        """Draw kernels for windows of this shape, and thresholds as random quantiles of their responses."""
        random = np.random.default_rng(self.seed)
        D, T = source.values.shape[1:]
        usable = [d for d in _DILATIONS if d * (LENGTH - 1) < 0.6 * T] or [1]
        self.dilations = np.repeat(usable, N_KERNELS // len(usable))
        self.kernels = _draw(random, len(self.dilations), D)
        some = source.values[random.permutation(len(source.values))[:_FOR_THRESHOLDS]]
        levels = random.uniform(0, 1, len(self.dilations))
        thresholds: list[float] = []
        for d in usable:
            responses = self._responses(some, d)
            thresholds += [np.quantile(responses[:, :, i], q) for i, q in enumerate(levels[self.dilations == d])]
        self.thresholds = np.array(thresholds, np.float32)

    def rows(self, viewed: ViewedWindows) -> NDArray:
        return viewed.features("kernels", self._features)

    def arrays(self) -> Arrays:
        prepared = as_arrays(dilations=self.dilations, kernels=self.kernels, thresholds=self.thresholds)
        return {**prepared, **super().arrays()}

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        check_numbers("dilations", arrays["dilations"], 1, max(_DILATIONS))
        self.dilations, self.kernels, self.thresholds = (arrays[k] for k in ("dilations", "kernels", "thresholds"))
        return super().restore(arrays, n_classes)

    def _features(self, values: NDArray) -> NDArray:
        """Return the share of time above the threshold and the maximum of each kernel's response, (n, 2 * kernels)."""
        n, _, T = values.shape
        at_once = max(1, _AT_ONCE // (T * len(self.dilations)))
        found = []
        for first in range(0, n, at_once):
            part, above, most = values[first : first + at_once], [], []
            for d in np.unique(self.dilations):
                r = self._responses(part, int(d))
                above.append((r > self.thresholds[self.dilations == d]).mean(axis=1, dtype=np.float32))
                most.append(r.max(axis=1))
            found.append(np.concatenate(above + most, axis=1))
        return np.concatenate(found)

    def _responses(self, values: NDArray, dilation: int) -> NDArray[np.float32]:
        """Return (n, places, kernels of this dilation); windows are padded with zeros, their mean in most views."""
        n, D, _ = values.shape
        pad = dilation * (LENGTH // 2)
        padded = np.pad(np.asarray(values, np.float32), ((0, 0), (0, 0), (pad, pad)))
        pieces = np.lib.stride_tricks.sliding_window_view(padded, dilation * (LENGTH - 1) + 1, axis=2)
        pieces = pieces[:, :, :, ::dilation]
        places = pieces.shape[2]
        flat = pieces.transpose(0, 2, 1, 3).reshape(n * places, D * LENGTH)
        return (flat @ self.kernels[self.dilations == dilation].T).reshape(n, places, -1)


def _draw(random: np.random.Generator, n: int, D: int) -> NDArray[np.float32]:
    """Draw n kernels (n, D * LENGTH) of mean 0 on random channels, whose number is uniform on a log scale."""
    w = random.normal(size=(n, D, LENGTH))
    w -= w.mean(axis=2, keepdims=True)
    n_channels = np.minimum(2 ** random.uniform(0, np.log2(D + 1), n), D).astype(int)
    rank = random.permuted(np.tile(np.arange(D), (n, 1)), axis=1)
    w *= (rank < n_channels[:, None])[:, :, None]
    return (w / np.sqrt(n_channels)[:, None, None]).reshape(n, D * LENGTH).astype(np.float32)
