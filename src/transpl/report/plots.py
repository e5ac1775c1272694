"""Plotly figures of one adaptation, each from plain saved data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

# Okabe and Ito's colours: told apart by colour-blind readers, on light and on dark ground.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#8a8a8a"
SKY, PURPLE = "#56B4E9", "#CC79A7"
_TEXT = "#808080"
_GRID = "rgba(128,128,128,0.25)"
_LETTERS = 20  # of a name beside an axis; a longer one would leave no room for the figure


def class_shares(
    classes: Sequence[str], series: Mapping[str, Mapping[str, float]], colours: Mapping[str, str]
) -> go.Figure:
    """Share of each class, one group of bars per class, one colour per series."""
    bars = [
        go.Bar(
            name=name,
            x=list(classes),
            y=[100 * shares[k] for k in classes],
            marker_color=colours[name],
            customdata=[literal(k) for k in classes],
            hovertemplate="%{customdata}: %{y:.1f} % of windows<extra>%{fullData.name}</extra>",
        )
        for name, shares in series.items()
    ]
    figure = styled(go.Figure(bars), "", "share of windows (%)")
    return figure.update_xaxes(**_named(classes))


def confidence_histogram(confidence: ArrayLike, n_classes: int) -> go.Figure:
    """How sure the labels are; 1/K is a guess."""
    counts, edges = np.histogram(np.asarray(confidence, dtype=float), bins=20, range=(0.0, 1.0))
    edges = 100 * edges
    bar = go.Bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=np.diff(edges) * 0.95,
        marker_color=BLUE,
        customdata=np.stack([edges[:-1], edges[1:]], axis=1),
        hovertemplate="%{y} windows are %{customdata[0]:.0f} to %{customdata[1]:.0f} % sure<extra></extra>",
    )
    figure = styled(go.Figure(bar), "how sure the label is (%)", "windows")
    figure.add_vline(x=100 / n_classes, line_dash="dot", line_color=ORANGE, annotation_text="a guess")
    return figure.update_xaxes(range=[0, 100])


def confusion(labels: list[str], counts: list[list[int]]) -> go.Figure:
    """Rows: true class; columns: given label; colour: share of the row."""
    table = np.asarray(counts, dtype=float)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    heat = go.Heatmap(
        z=shares,
        x=labels,
        y=labels,
        text=np.asarray(counts),
        texttemplate="%{text}",
        colorscale="Blues",
        zmin=0,
        zmax=1,
        customdata=[[[literal(true), literal(given)] for given in labels] for true in labels],
        hovertemplate="true %{customdata[0]}, labelled %{customdata[1]}: %{text} windows, %{z:.1%} of that class"
        "<extra></extra>",
        showscale=False,
        xgap=1,
        ygap=1,
    )
    figure = styled(go.Figure(heat), "label given", "true class")
    figure.update_xaxes(**_named(labels))
    figure.update_yaxes(**_named(labels), autorange="reversed")
    return figure.update_layout(height=max(340, 44 * len(labels) + 140))


def agreement(names: Sequence[str], shares: ArrayLike) -> go.Figure:
    """How often two witnesses say the same, as shares; rows by name, columns by number."""
    numbers = [str(rank) for rank in range(1, len(names) + 1)]
    percent = 100 * np.asarray(shares, dtype=float)
    rows = [f"{number}. {literal(name)}" for name, number in zip(names, numbers, strict=True)]
    heat = go.Heatmap(
        z=percent.tolist(),
        x=numbers,
        y=rows,
        text=percent.round().astype(int),
        texttemplate="%{text}",
        colorscale="Blues",
        zmin=0,
        zmax=100,
        customdata=[[[literal(one), literal(other)] for other in names] for one in names],
        hovertemplate="%{customdata[0]} and %{customdata[1]}: the same label for %{z:.0f} % of windows<extra></extra>",
        showscale=False,
        xgap=1,
        ygap=1,
    )
    figure = styled(go.Figure(heat), "", "")
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed")
    # On a phone there is no room for the names.
    return figure.update_layout(height=max(260, 28 * len(names) + 80), meta={"shortRows": numbers})


def loss_curves(history: dict[str, list[dict[str, float]]], names: Mapping[str, str]) -> go.Figure:
    """Training and validation loss over the epochs of both phases."""
    figure = go.Figure()
    first = 0
    for (phase, records), colour in zip(history.items(), (BLUE, ORANGE), strict=False):
        name, epochs = names.get(phase, phase), [first + record["epoch"] + 1 for record in records]
        _curve(figure, name, [(epoch, r["loss"]) for epoch, r in zip(epochs, records, strict=True)], colour)
        checked = [
            (epoch, r["validation_loss"]) for epoch, r in zip(epochs, records, strict=True) if "validation_loss" in r
        ]
        _curve(figure, f"{name}, held-out windows", checked, colour, dash="dot")
        first += len(records)
    return styled(figure, "round of training (epoch)", "loss (lower is better)")


def literal(text: str) -> str:
    """A text in which plotly, which reads tags in its texts, finds none."""
    return escape(text, quote=False)


def _named(names: Sequence[str]) -> dict[str, Any]:
    """An axis of classes: names as they are, those too long for it cut."""
    cut = {
        name: name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"
        for name in names
    }
    return {"type": "category", "labelalias": {name: literal(short) for name, short in cut.items()}}


def _curve(figure: go.Figure, name: str, points: list[tuple[float, float]], colour: str, dash: str = "solid") -> None:
    figure.add_scatter(
        x=[epoch for epoch, _ in points],
        y=[loss for _, loss in points],
        name=name,
        mode="lines+markers",
        marker_size=5,
        line={"color": colour, "dash": dash},
    )


def styled(figure: go.Figure, x_title: str, y_title: str) -> go.Figure:
    """Give a figure the looks of our pages, and titles to its axes."""
    axis: dict[str, Any] = {"gridcolor": _GRID, "zerolinecolor": _GRID, "automargin": True}
    return figure.update_layout(
        template="none",
        height=340,
        margin={"l": 60, "r": 20, "t": 20, "b": 50},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": _TEXT, "size": 13},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        xaxis={**axis, "title": x_title},
        yaxis={**axis, "title": y_title},
    )
