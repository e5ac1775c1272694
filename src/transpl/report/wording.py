"""Lists, counts, choices and data as all our pages write them; texts from files leave here as safe HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def listed(names: Iterable[object]) -> str:
    """As a, b and c."""
    *first, last = [str(name) for name in names] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def counted(n: int, noun: str) -> str:
    """As 1 pair, 2 pairs."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def choice(identity: str, label: str, options: Sequence[tuple[str, str]]) -> str:
    """A labelled drop-down list; options are (value, text)."""
    inner = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in options)
    return f'<label>{escape(label)} <select id="{identity}">{inner}</select></label>'


def as_script_data(identity: str, value: Any) -> str:
    """JSON that scripts of the page read; nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identity}">{text}</script>'
