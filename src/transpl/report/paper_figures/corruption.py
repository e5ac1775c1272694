"""The rank of a channel's weight as noise is added to it."""

from __future__ import annotations

from statistics import fmean
from typing import Any, NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from transpl.report.paper_figures.drawing import BLUE, GREY, RULES_IN_WORDS, WIDE, Drawing, Section, framed


class _Style(NamedTuple):
    legend: str
    colour: str
    width: float


_PAIR, _MEAN = _Style("one pair", GREY, 1.2), _Style("mean of the pairs", BLUE, 4)


def draw_corruption(data: dict[str, Any]) -> Drawing:
    """Ranks, then weights, each by both rules."""
    channel = f"{data['channel_name']} (channel {data['channel']}, counted from 0)"
    sections = [
        Section("Rank of the channel's weight", _rank_words(data), _curves(data, "ranks"), WIDE),
        Section(
            "The weight itself",
            "1: the channel did not move; 0: it has no vote. The distances are as above.",
            _curves(data, "weights"),
            WIDE,
        ),
    ]
    return Drawing(f"Does a channel lose trust when noise spoils it? {channel}", _findings(data), sections)


def _curves(data: dict[str, Any], key: str) -> go.Figure:
    figure = make_subplots(
        rows=1, cols=2, shared_yaxes=True, subplot_titles=list(RULES_IN_WORDS.values()), horizontal_spacing=0.05
    )
    for column, rule in enumerate(RULES_IN_WORDS, start=1):
        means = [[fmean(draws) for draws in pair["rules"][rule][key]] for pair in data["pairs"]]
        for number, (pair, values) in enumerate(zip(data["pairs"], means, strict=True)):
            figure.add_trace(
                _line(data["noise"], values, pair["name"], _PAIR, in_legend=number == 0 and column == 1),
                row=1,
                col=column,
            )
        overall = [fmean(level) for level in zip(*means, strict=True)]
        figure.add_trace(_line(data["noise"], overall, "mean", _MEAN, in_legend=column == 1), row=1, col=column)
    figure.update_annotations(font_size=13)
    framed(figure, 400)
    figure.update_xaxes(title_text="noise (standard deviations of the channel)")
    if key == "ranks":
        figure.update_yaxes(range=[data["n_channels"] + 0.4, 0.6], dtick=1)
        return figure.update_yaxes(title_text=f"rank by trust (1 of {data['n_channels']} is best)", col=1)
    figure.update_yaxes(range=[-0.03, 1.03])
    return figure.update_yaxes(title_text="weight", col=1)


def _line(noise: list[float], values: list[float], name: str, style: _Style, *, in_legend: bool) -> go.Scatter:
    return go.Scatter(
        x=noise,
        y=values,
        mode="lines+markers",
        name=style.legend,
        legendgroup=style.legend,
        showlegend=in_legend,
        line={"color": style.colour, "width": style.width},
        marker={"size": 2 * style.width + 1},
        hovertemplate=f"{name}: %{{y:.2f}} at %{{x}}<extra></extra>",
    )


def _findings(data: dict[str, Any]) -> list[str]:
    return [_finding(data, rule) for rule in RULES_IN_WORDS]


def _finding(data: dict[str, Any], rule: str) -> str:
    of_pairs = [[fmean(draws) for draws in pair["rules"][rule]["ranks"]] for pair in data["pairs"]]
    means = [fmean(level) for level in zip(*of_pairs, strict=True)]
    less = sum(ranks[-1] > ranks[0] for ranks in of_pairs)
    said = ", ".join(f"{mean:.1f} at {level:g}" for level, mean in zip(data["noise"], means, strict=True))
    return (
        f"Distances {RULES_IN_WORDS[rule]}: the mean rank of {data['channel_name']} among {data['n_channels']} "
        f"channels is {said} standard deviations of noise; with most noise it is trusted less than without in {less} "
        f"of {_pairs(of_pairs)}."
    )


def _pairs(found: list[list[float]]) -> str:
    return f"{len(found)} pair{'' if len(found) == 1 else 's'}"


def _rank_words(data: dict[str, Any]) -> str:
    return (
        "Gaussian noise is added to this channel of the target, and to no other; its size is in standard deviations of "
        f"the channel. Each point is a mean over {data['noise_seeds']} draws of the noise. The two sides differ in "
        "what becomes of codes that occur in one domain alone: in print they count, in the code they cost nothing, so "
        "that a channel whose codes are all new can seem not to have moved at all."
    )
