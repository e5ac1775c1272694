"""All coarse and fine codes, decoded and drawn."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from transpl.report.paper_figures.drawing import BLUE, ORANGE, WIDE, Drawing, Section, grid, place

COLUMNS = 8
COLOURS = {"coarse": BLUE, "fine": ORANGE}


def draw_codes(data: dict[str, Any]) -> Drawing:
    """One panel per code, coarse first."""
    books = data["books"]
    sections = [
        Section(f"The {len(codes)} {book} codes", _words(book, data["context"]), code_panels(codes, book), WIDE)
        for book, codes in books.items()
    ]
    return Drawing(f"What the codes look like: {data['name']}", [_finding(books)], sections)


def code_panels(codes: list[dict[str, Any]], book: str) -> go.Figure:
    """Each code's values over the steps of a patch, on a scale of its own; a code that never occurs is dotted."""
    figure = grid([_title(code) for code in codes], COLUMNS, row_height=120, horizontal_spacing=0.025)
    for number, code in enumerate(codes):
        values = code["values"] or []
        line = go.Scatter(
            x=list(range(1, len(values) + 1)),
            y=values,
            mode="lines",
            line={"color": COLOURS[book], "width": 2, "dash": "solid" if code["share"] > 0 else "dot"},
            showlegend=False,
            hovertemplate=f"{book} code {code['code']}, step %{{x}}: %{{y:.3f}}<extra></extra>",
        )
        figure.add_trace(line, **place(number, COLUMNS))
    figure.update_xaxes(showgrid=False, zeroline=False, showticklabels=False)
    figure.update_yaxes(showgrid=False, zeroline=False, showticklabels=False)
    return figure.update_layout(margin={"l": 10, "r": 10, "t": 50, "b": 10})


def how_decoded(context: str) -> str:
    """What was given to the decoder."""
    if context == "alone":
        return "A code is decoded alone: the decoder is given one patch that holds it and nothing else."
    return "A code is decoded where it occurs: the mean of what the decoder makes of all source patches that have it."


def _title(code: dict[str, Any]) -> str:
    if "entropy" in code:
        return f"code {code['code']}<br>entropy {code['entropy']:.2f}"
    values = code["values"]
    reach = "not at hand" if values is None else f"{min(values):.2f} to {max(values):.2f}"
    return f"code {code['code']}, {_share(code['share'])}<br>{reach}"


def _share(share: float) -> str:
    if share == 0:
        return "never"
    return f"{100 * share:.1f} %" if share >= 0.001 else "< 0.1 %"


def _words(book: str, context: str) -> str:
    return (
        f"{how_decoded(context)} Across: the time steps of a patch; up: the signal, each code on a scale of its own. "
        f"Above each: the share of the source's patches whose {book} code it is, and its least and largest value in "
        "the data's units. Dotted: never used."
    )


def _finding(books: dict[str, list[dict[str, Any]]]) -> str:
    parts = [f"{len(codes)} {book} codes, {_use(codes)}" for book, codes in books.items()]
    return f"Every stretch of signal in the source becomes one of a few codes: {'; '.join(parts)}."


def _use(codes: list[dict[str, Any]]) -> str:
    never = sum(not code["share"] for code in codes)
    return f"{never} of them never used" if never else "all of them used"
