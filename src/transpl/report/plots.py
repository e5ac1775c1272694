"""Plotly figures of the pages, each from plain saved data, and the style they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from transpl._utils.errors import check_choice
from transpl.markov import ShiftReport

# Okabe and Ito's colours, for colour-blind readers, on light and dark backgrounds. Grey replaces their black.
BLUE, ORANGE, GREEN, GREY, SKY, PURPLE = "#0072B2", "#E69F00", "#009E73", "#8a8a8a", "#56B4E9", "#CC79A7"
VERMILION = "#D55E00"
CODE_COLOURS = (ORANGE, SKY, GREEN, VERMILION, BLUE, PURPLE, "#BFA800", GREY)

AXIS: dict[str, Any] = {
    "gridcolor": "rgba(128,128,128,0.25)",
    "zerolinecolor": "rgba(128,128,128,0.25)",
    "automargin": True,
}
LOOK: dict[str, Any] = {
    "template": "none",
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"color": "#808080", "size": 13},
}
_HEAT: dict[str, Any] = {"texttemplate": "%{text}", "colorscale": "Blues", "showscale": False, "xgap": 1, "ygap": 1}
_NAME_LENGTH = 20  # letters of a name beside an axis; a longer one would leave no room for the figure


def styled(figure: go.Figure, x_title: str, y_title: str) -> go.Figure:
    """Give a figure the look of our pages, and titles to its axes."""
    return figure.update_layout(
        **LOOK,
        height=340,
        margin={"l": 60, "r": 20, "t": 20, "b": 50},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        xaxis={**AXIS, "title": x_title},
        yaxis={**AXIS, "title": y_title},
    )


def literal(text: str) -> str:
    """A text in which plotly, which reads tags in its texts, finds none."""
    return escape(text, quote=False)


def _class_axis(names: Sequence[str]) -> dict[str, Any]:
    """An axis of classes, with long names shortened."""
    shown = {
        name: name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
        for name in names
    }
    return {"type": "category", "labelalias": {name: literal(short) for name, short in shown.items()}}


def class_share_bars(
    classes: Sequence[str],
    series: Mapping[str, Mapping[str, float]],
    colours: Mapping[str, str],
    say_none: str = "",
) -> go.Figure:
    """Share of each class: a group of bars per class, a colour per series; series `say_none` writes "none" for 0."""
    bars = [
        go.Bar(
            name=name,
            x=list(classes),
            y=[100 * shares[k] for k in classes],
            marker_color=colours[name],
            text=["none" if name == say_none and not shares[k] else "" for k in classes],
            textposition="outside",
            textangle=-90,
            cliponaxis=False,
            customdata=[literal(k) for k in classes],
            hovertemplate="%{customdata}: %{y:.1f} % of windows<extra>%{fullData.name}</extra>",
        )
        for name, shares in series.items()
    ]
    return styled(go.Figure(bars), "", "share of windows (%)").update_xaxes(**_class_axis(classes))


def confidence_histogram(confidence: ArrayLike, n_classes: int) -> go.Figure:
    """How sure the labels are; 1/K is a guess."""
    counts, edges = np.histogram(np.asarray(confidence, dtype=float), bins=20, range=(0.0, 1.0))
    edges = 100 * edges
    bars = go.Bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=np.diff(edges) * 0.95,
        marker_color=BLUE,
        customdata=np.stack([edges[:-1], edges[1:]], axis=1),
        hovertemplate="%{y} windows are %{customdata[0]:.0f} to %{customdata[1]:.0f} % sure<extra></extra>",
    )
    figure = styled(go.Figure(bars), "how sure the label is (%)", "windows")
    figure.add_vline(x=100 / n_classes, line_dash="dot", line_color=ORANGE, annotation_text="a guess")
    return figure.update_xaxes(range=[0, 100])


def confusion(labels: list[str], counts: list[list[int]]) -> go.Figure:
    """Rows: true class; columns: label; colour: share of the row."""
    table = np.asarray(counts, dtype=float)
    heat = go.Heatmap(
        z=table / np.maximum(table.sum(axis=1, keepdims=True), 1),
        x=labels,
        y=labels,
        text=np.asarray(counts),
        zmin=0,
        zmax=1,
        customdata=[[[literal(true), literal(given)] for given in labels] for true in labels],
        hovertemplate="true %{customdata[0]}, labelled %{customdata[1]}: %{text} windows, %{z:.1%} of that class"
        "<extra></extra>",
        **_HEAT,
    )
    figure = styled(go.Figure(heat), "label given", "true class")
    figure.update_xaxes(**_class_axis(labels))
    figure.update_yaxes(**_class_axis(labels), autorange="reversed")
    return figure.update_layout(height=max(340, 44 * len(labels) + 140))


def loss_curves(history: dict[str, list[dict[str, float]]], names: Mapping[str, str]) -> go.Figure:
    """Training and validation loss over the epochs of all phases."""
    figure = go.Figure()
    first = 0
    for (phase, records), colour in zip(history.items(), (BLUE, ORANGE), strict=False):
        name = names.get(phase, phase)
        for key, label, dash in (("loss", name, "solid"), ("validation_loss", f"{name}, held-out windows", "dot")):
            known = [record for record in records if key in record]
            figure.add_scatter(
                x=[first + record["epoch"] + 1 for record in known],
                y=[record[key] for record in known],
                name=label,
                mode="lines+markers",
                marker_size=5,
                line={"color": colour, "dash": dash},
            )
        first += len(records)
    return styled(figure, "round of training (epoch)", "loss (lower is better)")


def channel_distances(report: ShiftReport) -> go.Figure:
    """How far each channel moved: the one that moved most on top, its weight beside it.

    Parameters
    ----------
    report : ShiftReport
        As `TransPL.shift_report` returns it.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    table = report.channels()[::-1]
    bars = go.Bar(
        orientation="h",
        x=table["distance"],
        y=table["channel"],
        text=[f"distance {row.distance:.3f}, weight {row.weight:.2f}" for row in table.itertuples()],
        textposition="auto",
        marker_color=BLUE,
        hoverinfo="y+text",
    )
    figure = styled(go.Figure(bars), "distance between source and target (0 = did not move)", "")
    return figure.update_xaxes(rangemode="tozero").update_layout(height=max(260, 34 * len(table) + 90))


