r"""How well labelled windows explain others: the likelihood of gravity and cross-spectra, and of spectral shapes.

With \hat x_b^c the Fourier coefficients of channel c in band b, one window has the features

    m_c = mean of x^c                                   where gravity points
    a_cb = log |\hat x_b^c|                             how much a channel moves
    r_cdb + i q_cdb = <\hat x_b^c, \hat x_b^d> / (|\hat x_b^c| |\hat x_b^d|)        how two channels move together

The phase q says which of two axes leads: people differ in how much they move, but less in the order in which axes move.
A permutation of channels with signs permutes these features with signs, so a hypothesis needs no new transform. Another
sampling rate or pace shifts the shape of the spectrum along the frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from transpl.council.shifts.shift import resampled

Floats = NDArray[np.float64]
Group = tuple[int, ...]

BANDS = (0.0, 1 / 32, 1 / 16, 1 / 8, 0.501)  # edges in cycles per sample
PEOPLE_DIFFER = 1.0  # variance between people, as a share of a feature's mean square in the source
DEGREES_OF_FREEDOM = 4.0  # of Student's t, so that one outlying feature says little
_QUIET = 1e-2  # of a channel's usual amplitude in a band; the phase of weaker noise means nothing
_TINY = 1e-12

RATES = (1.0, 0.5, 2 / 3, 0.8, 1.25, 1.5, 2.0)  # 1, no change, first
_PACE_BANDS = np.geomspace(1 / 64, 1 / 2, 9)  # edges in cycles per sample, independent of window length
_NOISE = 1e-3  # of all energy; weaker bands depend on the sensor and on the resampling
_PACE_PEOPLE_DIFFER = 0.3  # variance between people, added to that of a log band energy in the source


@dataclass(frozen=True)
class FeatureLayout:
    """The columns of the features: D means, B D amplitudes, B P real and B P imaginary parts.

    Attributes
    ----------
    D : int
    bands : tuple
        The edges of the B bands that windows of this length contain.
    first, second : (P,) int arrays
        The pairs of channels, first < second.
    """

    D: int
    bands: tuple[tuple[float, float], ...]
    first: NDArray[np.int64]
    second: NDArray[np.int64]

    @classmethod
    def of(cls, D: int, T: int) -> FeatureLayout:
        """Return the layout for D channels and windows of T samples or more."""
        frequencies = np.fft.rfftfreq(T)
        bands = tuple(edges for edges in pairwise(BANDS) if _inside(frequencies, edges).any())
        return cls(D, bands, *np.triu_indices(D, 1))

    @property
    def n_bands(self) -> int:
        return len(self.bands)

    def features(self, X: NDArray[Any]) -> Floats:
        """Compute features (n, F) of windows (n, D, T)."""
        values = X.astype(np.float64)
        T = values.shape[2]
        means = values.mean(axis=2)
        spectrum = np.fft.rfft((values - means[..., None]) * np.hanning(T), axis=2) / np.sqrt(T)
        frequencies = np.fft.rfftfreq(T)
        amplitudes, together = [], []
        for edges in self.bands:
            part = spectrum[:, :, _inside(frequencies, edges)]
            size = np.sqrt((np.abs(part) ** 2).sum(axis=2))
            size = size + _QUIET * np.sqrt((size**2).mean(axis=0)) + _TINY
            amplitudes.append(np.log(size))
            part = part / size[..., None]
            together.append((part @ part.conj().transpose(0, 2, 1))[:, self.first, self.second])
        pairs = np.concatenate(together, axis=1)
        return np.concatenate([means, *amplitudes, pairs.real, pairs.imag], axis=1)

    def moved(self, order: Sequence[int], signs: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
        """Return (columns, signs), (F,) each, with features(X[:, order] * signs) = features(X)[:, columns] * signs."""
        o, s = np.asarray(order), np.asarray(signs, np.float64)
        P = len(self.first)
        number = np.zeros((self.D, self.D), np.int64)
        number[self.first, self.second] = number[self.second, self.first] = np.arange(P)
        pair = number[o[self.first], o[self.second]]
        sign = s[self.first] * s[self.second]
        leads = np.where(o[self.first] < o[self.second], sign, -sign)
        starts = self.D + self.D * np.arange(self.n_bands)
        columns, signs_of = [o, *(start + o for start in starts)], [s, *(np.ones(self.D) for _ in starts)]
        for part in range(2 * self.n_bands):
            columns.append(self.D * (1 + self.n_bands) + P * part + pair)
            signs_of.append(sign if part < self.n_bands else leads)
        return np.concatenate(columns), np.concatenate(signs_of)

    def pooled(self, values: Floats, groups: tuple[Group, ...]) -> Floats:
        """Average values (F,) over the columns that a turn of a group can exchange."""
        of = np.zeros(self.D, np.int64)
        for number, group in enumerate(groups):
            of[list(group)] = number
        low, high = np.minimum(of[self.first], of[self.second]), np.maximum(of[self.first], of[self.second])
        pairs = low * len(groups) + high
        singles = np.tile(of, 1 + self.n_bands) + np.repeat(np.arange(1 + self.n_bands), self.D) * len(groups)
        both = np.tile(pairs, 2 * self.n_bands) + np.repeat(np.arange(2 * self.n_bands), len(pairs)) * len(groups) ** 2
        keys = np.concatenate([singles, both + (1 + self.n_bands) * len(groups)])
        _, inverse = np.unique(keys, return_inverse=True)
        return (np.bincount(inverse, values) / np.bincount(inverse))[inverse]


@dataclass(frozen=True)
class ClassModels:
    """p(f | k) = \\prod_j t_4(f_j; m_kj, v_kj), v_kj the variance in class k and that between people.

    mean, variance : (K, F), of the classes that occur
    """

    layout: FeatureLayout
    mean: Floats
    variance: Floats

    @classmethod
    def fit(cls, layout: FeatureLayout, f: Floats, y: NDArray[Any], groups: tuple[Group, ...]) -> ClassModels:
        amplitudes = slice(layout.D, layout.D * (1 + layout.n_bands))
        size = (f**2).mean(axis=0)
        size[amplitudes] = f[:, amplitudes].var(axis=0)
        between = PEOPLE_DIFFER * layout.pooled(size, groups) + _TINY
        classes = [f[y == label] for label in np.unique(y)]
        return cls(
            layout,
            np.array([of.mean(axis=0) for of in classes]),
            np.array([of.var(axis=0) + between for of in classes]),
        )

    def scores(self, f: Floats, moves: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Floats:
        """log 1 / K \\sum_k p(f_i | k), (moves, n), with the source's channels moved; the first move is none."""
        unmoved = self._columns(f, self.mean, self.variance)  # (K, n, F)
        total = unmoved.sum(axis=2)
        scores = np.empty((len(moves), len(f)))
        for row, (order, signs) in enumerate(moves):
            columns, sign = self.layout.moved(order, signs)
            other = np.flatnonzero((columns != np.arange(len(columns))) | (sign < 0))
            mean, variance = self.mean[:, columns[other]] * sign[other], self.variance[:, columns[other]]
            change = self._columns(f[:, other], mean, variance).sum(axis=2) - unmoved[:, :, other].sum(axis=2)
            scores[row] = logsumexp(total + change, axis=0) - np.log(len(total))
        return scores

    @staticmethod
    def _columns(f: Floats, mean: Floats, variance: Floats) -> Floats:
        """Return log densities up to a constant, (K, n, F)."""
        distance = (f - mean[:, None]) ** 2 / (DEGREES_OF_FREEDOM * variance[:, None])
        return -(DEGREES_OF_FREEDOM + 1) / 2 * np.log1p(distance) - 0.5 * np.log(variance)[:, None]


