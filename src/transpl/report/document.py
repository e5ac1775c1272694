"""The frame of a page that opens offline: everything it needs is in the file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from plotly.offline import get_plotlyjs


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
