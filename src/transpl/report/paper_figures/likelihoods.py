"""One target window in one channel: its codes, its likelihood under every class, and the classes' matrices."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from transpl.report.paper_figures.drawing import (
    BLUE,
    CODE_COLOURS,
    GREY,
    ORANGE,
    WIDE,
    Drawing,
    Section,
    framed,
    grid,
    place,
)

_COLUMNS = 3


def draw_likelihoods(data: dict[str, Any]) -> Drawing:
    """The signal, the evidence, the matrices."""
    sections = [
        Section("The signal, and its code in every stretch", _signal_words(data), _signal(data)),
        Section("How well each class explains these codes", _evidence_words(), _evidence(data), WIDE),
        Section("What each class does in this channel", _matrix_words(), _matrices(data), WIDE),
    ]
    return Drawing(f"Why window {data['window']} is called {data['label']}", _findings(data), sections)


def _signal(data: dict[str, Any]) -> go.Figure:
    signal, m = data["signal"], data["patch_length"]
    low, high = min(signal), max(signal)
    figure = go.Figure()
    for number, code in enumerate(data["codes"]):
        # One step further than the patch, so that the line has no gaps.
        steps = range(number * m, min((number + 1) * m + 1, len(signal)))
        figure.add_scatter(
            x=list(steps),
            y=[signal[t] for t in steps],
            mode="lines",
            line={"color": CODE_COLOURS[code % len(CODE_COLOURS)], "width": 3},
            showlegend=False,
            hovertemplate=f"step %{{x}}: %{{y:.3f}}, code {code}<extra></extra>",
        )
        figure.add_annotation(
            x=(number + 0.5) * m, y=high + 0.12 * (high - low or 1.0), text=str(code), showarrow=False, font_size=13
        )
    figure.update_xaxes(title_text="time step", tickvals=[n * m for n in range(len(data["codes"]) + 1)], tickangle=0)
    figure.update_yaxes(title_text=f"{data['channel']} (data's units)")
    return framed(figure, 290).update_layout(margin={"t": 10})


def _evidence(data: dict[str, Any]) -> go.Figure:
    classes = data["classes"]
    best = max(range(len(classes)), key=lambda k: classes[k]["share"])
    bar = go.Bar(
        orientation="h",
        x=[100 * each["share"] for each in classes],
        y=[each["name"] for each in classes],
        text=[_evidence_text(each) for each in classes],
        textposition="outside",
        cliponaxis=False,
        marker_color=[BLUE if k == best else GREY for k in range(len(classes))],
        hoverinfo="y+text",
    )
    figure = framed(go.Figure(bar), 60 + 44 * len(classes))
    figure.update_layout(margin={"r": 170, "t": 10})
    figure.update_xaxes(title_text="share of this channel's evidence (%)", rangemode="tozero")
    return figure.update_yaxes(autorange="reversed")


def _evidence_text(each: dict[str, Any]) -> str:
    if each["log_likelihood"] is None:
        return "not in the source"
    return f"{100 * each['share']:.1f} %, log likelihood {each['log_likelihood']:.2f}"


def _matrices(data: dict[str, Any]) -> go.Figure:
    path = Counter(pairwise(data["codes"]))
    names = [each["name"] for each in data["classes"]]
    figure = grid(names, _COLUMNS, row_height=290, shared_xaxes=True, shared_yaxes=True)
    for number, matrix in enumerate(data["matrices"]):
        figure.add_trace(_heat(matrix), **place(number, _COLUMNS))
        figure.add_trace(_visited(path, number == 0), **place(number, _COLUMNS))
    figure.update_layout(coloraxis={"colorscale": "Blues", "cmin": 0, "cmax": 1, "colorbar": _COLOUR_BAR})
    figure.update_xaxes(dtick=1, showgrid=False, zeroline=False)
    figure.update_yaxes(dtick=1, showgrid=False, zeroline=False, autorange="reversed")
    for column in range(1, min(_COLUMNS, len(names)) + 1):
        figure.update_xaxes(title_text="next code", row=-(-len(names) // _COLUMNS), col=column)
    for row in range(1, -(-len(names) // _COLUMNS) + 1):
        figure.update_yaxes(title_text="code", row=row, col=1)
    return figure


_COLOUR_BAR = {"title": "probability", "tickformat": ".0%", "thickness": 12}


def _heat(matrix: list[list[float]]) -> go.Heatmap:
    return go.Heatmap(
        z=matrix,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hovertemplate="from code %{y} to code %{x}: %{z:.1%}<extra></extra>",
    )


def _visited(path: Counter[tuple[int, int]], in_legend: bool) -> go.Scatter:
    return go.Scatter(
        x=[then for _, then in path],
        y=[now for now, _ in path],
        mode="markers",
        marker={
            "symbol": "circle-open",
            "color": ORANGE,
            "line": {"width": 3},
            "size": [9 + 2 * min(n, 5) for n in path.values()],
        },
        text=[f"{n} times" if n > 1 else "once" for n in path.values()],
        hovertemplate="this window goes from code %{y} to code %{x}: %{text}<extra></extra>",
        name="transitions of this window",
        legendgroup="window",
        showlegend=in_legend,
    )


def _findings(data: dict[str, Any]) -> list[str]:
    ranked = sorted(data["classes"], key=lambda each: -each["share"])
    how = "chosen by a rule that asks no labels" if data["chosen_by_rule"] else "as chosen"
    shares = [f"{each['name']} ({100 * each['share']:.1f} %)" for each in ranked]
    least = f", least for {shares[-1]}" if len(shares) > 2 else ""
    return [
        f"{data['name']}, target window {data['window']} ({how}), channel {data['channel']}: of the evidence of its "
        f"codes most is for {shares[0]}, then for {shares[1]}{least}.",
        f"All channels together call it {data['label']} (probability {data['probability']:.2f}); this one has weight "
        f"{data['weight']:.2f} in the vote.",
    ]


def _signal_words(data: dict[str, Any]) -> str:
    return f"Every stretch of {data['patch_length']} steps becomes a code: the number above it, and the line's colour."


def _evidence_words() -> str:
    return (
        "The log likelihood is the mean over the transitions of this window: 0 is certain, and the lower, the less the "
        "class does such things. The shares are what Bayes' rule makes of it, all classes being equally frequent."
    )


def _matrix_words() -> str:
    return (
        "Rows: a code; columns: the code that follows; colour: how often it does in the source's windows of the class. "
        "Circles: the transitions of this window, larger if they are repeated. Blue under the circles speaks for a "
        "class, white against it."
    )
