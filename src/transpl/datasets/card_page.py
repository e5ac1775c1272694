"""A card as one HTML page with example windows; pictures are inline SVG, so it is small and opens anywhere offline."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.files import write_text
from transpl._utils.html import PAGE_STYLE
from transpl.datasets.base import Dataset
from transpl.datasets.card_table import class_totals, colour, facts, ink, letter, size
from transpl.datasets.cards import SPLITS

_MOST_DOMAINS, _MOST_CHANNELS, _MOST_CLASSES, _MOST_POINTS = 6, 9, 12, 100
_WIDTH, _LANE = 135, 22  # of one channel of one example, in pixels
_STYLE = (
    PAGE_STYLE
    + """
body { max-width: 70rem; }
p.lead, footer, .soft { color: var(--soft); }
table { border-collapse: collapse; } th, td { padding: .15rem .6rem; text-align: right; vertical-align: middle; }
th { font-weight: 600; } th:first-child, .facts td { text-align: left; }
.facts th { text-align: left; vertical-align: top; } .examples thead th { text-align: center; }
tbody tr { border-top: 1px solid var(--line); } .facts td { overflow-wrap: anywhere; }
.examples td { background: var(--card); padding: .3rem; } svg { display: block; } polyline { fill: none; }
text { font-size: 11px; text-anchor: middle; }
.key { border-radius: .2rem; display: inline-block; font-weight: 600; padding: 0 .4rem; }
.line { display: inline-block; height: .25rem; vertical-align: middle; width: 1.2rem; }
"""
)


def write_card_page(card: Mapping[str, Any], dataset: Dataset, path: Path) -> None:
    """Write the page; `dataset` gives the example windows."""
    write_text(path, render(card, dataset))


def render(card: Mapping[str, Any], dataset: Dataset) -> str:
    """Return the page as text."""
    title = f"Data set {card['name']}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>TransPL: {escape(title)}</title>",
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="lead">{escape(_lead(card))}</p>',
            _examples(card, dataset),
            _proportions(card),
            _counts(card),
            _provenance(card),
            "</body></html>",
        ]
    )


def _lead(card: Mapping[str, Any]) -> str:
    return f"{card['title']}. {size(card)}." if card["title"] else f"{size(card)}."


def _examples(card: Mapping[str, Any], dataset: Dataset) -> str:
    domains = _spread(list(dataset.domains), _MOST_DOMAINS)
    channels = range(min(len(dataset.channel_names), _MOST_CHANNELS))
    limits = [_limits(dataset, c) for c in channels]
    lines = "".join(
        f'<span class="line" style="background:{colour(c)}"></span> {escape(dataset.channel_names[c])}&emsp;'
        for c in channels
    )
    head = "".join(f"<th>{escape(_domain_title(card, domain))}</th>" for domain in domains)
    rows = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(_example(dataset, d, k, limits) for d in domains)}</tr>"
        for k, name in enumerate(dataset.class_names[:_MOST_CLASSES])
    )
    words = (
        "One window per class and domain, from the middle of its train part; channels from top to bottom. A channel "
        f"has the same scale in all pictures, from its 1st to its 99th percentile.{_left_out(dataset)}"
    )
    table = f'<table class="examples"><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return _section("What windows look like", words, f"<p>{lines}</p><figure>{table}</figure>")


def _left_out(dataset: Dataset) -> str:
    shown = [
        (len(dataset.domains), _MOST_DOMAINS, "domains"),
        (len(dataset.class_names), _MOST_CLASSES, "classes"),
        (len(dataset.channel_names), _MOST_CHANNELS, "channels"),
    ]
    return "".join(f" {most} of {there} {what} are shown." for there, most, what in shown if there > most)


def _spread(items: list[int], most: int) -> list[int]:
    """Choose at most so many, from the first to the last."""
    if len(items) <= most:
        return items
    return [items[i] for i in np.linspace(0, len(items) - 1, most).round().astype(int)]


def _limits(dataset: Dataset, channel: int) -> tuple[float, float]:
    sample = dataset.X[:: max(1, len(dataset) // 2000), channel]
    low, high = np.percentile(sample, [1, 99])
    return float(low), float(high if high > low else low + 1)


def _example(dataset: Dataset, domain: int, k: int, limits: list[tuple[float, float]]) -> str:
    rows = np.flatnonzero((dataset.domain_ids == domain) & (dataset.y == k))
    train = rows[dataset.split[rows] == SPLITS["train"]]
    rows = train if len(train) else rows
    if not len(rows):
        return '<td class="soft">none</td>'
    window = dataset.X[rows[len(rows) // 2]]
    lines = "".join(
        f'<polyline points="{_points(window[c], *limit, c * _LANE)}" stroke="{colour(c)}"/>'
        for c, limit in enumerate(limits)
    )
    height = _LANE * len(limits)
    label = escape(f"{dataset.class_names[k]}, domain {domain}")
    return (
        f'<td><svg width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{label}"><title>{label}</title>{lines}</svg></td>'
    )


def _points(values: NDArray[np.float32], low: float, high: float, top: int) -> str:
    at = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_POINTS)).round().astype(int))
    x = at * (_WIDTH / max(1, len(values) - 1))
    y = top + 1 + (_LANE - 2) * (1 - (np.clip(values[at], low, high) - low) / (high - low))
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _domain_title(card: Mapping[str, Any], domain: int) -> str:
    return f"{domain} {card['domain_names'].get(str(domain), '')}".strip()


def _key(k: int) -> str:
    return f'<span class="key" style="background:{colour(k)};color:{ink(k)}">{letter(k)}</span>'


def _proportions(card: Mapping[str, Any]) -> str:
    keys = "".join(f"{_key(k)} {escape(name)}&emsp;" for k, name in enumerate(card["classes"]))
    rows = "".join(
        f"<tr><th>{escape(_domain_title(card, int(domain)))}</th><td>{_bar(class_totals(parts, card['classes']), card)}"
        "</td></tr>"
        for domain, parts in card["counts"].items()
    )
    words = "Share of each class in a domain, train and test together. Differences here are a shift of their own."
    return _section("Class proportions", words, f"<p>{keys}</p><figure><table>{rows}</table></figure>")


def _bar(counts: list[int], card: Mapping[str, Any], width: int = 640) -> str:
    total, x, parts = max(1, sum(counts)), 0.0, []
    for k, count in enumerate(counts):
        w = width * count / total
        label = escape(f"{card['classes'][k]}: {count:,} windows, {count / total:.0%}")
        parts.append(f'<rect x="{x:.1f}" width="{w:.1f}" height="18" fill="{colour(k)}"><title>{label}</title></rect>')
        if w > 14:
            parts.append(f'<text x="{x + w / 2:.1f}" y="13" fill="{ink(k)}">{letter(k)}</text>')
        x += w
    return f'<svg width="{width}" height="18" role="img">{"".join(parts)}</svg>'


def _counts(card: Mapping[str, Any]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in card["classes"])
    rows = "".join(_count_row(card, domain, parts) for domain, parts in card["counts"].items())
    table = f"<table><thead><tr><th>domain</th>{head}<th>all</th></tr></thead><tbody>{rows}</tbody></table>"
    return _section("Windows, train + test", "", f"<figure>{table}</figure>")


def _count_row(card: Mapping[str, Any], domain: str, parts: Mapping[str, Mapping[str, int]]) -> str:
    cells = [f"{parts['train'][name]:,} + {parts['test'][name]:,}" for name in card["classes"]]
    train, test = (sum(parts[part].values()) for part in SPLITS)
    title = escape(_domain_title(card, int(domain)))
    return f"<tr><th>{title}</th>{''.join(f'<td>{cell}</td>' for cell in [*cells, f'{train:,} + {test:,}'])}</tr>"


def _provenance(card: Mapping[str, Any]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts(card))
    notes = "".join(f"<li>{escape(str(note))}</li>" for note in card["notes"])
    return _section("Where it is from", "", f'<table class="facts">{rows}</table><ul>{notes}</ul>')


def _section(title: str, words: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{f'<p>{escape(words)}</p>' if words else ''}{body}</section>"
