"""The frame of a page that opens offline: everything it needs is in the file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from plotly.offline import get_plotlyjs

from transpl._utils.html import PAGE_STYLE

_SHARED = Path(__file__).with_name("shared.css")


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


def style_of(own: Path) -> str:
    """The rules of all our pages, then those of controls and tables, then a page's own."""
    return "\n".join([PAGE_STYLE, *(path.read_text(encoding="utf-8") for path in (_SHARED, own))])
