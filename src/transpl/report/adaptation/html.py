"""Pieces of HTML that several parts of the page are made of."""

from __future__ import annotations

import json
from html import escape

import plotly.graph_objects as go

from transpl.report.wording import as_script_data


def chart(identity: str, figure: go.Figure, words: str) -> list[str]:
    """A figure that the page's script draws in the reader's colours; `words` say what is in it."""
    return [
        f'<figure><div class="chart" id="{identity}" style="min-height:{figure.layout.height}px" role="img" '
        f'aria-label="{escape(words)}"></div>'
        f"<figcaption>{escape(words)}</figcaption></figure>",
        as_script_data(f"{identity}-data", json.loads(figure.to_json())),
    ]


def bar(part: float) -> str:
    """A bar of the given part of its room, for eyes only: the number stands beside it."""
    return f'<span class="bar" aria-hidden="true" style="--part:{min(max(part, 0.0), 1.0):.4f}"></span>'


def code_chip(code: int) -> str:
    """The number of a code on its colour."""
    return f'<span class="chip code-{code % 8}">{code}</span>'


def percent(share: float, decimals: int = 0) -> str:
    """As 12 %; what is more than nothing but rounds to it is told as such."""
    least = 10**-decimals
    if 0 < 100 * share < least / 2:
        return f"<\N{NO-BREAK SPACE}{least:.{decimals}f}\N{NO-BREAK SPACE}%"
    return f"{100 * share:.{decimals}f}\N{NO-BREAK SPACE}%"
