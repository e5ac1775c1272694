"""What shifted: what was undone, how far each channel moved, which patterns changed, and the codes they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.wording import counted, listed
from transpl.markov import ShiftReport, Undone
from transpl.report import plots
from transpl.report.adaptation.saved_job import ChannelShift, SavedJob
from transpl.report.html_parts import bar, chart, choice, code_chip, percent, script_data

_AT_ONCE = 20  # channels in the first table; the others are folded away
_MOVED = 5  # transitions per channel in the table
_DRAWN = 64  # codes, the most used ones
_WIDTH, _HEIGHT, _MARGIN = 100.0, 60.0, 6.0  # of the drawing of a code


def shift_section(saved: SavedJob) -> list[str]:
    """What was undone, and the channels by distance."""
    parts = ['<section id="shift"><h2>What shifted</h2>']
    if saved.is_council:
        parts += [
            *_undone(saved),
            "<h3>Which channels changed</h3>",
            "<p>How much the patterns of each channel differ between the source and the target as it was recorded, "
            "before anything was undone.</p>",
        ]
    else:
        parts.append(
            "<p>The more the patterns of a channel differ between source and target, the less it counts in the vote "
            "for a label. A channel that did not change has full trust, 100 %.</p>"
        )
    parts += _channel_ranking(saved.channels_by_distance, with_trust=not saved.is_council)
    return [*parts, "</section>"]


def _undone(saved: SavedJob) -> list[str]:
    """What was undone in the signals, and how clear it was if that was measured."""
    if not saved.undone:
        return ["<p>Nothing was undone: the target's signals were labelled as they were recorded.</p>"]
    known = {} if saved.shift is None else {one.sentence: one for one in saved.shift.undone}
    items = [f"<li>{escape(sentence)}{_how_clear(known.get(sentence))}</li>" for sentence in saved.undone]
    return ["<p>This was undone in the target's signals before they were labelled:</p>", "<ul>", *items, "</ul>"]


def _how_clear(one: Undone | None) -> str:
    if one is None or one.margin is None or one.threshold is None:
        return ""
    return (
        f' <span class="notes">This makes the target fit the source better by {one.margin:.1f} per window; at least '
        f"{one.threshold:.1f} is required (natural logarithm of the likelihood).</span>"
    )


def _channel_ranking(channels: list[ChannelShift], *, with_trust: bool) -> list[str]:
    farthest = max(channel.distance for channel in channels) or 1.0
    rows = [
        f'<tr><th scope="row">{rank}. {escape(channel.name)}</th>'
        + (
            f'<td class="barred">{bar(channel.distance / farthest)} {channel.distance:.3f}</td>'
            if channel.is_read
            else '<td class="text unread">not read</td>'
        )
        + (f"<td>{escape(percent(channel.weight if channel.is_read else 0.0))}</td></tr>" if with_trust else "</tr>")
        for rank, channel in enumerate(channels, start=1)
    ]
    trust = "<th>trust</th>" if with_trust else ""
    head = f'<thead><tr><th>channel</th><th class="text">distance (0 = unchanged)</th>{trust}</tr></thead>'
    first, *others = (
        f'<table class="ranking">{head}<tbody>{"".join(part)}</tbody></table>'
        for part in (rows[:_AT_ONCE], rows[_AT_ONCE:])
        if part
    )
    more = counted(len(rows) - _AT_ONCE, "more channel")
    parts = [first, *(f"<details><summary>{more}</summary>{table}</details>" for table in others)]
    if all(channel.is_read for channel in channels):
        return parts
    unread = listed(channel.name for channel in channels if not channel.is_read)
    return [
        *parts,
        f"<p>Not read: {escape(unread)}. Either all pieces of such a signal look alike to the codes, or its target has "
        "no pattern of the source. Whether it changed cannot be said here, and it has no vote by its codes.</p>",
    ]


def _patterns(shift: ShiftReport | None) -> list[str]:
    if shift is None:
        return [
            '<p class="notes">Which patterns changed is not shown: this folder has no shift.json. transpl adapt and '
            "demo write it for a single target.</p>"
        ]
    names = shift.channel_names
    order = shift.channels()["channel"].tolist()
    channels = choice("shift-channel", "channel", [(str(names.index(name)), name) for name in order])
    counts = {"source": shift.source_counts.tolist(), "target": shift.target_counts.tolist()}
    bodies = [
        f'<tbody data-channel="{names.index(str(name))}">'
        + "".join(_transition_row(str(name), row) for row in table.to_dict("records"))
        + "</tbody>"
        for name, table in shift.transitions(_MOVED).groupby("channel", sort=False)
    ]
    return [
        "<h3>Which patterns changed</h3>",
        "<p>A matrix shows which code follows which in a channel: its row is the first code, its column the next one. "
        "Point at a cell to see its numbers.</p>",
        f'<p class="controls" hidden>{channels}</p>',
        '<figure><div class="matrices">',
        *(f'<div class="matrix" id="matrix-{side}" role="img"></div>' for side in ("source", "target", "difference")),
        '</div><figcaption id="matrix-words"></figcaption></figure>',
        "<noscript><p>The matrices need scripts. The table shows what changed most.</p></noscript>",
        '<table id="moved"><thead><tr><th>what changed most</th><th>source</th><th>target</th></tr></thead>',
        *bodies,
        "</table>",
        script_data("shift-data", {"channels": list(names), **counts}),
    ]


def _transition_row(channel: str, row: Mapping[Any, Any]) -> str:
    before, after = row["from_code"], row["to_code"]
    often = f"{'again ' if before == after else ''}{'more' if row['difference'] > 0 else 'less'} often"
    return (
        f'<tr><td class="text"><span class="of-channel">{escape(channel)}: </span>after code {code_chip(before)} '
        f"comes code {code_chip(after)} {often}</td>"
        f"<td>{escape(percent(row['source']))}</td><td>{escape(percent(row['target']))}</td></tr>"
    )


def codes_section(saved: SavedJob) -> list[str]:
    """The shapes of the codes and how often they are used; for a network also its loss curves."""
    summary = saved.summary
    codes = _codes(summary["codebook_usage"]["coarse"]["counts"], summary.get("decoded_codes"))
    if saved.is_council:
        return ['<section id="codes"><h2>The codes</h2>', *codes, *_patterns(saved.shift), "</section>"]
    history, phases = summary["history"], {"source": "on the source", "adapt": "on the target"}
    rounds = listed(f"{counted(len(found), 'round')} {phases.get(phase, phase)}" for phase, found in history.items())
    words = (
        f"{rounds}; {sum(summary['seconds'].values()):.0f} seconds in all. Each phase keeps the network of the round "
        "that was best on held-out windows."
    )
    curves = plots.loss_curves(history, {phase: f"training {where}" for phase, where in phases.items()})
    return [
        '<section id="codes"><h2>What the network learned</h2>',
        *codes,
        *_patterns(saved.shift),
        "<h3>How training went</h3>",
        *chart("losses", curves, words),
        "</section>",
    ]


def _codes(counts: list[int], shapes: list[list[float]] | None) -> list[str]:
    used = sum(count > 0 for count in counts)
    words = (
        f"Every short piece of signal was sorted by its shape into one of {counted(len(counts), 'code')}; {used} are "
        "in use. Each is drawn as the shape it stands for, all on one scale; the percentage is its share of the "
        "source's pieces."
    )
    order = np.argsort(-np.asarray(counts), kind="stable")[:_DRAWN]
    if len(order) < len(counts):
        words += f" The {_DRAWN} most used are shown."
    drawings = [""] * len(counts) if shapes is None else _drawings(np.asarray(shapes, dtype=float))
    cards = []
    for code in sorted(order.tolist()):
        share = counts[code] / max(sum(counts), 1)
        usage = escape(percent(share)) if share else "never used"
        cards.append(
            f'<li><span class="code-name">code {code_chip(code)}</span>{drawings[code]}{bar(share)}'
            f"<span>{usage}</span></li>"
        )
    return [f"<p>{words}</p>", '<ul class="codes">', *cards, "</ul>"]


def _drawings(shapes: NDArray[np.float64]) -> list[str]:
    """One small picture per code, on one scale for all, with a line at 0 if that is in range."""
    low, high = float(shapes.min()), float(shapes.max())
    span = (high - low) or 1.0
    y = _HEIGHT - _MARGIN - (shapes - low) / span * (_HEIGHT - 2 * _MARGIN)
    x = np.linspace(0, _WIDTH, shapes.shape[1]) if shapes.shape[1] > 1 else np.array([_WIDTH / 2])
    zero = _HEIGHT - _MARGIN + low / span * (_HEIGHT - 2 * _MARGIN)
    axis = f'<line x1="0" x2="{_WIDTH:.0f}" y1="{zero:.1f}" y2="{zero:.1f}"/>' if low <= 0 <= high else ""
    return [
        f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none" aria-hidden="true">{axis}'
        f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, row, strict=True))}"/></svg>'
        for row in y
    ]
