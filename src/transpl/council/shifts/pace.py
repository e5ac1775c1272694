"""Another sampling rate or pace: the shape of the spectrum, slid along the frequencies, fits the source again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from transpl.council.shifts.cross_spectra import Group
from transpl.council.shifts.shift import resampled

RATES = (1.0, 0.5, 2 / 3, 0.8, 1.25, 1.5, 2.0)  # none first
_BANDS = np.geomspace(1 / 64, 1 / 2, 9)  # edges in cycles per sample, so the same whatever the length
_NOISE = 1e-3  # of all energy: what is below it depends on the sensor and on the resampling
_PEOPLE_DIFFER = 0.3  # variance of a log band energy that is added to what the source shows


def pace_scores(
    source: NDArray[Any], y: NDArray[Any], target: NDArray[Any], groups: tuple[Group, ...]
) -> NDArray[np.float64]:
    r"""log 1 / K \sum_k N(e; m_k(r), v_k(r) + 0.3), (rates, windows), e a target window's log band energies.

    m_k, v_k : mean and variance over the source windows of class k, resampled by r
    groups : triads and single channels; the energy of a triad is the sum over its axes, the same however it is turned
    The mean over bands is subtracted, so that only the shape of a spectrum counts.
    """
    seen = _spectral_shapes(target, groups)
    classes = [y == label for label in np.unique(y)]
    scores = np.empty((len(RATES), len(target)))
    for row, rate in enumerate(RATES):
        shapes = _spectral_shapes(resampled(source, rate), groups)
        fits = []
        for rows in classes:
            variance = shapes[rows].var(axis=0) + _PEOPLE_DIFFER
            distance = (seen - shapes[rows].mean(axis=0)) ** 2 / variance + np.log(variance)
            fits.append(-0.5 * distance.sum(axis=(1, 2)))
        scores[row] = logsumexp(fits, axis=0) - np.log(len(classes))
    return scores


def _spectral_shapes(values: NDArray[Any], groups: tuple[Group, ...]) -> NDArray[np.float64]:
    """Log energy per band, less its mean over bands, (n, groups, bands); the same bands whatever the length."""
    T = values.shape[2]
    centred = (values - values.mean(axis=2, keepdims=True)) * np.hanning(T)
    channels = np.abs(np.fft.rfft(centred, axis=2)) ** 2
    power = np.stack([channels[:, group].sum(axis=1) for group in groups], axis=1)
    frequencies = np.fft.rfftfreq(T)
    half = frequencies[1] / 2
    edges = np.concatenate([[0.0], frequencies[:-1] + half, [frequencies[-1] + half]])
    below = np.concatenate([np.zeros((*power.shape[:2], 1)), power.cumsum(axis=2)], axis=2)  # energy below each edge
    right = np.clip(np.searchsorted(edges, _BANDS), 1, len(edges) - 1)
    weight = (_BANDS - edges[right - 1]) / (edges[right] - edges[right - 1])
    energy = np.diff(below[..., right - 1] * (1 - weight) + below[..., right] * weight, axis=2)
    logs = np.log(energy + _NOISE * below[..., -1:] + 1e-12)
    return logs - logs.mean(axis=2, keepdims=True)
