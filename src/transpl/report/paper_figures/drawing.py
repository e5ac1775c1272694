"""What a figure's page consists of, and the style that its plotly figures share."""

from __future__ import annotations

from typing import Any, NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from transpl.report.plots import BLUE, GREEN, GREY, ORANGE

__all__ = [
    "BLUE",
    "CODE_COLOURS",
    "GREEN",
    "GREY",
    "ORANGE",
    "RULES_IN_WORDS",
    "WIDE",
    "Drawing",
    "Section",
    "framed",
    "grid",
    "place",
]


# Okabe and Ito's eight; the black one is grey here, to be seen on dark ground.
CODE_COLOURS = (ORANGE, "#56B4E9", GREEN, "#D55E00", BLUE, "#CC79A7", "#BFA800", GREY)
WIDE = 720  # pixels that several panels beside each other need; narrower screens scroll
RULES_IN_WORDS = {
    "additive": "as the paper prints them (additive)",
    "floor": "as its authors' code has them (floor)",
}
ANY_RULE_IN_WORDS = {**RULES_IN_WORDS, "pseudocount": "with pseudocounts"}
_LINES = "rgba(128,128,128,0.25)"


class Section(NamedTuple):
    """A figure under a heading, with words that say how to read it; `width` is the least it needs, in pixels."""

    title: str
    words: str
    figure: go.Figure
    width: int = 0


class Drawing(NamedTuple):
    """A page: what is to be seen, in a few sentences, and the figures."""

    title: str
    findings: list[str]
    sections: list[Section]


def grid(titles: list[str], columns: int, *, row_height: int, **options: Any) -> go.Figure:
    """Panels in rows of `columns`, each under its title; fill them with `place` of the panel's number."""
    rows = -(-len(titles) // columns)
    height = row_height * rows + 70
    figure = make_subplots(
        rows=rows, cols=columns, subplot_titles=titles, vertical_spacing=min(0.9 / max(rows, 2), 44 / height), **options
    )
    figure.update_annotations(font_size=12)
    return framed(figure, height)


def place(number: int, columns: int) -> dict[str, int]:
    """Row and column of a panel, as plotly counts them."""
    return {"row": number // columns + 1, "col": number % columns + 1}


def framed(figure: go.Figure, height: int) -> go.Figure:
    """The style of all: no ground of its own, faint lines; the page colours the words."""
    figure.update_xaxes(gridcolor=_LINES, zerolinecolor=_LINES, automargin=True)
    figure.update_yaxes(gridcolor=_LINES, zerolinecolor=_LINES, automargin=True)
    return figure.update_layout(
        template="none",
        height=height,
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": "#808080", "size": 13},
        legend={"orientation": "h", "yref": "container", "y": 1.0, "yanchor": "top", "x": 0.0},
    )
