"""How far each channel moved: the [CLS] vectors of both domains, and two distances side by side."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from transpl.report.paper_figures.drawing import (
    ANY_RULE_IN_WORDS,
    BLUE,
    GREY,
    ORANGE,
    RULES_IN_WORDS,
    WIDE,
    Drawing,
    Section,
    framed,
    grid,
    place,
)

_COLUMNS = 3


def draw_alignment(data: dict[str, Any]) -> Drawing:
    """A cloud per channel, then bars."""
    sections = [
        Section(
            "Where the windows of both domains lie, channel by channel", _cloud_words(), _clouds(data["channels"]), WIDE
        ),
        Section("How far each channel moved, by two measures", _bar_words(), _bars(data["channels"]), WIDE),
    ]
    return Drawing(f"Which channels moved: {data['name']}", _findings(data), sections)


def _clouds(channels: list[dict[str, Any]]) -> go.Figure:
    titles = [f"{each['name']} ({100 * sum(each['variance_shares']):.0f} % shown)" for each in channels]
    figure = grid(titles, _COLUMNS, row_height=240, shared_xaxes=True, shared_yaxes=True)
    for number, channel in enumerate(channels):
        for side, colour, symbol in (("source", BLUE, "circle"), ("target", ORANGE, "x-thin-open")):
            points = go.Scatter(
                x=[x for x, _ in channel[side]],
                y=[y for _, y in channel[side]],
                mode="markers",
                marker={
                    "color": colour,
                    "symbol": symbol,
                    "size": 5,
                    "opacity": 0.75,
                    "line": {"color": colour, "width": 1.2},
                },
                name=side,
                legendgroup=side,
                showlegend=number == 0,
                hovertemplate=f"{side}<extra></extra>",
            )
            figure.add_trace(points, **place(number, _COLUMNS))
    for axis, update in enumerate((figure.update_xaxes, figure.update_yaxes)):
        values = [point[axis] for each in channels for side in ("source", "target") for point in each[side]]
        room = 0.04 * (max(values) - min(values) or 1.0)
        update(range=[min(values) - room, max(values) + room], nticks=5)
    return figure


def _bars(channels: list[dict[str, Any]]) -> go.Figure:
    ranked = sorted(channels, key=lambda each: each["distances"]["additive"])
    measures = [(words, BLUE, [each["distances"][rule] for each in ranked]) for rule, words in RULES_IN_WORDS.items()]
    measures.append(("prototypes (mean vectors)", GREY, [each["prototype_distance"] for each in ranked]))
    titles = [words for words, _, _ in measures]
    figure = make_subplots(rows=1, cols=3, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.05)
    for column, (_, colour, values) in enumerate(measures, start=1):
        bar = go.Bar(
            orientation="h",
            x=values,
            y=[each["name"] for each in ranked],
            text=[f"{value:.3f}" for value in values],
            textposition="outside",
            cliponaxis=False,
            marker_color=colour,
            showlegend=False,
            hoverinfo="y+text",
        )
        figure.add_trace(bar, row=1, col=column)
        figure.update_xaxes(range=[0, 1.25 * (max(values) or 1.0)], nticks=4, row=1, col=column)
    figure.update_annotations(font_size=12)
    return framed(figure, 110 + 30 * len(ranked))


def _findings(data: dict[str, Any]) -> list[str]:
    ours = sorted(data["channels"], key=lambda each: -each["distance"])
    theirs = max(data["channels"], key=lambda each: each["prototype_distance"])
    sentences = [
        f"{data['name']}, distances {ANY_RULE_IN_WORDS[data['rule']]}: {ours[0]['name']} moved most "
        f"({ours[0]['distance']:.3f}, weight {ours[0]['weight']:.2f}) and {ours[-1]['name']} least "
        f"({ours[-1]['distance']:.3f}, weight {ours[-1]['weight']:.2f}); by prototypes {theirs['name']} moved most.",
    ]
    known = {rule: value for rule, value in data["rank_correlations"].items() if value is not None}
    said = [f"{value:.2f} for distances {ANY_RULE_IN_WORDS[rule]}" for rule, value in known.items()]
    if said:
        sentences.append(f"Rank correlation with the prototypes' order (1: the same, 0: unrelated): {', '.join(said)}.")
    return sentences


def _cloud_words() -> str:
    return (
        "One point per window: the network's summary of this channel (its [CLS] vector), in the two directions in "
        "which the windows of both domains differ most. Above each: the share of all differences that these directions "
        "show. All panels have the same scale."
    )


def _bar_words() -> str:
    return (
        "Blue: the earth mover's distance, how much of which code would have to be moved to turn the source's "
        "transitions into the target's; codes that only one domain has count in print, and cost nothing in the "
        "authors' code. Grey: how far the mean vector of the source is from the target's, which knows nothing of the "
        "order in time. The scales differ; compare the order."
    )
