"""One self-contained HTML page per figure of the paper; opens offline, in any browser."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from transpl._utils.html import PAGE_STYLE
from transpl.report.document import document
from transpl.report.paper_figures.alignment import draw_alignment
from transpl.report.paper_figures.codes import draw_codes
from transpl.report.paper_figures.corruption import draw_corruption
from transpl.report.paper_figures.drawing import Drawing, Section
from transpl.report.paper_figures.entropy import draw_entropy
from transpl.report.paper_figures.likelihoods import draw_likelihoods

DRAWINGS: dict[str, Callable[[dict[str, Any]], Drawing]] = {
    "entropy": draw_entropy,
    "codes": draw_codes,
    "likelihoods": draw_likelihoods,
    "alignment": draw_alignment,
    "corruption": draw_corruption,
}

# Plotly writes colours into its texts; on a page that is light or dark they take the page's. Hover labels keep theirs.
_STYLE = (
    PAGE_STYLE
    + """
footer { color: var(--soft); }
.main-svg g:not(.hovertext):not(.bartext) > text { fill: var(--ink) !important; }
"""
)


def render_figure(name: str, data: dict[str, Any], made_with: str = "") -> tuple[str, list[str]]:
    """The page of a figure as text, and what is to be seen in it as sentences."""
    drawing = DRAWINGS[name](data)
    parts = [
        f"<h1>{escape(drawing.title)}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in drawing.findings),
        *(_section(section) for section in drawing.sections),
        f"<footer><p>{escape(made_with)}</p></footer>",
    ]
    return document(drawing.title, _STYLE, parts), drawing.findings


def _section(section: Section) -> str:
    drawn = section.figure.to_html(
        full_html=False, include_plotlyjs=False, config={"displayModeBar": False, "responsive": True}
    )
    inner = f'<div style="min-width: {section.width}px">{drawn}</div>' if section.width else drawn
    return f"<section><h2>{escape(section.title)}</h2><p>{escape(section.words)}</p><figure>{inner}</figure></section>"
