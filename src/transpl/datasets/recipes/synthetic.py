r"""Made data with a known shift: regimes that switch by a Markov chain, seen through a different sensor in each domain.

A window of class k follows a chain of regimes r_t with the class's own transition matrix. In regime r, channel c is
an oscillating autoregression around a level (poles of radius rho at angle theta):

    x_t = 2 rho cos(theta_{kcr}) x_{t-1} - rho^2 x_{t-2} + e_t,      z_t = level_{kcr} + x_t

Domain d sees gain_{dc} * z + offset_{dc}, at speed_{dc} * theta, and has its own class proportions. Domain 0 is the
reference; in the others the shift grows over the channels, from none in the first to full in the last, in an order
drawn for each domain. So some channels deserve more trust than others, and which ones depends on the domain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl.datasets.dataset import TEST, TRAIN, Dataset
from transpl.datasets.pairs import default_pairs

Floats = NDArray[np.float64]
_REGIMES = 3
_RHO = 0.9
_WARM_UP = 32  # steps until a path has forgotten its start
_LOG_GAIN, _OFFSET, _LOG_SPEED = 0.5, 1.0, 0.35  # of a fully shifted channel at shift=1


def make_shifted(
    n_train: int = 120,
    n_test: int = 60,
    n_classes: int = 3,
    n_channels: int = 3,
    length: int = 64,
    n_domains: int = 3,
    shift: float = 1.0,
    imbalance: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Draw a data set with a known shift; the same seed gives the same data.

    Parameters
    ----------
    n_train, n_test : int
        Windows of each domain.
    n_classes, n_channels, length, n_domains : int
    shift : float
        How far domains differ from domain 0; with 0 all have the same distribution.
    imbalance : float
        How far class proportions differ at shift 1: the spread of their logarithms. With 0 classes are even.
    seed : int

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from transpl.datasets import make_shifted
    >>> make_shifted(n_train=20, n_test=10, n_domains=2).X.shape
    (60, 3, 64)
    """
    for name, value, least in (
        ("n_classes", n_classes, 2),
        ("n_train", n_train, n_classes),
        ("n_test", n_test, n_classes),
        ("n_channels", n_channels, 1),
        ("length", length, 2),
        ("n_domains", n_domains, 2),
        ("shift", shift, 0),
        ("imbalance", imbalance, 0),
    ):
        if not value >= least:
            raise invalid(name, expected=f"{least} or more", got=value, advice="Choose a larger number.")
    rng = np.random.default_rng(seed)
    theta, level, transition = _classes(n_classes, n_channels, rng)
    gain, offset, speed = _domains(n_domains, n_channels, shift, rng)
    weights = np.exp(shift * imbalance * rng.standard_normal((n_domains, n_classes)))
    proportions = weights / weights.sum(axis=1, keepdims=True)

    y, domain, split = _rows(proportions, n_train, n_test, rng)
    regimes = _regime_paths(transition[y], _WARM_UP + length, rng)  # (n, T)
    angles = theta[y] * speed[domain][:, :, None]  # (n, channels, regimes)
    z = _signals(angles, level[y], regimes, rng)[:, :, _WARM_UP:]
    X = gain[domain][:, :, None] * z + offset[domain][:, :, None]
    return Dataset(
        name="synthetic",
        X=X.astype(np.float32),
        y=y,
        domain_ids=domain,
        split=split,
        class_names=tuple(f"class_{k}" for k in range(n_classes)),
        channel_names=tuple(f"channel_{c}" for c in range(n_channels)),
        pairs=default_pairs(range(n_domains)),
    )


def _classes(K: int, channels: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draw the angles and levels of each class, (K, channels, regimes), and its transitions, (K, regimes, regimes)."""
    pace = np.geomspace(0.4, 0.8, K)[:, None] * np.array([0.6, 1.0, 1.5])  # (K, regimes)
    height = np.linspace(-0.5, 0.5, K)[:, None] + np.array([-0.6, 0.0, 0.6])
    theta = np.stack([pace[rng.permutation(K)] for _ in range(channels)], axis=1)
    level = np.stack([height[rng.permutation(K)] for _ in range(channels)], axis=1)
    onward = np.roll(np.eye(_REGIMES), 1, axis=1)
    stay, up = np.linspace(0.8, 0.95, K)[:, None, None], np.linspace(0.9, 0.1, K)[:, None, None]
    transition = stay * np.eye(_REGIMES) + (1 - stay) * (up * onward + (1 - up) * onward.T)
    return theta, level, transition


def _domains(D: int, channels: int, shift: float, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draw how each domain's sensor differs: gain, offset and speed, (D, channels)."""
    strength = np.linspace(0, 1, channels) if channels > 1 else np.ones(1)
    strengths = np.stack([rng.permutation(strength) for _ in range(D)])
    strengths[0] = 0
    towards = rng.choice([-1.0, 1.0], size=(3, D, channels)) * shift * strengths
    return np.exp(_LOG_GAIN * towards[0]), _OFFSET * towards[1], np.exp(_LOG_SPEED * towards[2])


def _rows(
    proportions: Floats, n_train: int, n_test: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Return class, domain and split of every window; each class is in each part of each domain at least once."""
    labels, domains, splits = [], [], []
    for d, p in enumerate(proportions):
        for part, n in ((TRAIN, n_train), (TEST, n_test)):
            labels.append(rng.permutation(np.repeat(np.arange(len(p)), _class_counts(p, n))))
            domains.append(np.full(n, d))
            splits.append(np.full(n, part, np.int8))
    return np.concatenate(labels), np.concatenate(domains), np.concatenate(splits)


def _class_counts(p: Floats, n: int) -> NDArray[np.int64]:
    """Divide `n` windows among the classes: one each, the rest by `p`, remainders to the largest fractions."""
    ideal = p * (n - len(p))
    counts = 1 + np.floor(ideal).astype(np.int64)
    counts[np.argsort(np.floor(ideal) - ideal, kind="stable")[: n - counts.sum()]] += 1
    return counts


def _regime_paths(transition: Floats, T: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Run one chain per window, (n, T); `transition` is (n, regimes, regimes)."""
    n = len(transition)
    cumulative = transition.cumsum(axis=2)
    draws = rng.random((T, n, 1))
    path = np.zeros((T, n), np.int64)
    for t in range(1, T):
        passed = draws[t] > cumulative[np.arange(n), path[t - 1]]
        path[t] = np.minimum(passed.sum(axis=1), _REGIMES - 1)
    return path.T


def _signals(angles: Floats, level: Floats, regimes: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Run the autoregressions, (n, channels, T)."""
    n, channels, _ = angles.shape
    T = regimes.shape[1]
    noise = 0.3 * rng.standard_normal((T, n, channels))
    rows = np.arange(n)
    x = np.zeros((T, n, channels))
    means = np.zeros((T, n, channels))
    for t in range(T):
        a = 2 * _RHO * np.cos(angles[rows, :, regimes[:, t]])
        x[t] = a * x[t - 1] - _RHO**2 * x[t - 2] + noise[t]  # at t < 2 the index wraps to zeros
        means[t] = level[rows, :, regimes[:, t]]
    return (means + x).transpose(1, 2, 0)