def transition_matrices(report: ShiftReport, channel: str) -> go.Figure:
    """Which code follows which in one channel: source, target and their difference side by side.

    Parameters
    ----------
    report : ShiftReport
        As `TransPL.shift_report` returns it.
    channel : str
        One of `report.channel_names`.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    check_choice("channel", channel, report.channel_names)
    d = report.channel_names.index(channel)
    source, target, visited = report.source_probabilities[d], report.target_probabilities[d], report.visited[d]
    n = len(visited)
    hover = [
        [
            f"after code {i} comes code {j}<br>source {source[i, j]:.1%}, target {target[i, j]:.1%}"
            f"<br>code {i} starts {visited[i]:.1%} of the target's steps"
            for j in range(n)
        ]
        for i in range(n)
    ]
    probability = {"colorscale": "Blues", "zmin": 0, "zmax": 1, "showscale": False}
    reach = max(float(np.abs(target - source).max(initial=0.0)), 0.05)
    change = {
        "colorscale": [[0.0, BLUE], [0.5, "#f2f2f2"], [1.0, VERMILION]],  # the middle is no change
        "zmin": -reach,
        "zmax": reach,
        "colorbar": {"title": "change"},
    }
    titles = ("source", "target", "target less source")
    figure = make_subplots(cols=3, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.04)
    for column, (values, scale) in enumerate(
        ((source, probability), (target, probability), (target - source, change)), start=1
    ):
        heat = go.Heatmap(z=values, text=hover, hovertemplate="%{text}<extra></extra>", **scale)
        figure.add_trace(heat, row=1, col=column)
    styled(figure, "", "from code")
    codes = {"tickmode": "array", "tickvals": list(range(0, n, max(1, n // 12)))}  # about a dozen
    figure.update_xaxes(title="to code", **codes)
    figure.update_yaxes(autorange="reversed", **codes)
    return figure.update_layout(margin={"t": 40})
