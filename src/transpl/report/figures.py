"""Plotly figures of one adaptation, each from plain saved data."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

# Okabe and Ito's colours: told apart by colour-blind readers, on light and on dark ground.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#8a8a8a"
_TEXT = "#808080"
_GRID = "rgba(128,128,128,0.25)"


def class_shares(summary: dict[str, Any]) -> go.Figure:
    """Share of each class: source, labels given to the target, and the truth where it is known."""
    classes, test = summary["classes"], summary["test"]
    series = [
        ("source", summary["source"]["class_shares"], GREY),
        ("target, as labelled here", test["class_shares"], BLUE),
        ("target, true", test["true_class_shares"], ORANGE),
    ]
    bars = [
        go.Bar(name=name, x=classes, y=[100 * shares[k] for k in classes], marker_color=colour)
        for name, shares, colour in series
        if shares is not None
    ]
    return styled(go.Figure(bars), "class", "share of windows (%)")


def channel_weights(summary: dict[str, Any]) -> go.Figure:
    """Weight of each channel, the most trusted on top, its distance beside it."""
    channels = sorted(summary["channels"], key=lambda channel: channel["weight"])
    text = [f"weight {channel['weight']:.2f}, distance {channel['distance']:.3f}" for channel in channels]
    bar = go.Bar(
        orientation="h",
        x=[channel["weight"] for channel in channels],
        y=[channel["name"] for channel in channels],
        text=text,
        textposition="auto",
        marker_color=BLUE,
        hoverinfo="y+text",
    )
    figure = styled(go.Figure(bar), "trust in the channel (1 = did not move)", "")
    figure.update_xaxes(range=[0, 1.02])
    return figure.update_layout(height=max(260, 34 * len(channels) + 90))


def confidence_histogram(confidence: ArrayLike, n_classes: int) -> go.Figure:
    """How sure the labels are; 1/K is a guess."""
    counts, edges = np.histogram(np.asarray(confidence, dtype=float), bins=20, range=(0.0, 1.0))
    bar = go.Bar(x=(edges[:-1] + edges[1:]) / 2, y=counts, width=np.diff(edges) * 0.95, marker_color=BLUE)
    figure = styled(go.Figure(bar), "confidence of the label", "windows")
    figure.add_vline(x=1 / n_classes, line_dash="dot", line_color=ORANGE, annotation_text="a guess")
    return figure.update_xaxes(range=[0, 1])


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
        hovertemplate="true %{y}, labelled %{x}: %{text} windows<extra></extra>",
        colorbar={"title": "share of<br>true class", "tickformat": ".0%"},
    )
    figure = styled(go.Figure(heat), "label given", "true class")
    figure.update_yaxes(autorange="reversed")
    return figure.update_layout(height=max(340, 44 * len(labels) + 140))


def loss_curves(history: dict[str, list[dict[str, float]]]) -> go.Figure:
    """Training and validation loss over the epochs of both phases."""
    figure = go.Figure()
    first = 0
    for (phase, records), colour in zip(history.items(), (BLUE, ORANGE), strict=False):
        epochs = [first + record["epoch"] + 1 for record in records]
        figure.add_scatter(x=epochs, y=[r["loss"] for r in records], name=f"{phase}: training", line_color=colour)
        checked = [
            (epoch, r["validation_loss"]) for epoch, r in zip(epochs, records, strict=True) if "validation_loss" in r
        ]
        figure.add_scatter(
            x=[epoch for epoch, _ in checked],
            y=[loss for _, loss in checked],
            name=f"{phase}: source validation",
            line={"color": colour, "dash": "dot"},
        )
        first += len(records)
    return styled(figure, "epoch", "loss")


def codebook_usage(usage: dict[str, Any]) -> go.Figure:
    """How often each coarse code occurs in the source."""
    counts = usage["coarse"]["counts"]
    bar = go.Bar(x=[f"code {i}" for i in range(len(counts))], y=counts, marker_color=GREEN)
    return styled(go.Figure(bar), "coarse code", "patches of the source")


def styled(figure: go.Figure, x_title: str, y_title: str) -> go.Figure:
    """Give a figure the looks of our pages, and titles to its axes."""
    axis = {"gridcolor": _GRID, "zerolinecolor": _GRID, "automargin": True}
    return figure.update_layout(
        template="none",
        height=340,
        margin={"l": 60, "r": 20, "t": 20, "b": 50},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": _TEXT, "size": 13},
        legend={"orientation": "h", "y": 1.12},
        xaxis={**axis, "title": x_title},
        yaxis={**axis, "title": y_title},
    )
