"""A card as one HTML page with example windows; pictures are inline SVG, so it is small and opens offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from transpl._utils.files import write_text
from transpl._utils.html import PAGE_STYLE
from transpl.datasets.cards import SPLITS
from transpl.datasets.catalogue import card_facts, class_mark, class_totals, domain_title, summary
from transpl.datasets.dataset import TRAIN, Dataset
from transpl.windows import evenly_spaced

_MAX_DOMAINS, _MAX_CHANNELS, _MAX_CLASSES, _MAX_POINTS = 6, 9, 12, 100
_WIDTH, _LANE = 135, 22  # pixels of one channel of one example
_BAR_WIDTH = 640
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
    """Write the page; `dataset` provides the example windows."""
    write_text(path, render(card, dataset))


def render(card: Mapping[str, Any], dataset: Dataset) -> str:
    """Return the page as text."""
    title = escape(f"Data set {card['name']}")
    notes = "".join(f"<li>{escape(str(note))}</li>" for note in card["notes"])
    facts = _table(((escape(name), [escape(value)]) for name, value in card_facts(card)), css="facts")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>TransPL: {title}</title>",
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{title}</h1>",
            f'<p class="lead">{escape(summary(card))}.</p>',
            _examples(card, dataset),
            _proportions(card),
            _counts(card),
            _section("Where it is from", "", f"{facts}<ul>{notes}</ul>"),
            "</body></html>",
        ]
    )


def _section(title: str, words: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{f'<p>{words}</p>' if words else ''}{body}</section>"


def _table(rows: Iterable[tuple[str, Sequence[str]]], head: Sequence[str] = (), css: str = "") -> str:
    """Build a table; each row is its title and its cells, all of them HTML."""
    top = f"<thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>" if head else ""
    body = "".join(f"<tr><th>{title}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for title, cells in rows)
    return f'<figure><table class="{css}">{top}<tbody>{body}</tbody></table></figure>'


def _examples(card: Mapping[str, Any], dataset: Dataset) -> str:
    domains = [dataset.domains[i] for i in evenly_spaced(len(dataset.domains), _MAX_DOMAINS)]
    channels = dataset.channel_names[:_MAX_CHANNELS]
    sample = dataset.X[:: max(1, len(dataset) // 2000), : len(channels)]
    limits = np.percentile(sample, [1, 99], axis=(0, 2)).T  # (channels, 2)
    limits[:, 1] = np.where(limits[:, 1] > limits[:, 0], limits[:, 1], limits[:, 0] + 1)
    left_out = [
        f" {most} of {there} {what} are shown."
        for there, most, what in (
            (len(dataset.domains), _MAX_DOMAINS, "domains"),
            (len(dataset.class_names), _MAX_CLASSES, "classes"),
            (len(dataset.channel_names), _MAX_CHANNELS, "channels"),
        )
        if there > most
    ]
    words = (
        "One window per class and domain, from the middle of its train part; channels from top to bottom. A channel "
        f"has the same scale in all pictures, from its 1st to its 99th percentile.{''.join(left_out)}"
    )
    key = "".join(
        f'<span class="line" style="background:{class_mark(c)[1]}"></span> {escape(name)}&emsp;'
        for c, name in enumerate(channels)
    )
    rows = [
        (escape(name), [_example(dataset, d, k, limits) for d in domains])
        for k, name in enumerate(dataset.class_names[:_MAX_CLASSES])
    ]
    head = ["", *(escape(domain_title(card, d)) for d in domains)]
    return _section("What windows look like", words, f"<p>{key}</p>{_table(rows, head, 'examples')}")


def _example(dataset: Dataset, domain: int, k: int, limits: np.ndarray) -> str:
    """Draw the middle window of a class in the train part of a domain, or in its test part if train has none."""
    rows = np.flatnonzero((dataset.domain_ids == domain) & (dataset.y == k))
    train = rows[dataset.split[rows] == TRAIN]
    rows = train if len(train) else rows
    if not len(rows):
        return '<span class="soft">none</span>'
    window = dataset.X[rows[len(rows) // 2]]
    length = window.shape[1]
    steps = evenly_spaced(length, _MAX_POINTS)
    x = steps * (_WIDTH / max(1, length - 1))
    lines = ""
    for c, (low, high) in enumerate(limits):
        y = c * _LANE + 1 + (_LANE - 2) * (1 - (np.clip(window[c, steps], low, high) - low) / (high - low))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        lines += f'<polyline points="{points}" stroke="{class_mark(c)[1]}"/>'
    height = _LANE * len(limits)
    label = escape(f"{dataset.class_names[k]}, domain {domain}")
    return (
        f'<svg width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{label}"><title>{label}</title>{lines}</svg>'
    )


def _proportions(card: Mapping[str, Any]) -> str:
    key = ""
    for k, name in enumerate(card["classes"]):
        letter, colour, ink = class_mark(k)
        key += f'<span class="key" style="background:{colour};color:{ink}">{letter}</span> {escape(name)}&emsp;'
    rows = [(escape(domain_title(card, d)), [_bar(card["classes"], class_totals(card, d))]) for d in card["counts"]]
    words = "Share of each class in a domain, train and test together. Differences here are a shift of their own."
    return _section("Class proportions", words, f"<p>{key}</p>{_table(rows)}")


def _bar(classes: Sequence[str], counts: Sequence[int]) -> str:
    total, x, parts = max(1, sum(counts)), 0.0, ""
    for k, (name, count) in enumerate(zip(classes, counts, strict=True)):
        letter, colour, ink = class_mark(k)
        width = _BAR_WIDTH * count / total
        label = escape(f"{name}: {count:,} windows, {count / total:.0%}")
        parts += f'<rect x="{x:.1f}" width="{width:.1f}" height="18" fill="{colour}"><title>{label}</title></rect>'
        if width > 14:
            parts += f'<text x="{x + width / 2:.1f}" y="13" fill="{ink}">{letter}</text>'
        x += width
    return f'<svg width="{_BAR_WIDTH}" height="18" role="img">{parts}</svg>'


def _counts(card: Mapping[str, Any]) -> str:
    rows = []
    for domain, parts in card["counts"].items():
        numbers = [[parts[part][name] for part in SPLITS] for name in card["classes"]]
        numbers.append([sum(parts[part].values()) for part in SPLITS])
        rows.append((escape(domain_title(card, domain)), [f"{train:,} + {test:,}" for train, test in numbers]))
    return _section("Windows, train + test", "", _table(rows, ["domain", *map(escape, card["classes"]), "all"]))
