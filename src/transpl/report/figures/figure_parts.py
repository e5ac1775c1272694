"""What every figure of the paper shares: the model it studies, and the page it is drawn on."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from transpl._utils.errors import InputError, invalid
from transpl._utils.html import PAGE_STYLE
from transpl.markov import TransitionCounts
from transpl.methods import TransPLMethod
from transpl.report.html_parts import document
from transpl.report.plots import AXIS, LOOK
from transpl.windows import Windows

WIDE = 720  # pixels that several panels side by side need; narrower screens scroll

# Plotly writes colours into its texts. On a page that is light or dark they take the page's; hover labels keep theirs.
_STYLE = (
    PAGE_STYLE
    + """
footer { color: var(--soft); }
.main-svg g:not(.hovertext):not(.bartext) > text { fill: var(--ink) !important; }
"""
)


@dataclass(frozen=True)
class BothDomains:
    """Windows of source and target; `target_rows` are the numbers by which users know the target's windows."""

    source: Windows
    target: Windows
    target_rows: NDArray[np.int64]


@dataclass(frozen=True)
class Subject:
    """A fitted source model, and the windows it is applied to.

    name : of the pair, for readers
    group : what several subjects may have in common, such as the data set
    domains : None if only the model is available
    target_counts : transitions of the whole target; None if `domains` has the whole target
    """

    name: str
    group: str
    method: TransPLMethod
    class_names: tuple[str, ...]
    channel_names: tuple[str, ...]
    domains: BothDomains | None = None
    target_counts: TransitionCounts | None = None

    @property
    def windows(self) -> BothDomains:
        """The windows; an error if the folder did not keep any."""
        if self.domains is None:
            raise InputError(f"{self.name}: its folder has no sample.npz. Run transpl adapt or demo again.")
        return self.domains

    def counts_of_target(self) -> TransitionCounts:
        """Transitions of the whole target, (D, n_c, n_c)."""
        return self.method.count(self.windows.target) if self.target_counts is None else self.target_counts

    def channel(self, which: str | int) -> int:
        """The position of a channel given by name or by number from 0."""
        names = self.channel_names
        if str(which) in names:
            return names.index(str(which))
        if str(which).isdecimal() and int(which) < len(names):
            return int(which)
        expected = f"a name among {', '.join(names)}, or a number 0..{len(names) - 1}"
        raise invalid("channel", expected=expected, got=repr(which), advice="Channels are counted from 0.")


class Section(NamedTuple):
    """A plot under a heading, with words that say how to read it; `width` is the least it needs, in pixels."""

    title: str
    words: str
    figure: go.Figure
    width: int = 0


class Drawing(NamedTuple):
    """A page: what it shows in a few sentences, and the plots."""

    title: str
    findings: list[str]
    sections: list[Section]


def render_figure(drawing: Drawing, made_with: str = "") -> str:
    """One HTML page that holds everything it needs."""
    parts = [
        f"<h1>{escape(drawing.title)}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in drawing.findings),
        *(_section_html(section) for section in drawing.sections),
        f"<footer><p>{escape(made_with)}</p></footer>",
    ]
    return document(drawing.title, _STYLE, parts)


def _section_html(section: Section) -> str:
    config = {"displayModeBar": False, "responsive": True}
    plot = section.figure.to_html(full_html=False, include_plotlyjs=False, config=config)
    inner = f'<div style="min-width: {section.width}px">{plot}</div>' if section.width else plot
    return f"<section><h2>{escape(section.title)}</h2><p>{escape(section.words)}</p><figure>{inner}</figure></section>"


def grid(titles: list[str], columns: int, *, row_height: int, **options: Any) -> go.Figure:
    """Panels in rows of `columns`, each under its title; add traces with `place(number, columns)`."""
    rows = -(-len(titles) // columns)
    height = row_height * rows + 70
    spacing = min(0.9 / max(rows, 2), 44 / height)
    figure = make_subplots(rows=rows, cols=columns, subplot_titles=titles, vertical_spacing=spacing, **options)
    figure.update_annotations(font_size=12)
    return framed(figure, height)


def place(number: int, columns: int) -> dict[str, int]:
    """Row and column of a panel, as plotly counts them."""
    return {"row": number // columns + 1, "col": number % columns + 1}


def framed(figure: go.Figure, height: int) -> go.Figure:
    """The style of all figures: no background, faint lines, the legend on top."""
    return (
        figure.update_xaxes(AXIS)
        .update_yaxes(AXIS)
        .update_layout(
            **LOOK,
            height=height,
            margin={"l": 60, "r": 20, "t": 50, "b": 50},
            legend={"orientation": "h", "yref": "container", "y": 1.0, "yanchor": "top", "x": 0.0},
        )
    )