def _inside(frequencies: NDArray[Any], edges: tuple[float, float]) -> NDArray[np.bool_]:
    return (frequencies > edges[0]) & (frequencies <= edges[1])


def pace_scores(
    source: NDArray[Any], y: NDArray[Any], target: NDArray[Any], groups: tuple[Group, ...]
) -> NDArray[np.float64]:
    r"""log 1 / K \sum_k N(e; m_k(r), v_k(r) + 0.3), (rates, windows), with e the log band energies of a target window.

    m_k and v_k are mean and variance over the source windows of class k, resampled by r. The mean over bands is
    subtracted, so that only the shape of a spectrum counts. The energy of a group (a triad or a single channel) is the
    sum over its axes, which no turn changes.
    """
    seen = _spectral_shapes(target, groups)
    classes = [y == label for label in np.unique(y)]
    scores = np.empty((len(RATES), len(target)))
    for row, rate in enumerate(RATES):
        shapes = _spectral_shapes(resampled(source, rate), groups)
        fits = []
        for rows in classes:
            variance = shapes[rows].var(axis=0) + _PACE_PEOPLE_DIFFER
            distance = (seen - shapes[rows].mean(axis=0)) ** 2 / variance + np.log(variance)
            fits.append(-0.5 * distance.sum(axis=(1, 2)))
        scores[row] = logsumexp(fits, axis=0) - np.log(len(classes))
    return scores


def _spectral_shapes(values: NDArray[Any], groups: tuple[Group, ...]) -> NDArray[np.float64]:
    """Return log energy per band minus its mean over bands, (n, groups, bands), independent of window length."""
    T = values.shape[2]
    centred = (values - values.mean(axis=2, keepdims=True)) * np.hanning(T)
    channels = np.abs(np.fft.rfft(centred, axis=2)) ** 2
    power = np.stack([channels[:, group].sum(axis=1) for group in groups], axis=1)
    frequencies = np.fft.rfftfreq(T)
    half = frequencies[1] / 2
    edges = np.concatenate([[0.0], frequencies[:-1] + half, [frequencies[-1] + half]])
    below = np.concatenate([np.zeros((*power.shape[:2], 1)), power.cumsum(axis=2)], axis=2)  # energy below each edge
    right = np.clip(np.searchsorted(edges, _PACE_BANDS), 1, len(edges) - 1)
    weight = (_PACE_BANDS - edges[right - 1]) / (edges[right] - edges[right - 1])
    energy = np.diff(below[..., right - 1] * (1 - weight) + below[..., right] * weight, axis=2)
    logs = np.log(energy + _NOISE * below[..., -1:] + 1e-12)
    return logs - logs.mean(axis=2, keepdims=True)
