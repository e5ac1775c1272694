"""Numbers that describe a window: level, spread, quantiles, spectrum, and how channels move together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BANDS = 11  # of the spectrum, equally wide in octaves
_MOST_PAIRS = 120  # of channels; sixteen channels have as many
_QUIET = 1e-6  # power per time step that is as good as none


def statistics(values: NDArray) -> Floats:
    """Describe windows (n, D, T) by rows (n, F); `statistic_names` has the columns."""
    x = np.asarray(values, np.float64)
    n, _, T = x.shape
    level = x.mean(axis=2)
    steps = np.diff(x, axis=2).std(axis=2) if T > 1 else np.zeros_like(level)
    blocks = [level, x.std(axis=2), steps, *np.quantile(x, QUANTILES, axis=2)]
    centred = x - level[:, :, None]
    power = np.abs(np.fft.rfft(centred, axis=2)) ** 2
    blocks += [np.log(power[:, :, a:b].sum(axis=2) + _QUIET * T) for a, b in _bands(T)]
    first, second = _channel_pairs(x.shape[1])
    blocks.append(np.einsum("npt,npt->np", centred[:, first], centred[:, second]) / T)
    return np.concatenate(blocks, axis=1).reshape(n, -1)


def statistic_names(channel_names: Sequence[str]) -> list[tuple[str, str]]:
    """(channel, quantity) of every column of `statistics`; both channels of a product joined by " x "."""
    quantities = ["mean", "deviation", "deviation of steps"]
    quantities += [f"{100 * q:g} % quantile" for q in QUANTILES]
    quantities += [f"energy in band {b + 1} of {BANDS}" for b in range(BANDS)]
    names = [(channel, quantity) for quantity in quantities for channel in channel_names]
    first, second = _channel_pairs(len(channel_names))
    return names + [(f"{channel_names[a]} x {channel_names[b]}", "product") for a, b in zip(first, second, strict=True)]


def _bands(T: int) -> list[tuple[int, int]]:
    """Ranges of the spectrum's bins, from the lowest frequency above 0 up; short windows have empty ones."""
    bins = T // 2 + 1
    edges = np.round(np.geomspace(1, max(bins, 2), BANDS + 1)).astype(int)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _channel_pairs(D: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.triu_indices(D, 1)
    return first[:_MOST_PAIRS], second[:_MOST_PAIRS]
