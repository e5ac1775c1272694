r"""Figure "corruption": noise on one channel of the target against the rank of its weight. A spoilt channel should
lose trust.

x' = x + s \sigma_c \epsilon,  \epsilon ~ N(0, 1),  \sigma_c the standard deviation of channel c in the target's windows

Distances are measured under both rules of `channel_alignment`, which treat the new codes that noise makes differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots
from scipy.stats import rankdata

from transpl._utils.errors import check_int, check_not_negative, invalid
from transpl._utils.progress import tracked
from transpl._utils.wording import counted
from transpl.markov import TransitionCounts, channel_weights
from transpl.report.figures.channel_alignment import RULES, distances_by_rule
from transpl.report.figures.figure_parts import WIDE, Drawing, Section, Subject, framed
from transpl.report.plots import BLUE, GREY
from transpl.windows import Windows

NOISE = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
NOISE_SEEDS = 3
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
    for level in noise:
        check_not_negative("noise", level)
    if len(noise) < 2 or list(noise) != sorted(set(noise)):
        raise invalid("noise", expected="two or more increasing levels", got=list(noise), advice="As 0, 0.5, 1, 2.")
    first = subjects[0]
    c = _default_channel(first) if channel is None else first.channel(channel)
    return {
        "channel": c,
        "channel_name": first.channel_names[c],
        "n_channels": len(first.channel_names),
        "noise": [float(level) for level in noise],
        "noise_seeds": noise_seeds,
        "pairs": [
            _study_pair(subject, c, noise, noise_seeds)
            for subject in tracked(subjects, "adding noise, models", len(subjects))
        ],
    }


def with_noise(windows: Windows, deviation: float, seed: int) -> Windows:
    """The same windows plus Gaussian noise; a larger deviation scales the same draws."""
    real = np.arange(windows.values.shape[2]) < windows.lengths[:, None, None]
    draws = np.random.default_rng(seed).standard_normal(windows.values.shape)
    return Windows((windows.values + deviation * draws * real).astype(np.float32), windows.lengths)


def rank_of(c: int, distances: NDArray[np.float64]) -> float:
    """The place of channel c by trust, 1..D: 1 is the smallest distance, hence the largest weight."""
    return float(rankdata(distances)[c])


def _study_pair(subject: Subject, c: int, noise: Sequence[float], noise_seeds: int) -> dict[str, Any]:
    # A channel is encoded on its own, so the other channels keep their codes whatever happens to this one.
    method, target = subject.method, subject.windows.target
    alone, source = Windows(target.values[:, [c]], target.lengths), method.state.class_counts.pooled()
    source_alone = TransitionCounts(source.counts[[c]])
    real = np.arange(alone.values.shape[2]) < alone.lengths[:, None]
    deviation = float(alone.values[:, 0][real].std(dtype=np.float64))
    clean = distances_by_rule(method, source, method.count(target))
    noisy = [
        [
            distances_by_rule(method, source_alone, method.count(with_noise(alone, level * deviation, seed)))
            for seed in range(noise_seeds)
        ]
        for level in noise
    ]

    def by_rule(rule: str) -> dict[str, list[list[float]]]:
        distances = [[float(found[rule][0]) for found in draws] for draws in noisy]
        is_c = np.arange(len(clean[rule])) == c
        return {
            "distances": distances,
            "weights": [channel_weights(draws, method.settings.sigma).tolist() for draws in distances],
            "ranks": [[rank_of(c, np.where(is_c, found, clean[rule])) for found in draws] for draws in distances],
        }

    return {
        "name": subject.name,
        "standard_deviation": deviation,
        "rule": method.settings.smoothing,
        "rules": {rule: by_rule(rule) for rule in RULES},
    }


def _default_channel(subject: Subject) -> int:
    if len(subject.channel_names) > PAPERS_CHANNEL:
        return PAPERS_CHANNEL
    return int(subject.method.channel_distances(subject.counts_of_target()).argmin())


def draw_corruption(data: dict[str, Any]) -> Drawing:
    """Ranks, then weights, each by both rules."""
    rank_words = (
        "Gaussian noise is added to this channel of the target and to no other; its size is in standard deviations of "
        f"the channel. Each point is a mean over {data['noise_seeds']} draws of the noise. The two panels treat codes "
        "that occur in only one domain differently: in the paper's text they count; in its authors' code they cost "
        "nothing, so a channel whose codes are all new can seem not to have moved at all."
    )
    weight_words = "1: the channel did not move; 0: it has no vote. The panels are as above."
    sections = [
        Section("Rank of the channel's weight", rank_words, _curves(data, "ranks"), WIDE),
        Section("The weight itself", weight_words, _curves(data, "weights"), WIDE),
    ]
    channel = f"{data['channel_name']} (channel {data['channel']}, counted from 0)"
    findings = [_finding(data, rule) for rule in RULES]
    return Drawing(f"Does a channel lose trust when noise spoils it? {channel}", findings, sections)


def _curves(data: dict[str, Any], key: str) -> go.Figure:
    titles = list(RULES.values())
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.05)

    def add(column: int, name: str, values: list[float], *, is_mean: bool, in_legend: bool) -> None:
        legend, colour, width = ("mean of the pairs", BLUE, 4) if is_mean else ("one pair", GREY, 1.2)
        line = go.Scatter(
            x=data["noise"],
            y=values,
            mode="lines+markers",
            name=legend,
            legendgroup=legend,
            showlegend=in_legend and column == 1,
            line={"color": colour, "width": width},
            marker={"size": 2 * width + 1},
            hovertemplate=f"{name}: %{{y:.2f}} at %{{x}}<extra></extra>",
        )
        figure.add_trace(line, row=1, col=column)

    for column, rule in enumerate(RULES, start=1):
        pairs = _means_over_draws(data, rule, key)
        for number, (pair, values) in enumerate(zip(data["pairs"], pairs, strict=True)):
            add(column, pair["name"], values, is_mean=False, in_legend=number == 0)
        add(column, "mean", _means_over_pairs(pairs), is_mean=True, in_legend=True)
    figure.update_annotations(font_size=13)
    framed(figure, 400)
    figure.update_xaxes(title_text="noise (standard deviations of the channel)")
    if key == "ranks":
        figure.update_yaxes(range=[data["n_channels"] + 0.4, 0.6], dtick=1)
        return figure.update_yaxes(title_text=f"rank by trust (1 of {data['n_channels']} is best)", col=1)
    return figure.update_yaxes(range=[-0.03, 1.03]).update_yaxes(title_text="weight", col=1)


def _means_over_draws(data: dict[str, Any], rule: str, key: str) -> list[list[float]]:
    """Per pair and level of noise."""
    return [[fmean(draws) for draws in pair["rules"][rule][key]] for pair in data["pairs"]]


def _means_over_pairs(pairs: list[list[float]]) -> list[float]:
    return [fmean(level) for level in zip(*pairs, strict=True)]


def _finding(data: dict[str, Any], rule: str) -> str:
    pairs = _means_over_draws(data, rule, "ranks")
    less = sum(ranks[-1] > ranks[0] for ranks in pairs)
    means = zip(data["noise"], _means_over_pairs(pairs), strict=True)
    by_level = ", ".join(f"{mean:.1f} at {level:g}" for level, mean in means)
    return (
        f"Distances {RULES[rule]}: the mean rank of {data['channel_name']} among {data['n_channels']} channels is "
        f"{by_level} standard deviations of noise; at the highest noise it is trusted less than without noise in "
        f"{less} of {counted(len(pairs), 'pair')}."
    )
