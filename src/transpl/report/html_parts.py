"""The frame of our HTML pages, which open offline, and the pieces they are made of; texts are escaped here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from transpl._utils.html import PAGE_STYLE

_ASSETS = Path(__file__).with_name("assets")


def document(title: str, style: str, parts: Iterable[str]) -> str:
    """A whole HTML page of parts that are HTML already, with plotly in it."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>TransPL: {escape(title)}</title>",
            f"<style>{style}</style><script>{get_plotlyjs()}</script></head><body>",
            *parts,
            "</body></html>",
        ]
    )


def style_sheet(name: str) -> str:
    """The rules of all our pages, then those of controls and tables, then those of one page in assets/."""
    return "\n".join([PAGE_STYLE, *((_ASSETS / file).read_text(encoding="utf-8") for file in ("shared.css", name))])


def script(name: str) -> str:
    """A script in assets/, as an element."""
    return f"<script>{(_ASSETS / name).read_text(encoding='utf-8')}</script>"


def script_data(identity: str, value: Any) -> str:
    """JSON for the scripts of a page; nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identity}">{text}</script>'


def chart(identity: str, figure: go.Figure, words: str) -> list[str]:
    """A figure that the page's script draws in the reader's colours; `words` say what it shows."""
    return [
        f'<figure><div class="chart" id="{identity}" style="min-height:{figure.layout.height}px" role="img" '
        f'aria-label="{escape(words)}"></div>'
        f"<figcaption>{escape(words)}</figcaption></figure>",
        script_data(f"{identity}-data", json.loads(figure.to_json())),
    ]


def choice(identity: str, label: str, options: Sequence[tuple[str, str]]) -> str:
    """A labelled drop-down list; options are (value, text)."""
    inner = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in options)
    return f'<label>{escape(label)} <select id="{identity}">{inner}</select></label>'


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    """A list of names and what they stand for."""
    inner = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f'<dl class="facts">{inner}</dl>'


def closed_box(title: str, points: Iterable[str]) -> list[str]:
    """A section with a list that readers open if they want to know more."""
    items = "".join(f"<li>{point}</li>" for point in points)
    return [f"<section><details><summary>{title}</summary><ul>{items}</ul></details></section>"]


def bar(part: float) -> str:
    """A bar that fills this part of its cell, for the eye only: the number stands beside it."""
    return f'<span class="bar" aria-hidden="true" style="--part:{min(max(part, 0.0), 1.0):.4f}"></span>'


def code_chip(code: int) -> str:
    """The number of a code on its colour."""
    return f'<span class="chip code-{code % 8}">{code}</span>'


def percent(share: float, decimals: int = 0) -> str:
    """As 12 %; a share above 0 that would be rounded to 0 is shown as < 1 %."""
    least = 10**-decimals
    if 0 < 100 * share < least / 2:
        return f"<\N{NO-BREAK SPACE}{least:.{decimals}f}\N{NO-BREAK SPACE}%"
    return f"{100 * share:.{decimals}f}\N{NO-BREAK SPACE}%"
