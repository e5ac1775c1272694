r"""Noise on one channel of the target against the rank of its weight: a channel that is spoilt should lose trust.

x' = x + s \sigma_c \epsilon,  \epsilon ~ N(0, 1),  \sigma_c the standard deviation of channel c in the target's windows

Distances are measured by both rules of `both_rules`: noise makes new codes, about which they disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from transpl._utils.errors import check_int, check_not_negative, invalid
from transpl.markov import TransitionCounts, channel_weights
from transpl.methods import TransPLMethod
from transpl.report.studies.both_rules import RULES, distances_by_rule
from transpl.report.studies.subject import Subject
from transpl.windows import Windows

NOISE = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
NOISE_SEEDS = 3
Distances = dict[str, NDArray[np.float64]]  # by rule
PAPERS_CHANNEL = 6  # "the sixth channel (starting from zero index)"; of UCIHAR it is total_acc_x


def corruption_study(
    subjects: Sequence[Subject],
    channel: str | int | None = None,
    noise: Sequence[float] = NOISE,
    noise_seeds: int = NOISE_SEEDS,
) -> dict[str, Any]:
    """Per pair and rule: distance, weight and rank of the channel, each (levels of noise, draws of the noise).

    channel : name or number from 0; by default 6 as in the paper or, of fewer channels, the first pair's most trusted
    noise : levels s, in standard deviations of the channel

    Rank 1 is the most trusted channel; equal ones share the mean of their ranks.
    """
    check_int("noise_seeds", noise_seeds, least=1)
    _check_levels(noise)
    first = subjects[0]
    c = _default_channel(first) if channel is None else first.channel(channel)
    return {
        "channel": c,
        "channel_name": first.channel_names[c],
        "n_channels": len(first.channel_names),
        "noise": [float(level) for level in noise],
        "noise_seeds": noise_seeds,
        "pairs": [_of_pair(subject, c, noise, noise_seeds) for subject in subjects],
    }


def with_noise(windows: Windows, deviation: float, seed: int) -> Windows:
    """The same windows plus Gaussian noise; a larger deviation scales the same draws."""
    rng = np.random.default_rng(seed)
    real = np.arange(windows.values.shape[2]) < windows.lengths[:, None, None]
    draws = rng.standard_normal(windows.values.shape)
    return Windows((windows.values + deviation * draws * real).astype(np.float32), windows.lengths)


def rank_of(c: int, distances: NDArray[np.float64]) -> float:
    """The place of channel c by trust: 1 is the least distance, hence the largest weight; (D,) -> rank in 1..D."""
    return float(rankdata(distances)[c])


def _of_pair(subject: Subject, c: int, noise: Sequence[float], noise_seeds: int) -> dict[str, Any]:
    method, target = subject.method, subject.windows.target
    alone, source = Windows(target.values[:, [c]], target.lengths), method.state.class_counts.pooled()
    source_alone, deviation = TransitionCounts(source.counts[[c]]), _standard_deviation(alone)

    def with_level(level: float, seed: int) -> Distances:
        return distances_by_rule(method, source_alone, method.count(with_noise(alone, level * deviation, seed)))

    # A channel is encoded on its own: the others keep their codes whatever becomes of this one.
    spoilt = [[with_level(level, seed) for seed in range(noise_seeds)] for level in noise]
    clean = distances_by_rule(method, source, method.count(target))
    return {
        "name": subject.name,
        "standard_deviation": deviation,
        "rule": method.settings.smoothing,
        "rules": {rule: _by_rule(method, clean, spoilt, c, rule) for rule in RULES},
    }


def _by_rule(
    method: TransPLMethod, clean: Distances, spoilt: list[list[Distances]], c: int, rule: str
) -> dict[str, list[list[float]]]:
    distances = [[float(found[rule][0]) for found in draws] for draws in spoilt]
    ranks = [[rank_of(c, _replaced(clean[rule], c, found)) for found in draws] for draws in distances]
    weights = [channel_weights(draws, method.settings.sigma).tolist() for draws in distances]
    return {"distances": distances, "weights": weights, "ranks": ranks}


def _replaced(values: NDArray[np.float64], at: int, value: float) -> NDArray[np.float64]:
    return np.where(np.arange(len(values)) == at, value, values)


def _standard_deviation(alone: Windows) -> float:
    real = np.arange(alone.values.shape[2]) < alone.lengths[:, None]
    return float(alone.values[:, 0][real].std(dtype=np.float64))


def _default_channel(subject: Subject) -> int:
    if len(subject.channel_names) > PAPERS_CHANNEL:
        return PAPERS_CHANNEL
    return int(subject.method.channel_distances(subject.counts_of_target()).argmin())


def _check_levels(noise: Sequence[float]) -> None:
    for level in noise:
        check_not_negative("noise", level)
    if len(noise) < 2 or list(noise) != sorted(set(noise)):
        raise invalid("noise", expected="two or more growing levels", got=list(noise), advice="As 0, 0.5, 1, 2.")
