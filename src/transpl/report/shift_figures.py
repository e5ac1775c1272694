"""Plotly figures of what shifted, each from a `ShiftReport`."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from transpl._utils.errors import check_choice
from transpl.markov import ShiftReport
from transpl.report.plots import BLUE, styled

# Blue to white to orange: the middle of the scale is no change, and colour-blind readers tell its ends apart.
_CHANGE = [[0.0, "#0072B2"], [0.5, "#f2f2f2"], [1.0, "#D55E00"]]
_SIDES = ("source", "target", "target less source")


def channel_distances(report: ShiftReport) -> go.Figure:
    """How far each channel moved, the one that moved most on top, its weight beside it."""
    table = report.channels()[::-1]
    bar = go.Bar(
        orientation="h",
        x=table["distance"],
        y=table["channel"],
        text=[f"distance {row.distance:.3f}, weight {row.weight:.2f}" for row in table.itertuples()],
        textposition="auto",
        marker_color=BLUE,
        hoverinfo="y+text",
    )
    figure = styled(go.Figure(bar), "distance between source and target (0 = did not move)", "")
    figure.update_xaxes(rangemode="tozero")
    return figure.update_layout(height=max(260, 34 * len(table) + 90))


def transition_matrices(report: ShiftReport, channel: str) -> go.Figure:
    """Which code follows which in one channel: source, target and their difference side by side."""
    check_choice("channel", channel, report.channel_names)
    d = report.channel_names.index(channel)
    source, target = report.source_probabilities[d], report.target_probabilities[d]
    hover = _hover(report, d)
    figure = make_subplots(cols=3, shared_yaxes=True, subplot_titles=_SIDES, horizontal_spacing=0.04)
    for column, values in enumerate((source, target, target - source), start=1):
        figure.add_trace(_matrix(values, hover, is_change=column == 3), row=1, col=column)
    styled(figure, "", "from code")
    codes = {"tickmode": "array", "tickvals": _shown_codes(report.source_counts.shape[-1])}
    figure.update_xaxes(title="to code", **codes)
    figure.update_yaxes(autorange="reversed", **codes)
    return figure.update_layout(margin={"t": 40})


def _matrix(values: NDArray[np.float64], hover: NDArray[np.str_], *, is_change: bool) -> go.Heatmap:
    reach = max(float(np.abs(values).max(initial=0.0)), 0.05)
    scale = (
        {"colorscale": _CHANGE, "zmin": -reach, "zmax": reach, "colorbar": {"title": "change"}}
        if is_change
        else {"colorscale": "Blues", "zmin": 0, "zmax": 1, "showscale": False}
    )
    return go.Heatmap(z=values, text=hover, hovertemplate="%{text}<extra></extra>", **scale)


def _hover(report: ShiftReport, d: int) -> NDArray[np.str_]:
    """What each cell says, the same in all three matrices."""
    source, target, visited = report.source_probabilities[d], report.target_probabilities[d], report.visited[d]
    n = len(visited)
    return np.array(
        [
            [
                f"after code {i} comes code {j}<br>source {source[i, j]:.1%}, target {target[i, j]:.1%}"
                f"<br>code {i} starts {visited[i]:.1%} of the target's steps"
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


def _shown_codes(n: int) -> list[int]:
    """Ticks at every code, or at every so many that about a dozen remain."""
    return list(range(0, n, max(1, n // 12)))
