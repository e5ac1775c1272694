"""Numbers, names and choices as every part of the page writes them; texts from files leave here as safe HTML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transpl.benchmark.leaderboard_data import Metric, Spread

_LONG = 100.0  # seconds from which decimals say nothing


def shown(value: float, metric: Metric) -> str:
    """A number with as many decimals as make sense."""
    decimals = 0 if metric.unit == "s" and value >= _LONG else metric.decimals
    return f"{value:.{decimals}f}"


def spread_in_words(spread: Spread, metric: Metric) -> str:
    """As 69.0 ± 1.2."""
    mean = shown(spread.mean, metric)
    return mean if spread.std is None else f"{mean} ± {shown(spread.std, metric)}"


def settings_in_words(changes: Mapping[str, str]) -> str:
    """As width=16, codes=false."""
    return ", ".join(f"{name}={value}" for name, value in changes.items())


def pair_name(pair: tuple[int, int]) -> str:
    """As 2-11: from domain 2 to domain 11."""
    return f"{pair[0]}-{pair[1]}"


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
