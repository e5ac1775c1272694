"""What shifted: channels ranked by how far they moved, and which patterns of a chosen channel changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from html import escape
from typing import Any

import pandas as pd

from transpl.markov import ShiftReport, Undone
from transpl.report.adaptation.html import bar, code_chip, percent
from transpl.report.adaptation.saved import Channel, Saved
from transpl.report.wording import as_script_data, choice, counted

_AT_ONCE = 20  # channels that are shown without being asked for
_MOVED = 5  # transitions per channel in the table


def shifted_section(saved: Saved) -> list[str]:
    """The ranking, and the transitions of each channel if the folder has them."""
    parts = ["<section><h2>What shifted</h2>"]
    if saved.of_council:
        parts += [*_undone(saved), "<h3>Which channels changed</h3>", _CHANGED]
    else:
        parts.append(_TRUSTED)
    parts += _ranking(saved.furthest_first, trusted=not saved.of_council)
    parts += _patterns(saved.shift) if saved.shift is not None else [_NO_PATTERNS]
    return [*parts, "</section>"]


_TRUSTED = (
    "<p>The more the patterns of a channel differ between source and target, the less it counts in the vote for a "
    "label. Full trust, 100 %, is for a channel that did not change.</p>"
)
_CHANGED = (
    "<p>How much the patterns of each channel differ between the source and the target as it was recorded, that is, "
    "before anything was undone.</p>"
)
_NOTHING_UNDONE = "<p>Nothing was undone: the target's signals were labelled as they were recorded.</p>"
_NO_PATTERNS = (
    '<p class="notes">Which patterns changed is not shown: this folder has no shift.json. transpl adapt and demo write '
    "it for a single target.</p>"
)


def _undone(saved: Saved) -> list[str]:
    """What was taken off the signals, and how clear it was where that was measured."""
    if not saved.undone:
        return [_NOTHING_UNDONE]
    known = {} if saved.shift is None else {one.sentence: one for one in saved.shift.undone}
    items = [f"<li>{escape(said)}{_how_clear(known.get(said))}</li>" for said in saved.undone]
    return ["<p>This was taken off the target's signals before they were labelled:</p>", "<ul>", *items, "</ul>"]


def _how_clear(one: Undone | None) -> str:
    if one is None or one.margin is None or one.threshold is None:
        return ""
    return (
        f' <span class="notes">The target fits the source better by {one.margin:.1f} per window with it, where '
        f"{one.threshold:.1f} was demanded (natural logarithm of the likelihood).</span>"
    )


def _ranking(channels: list[Channel], *, trusted: bool) -> list[str]:
    farthest = max(channel.distance for channel in channels) or 1.0
    rows = [_ranked(rank, channel, farthest, trusted) for rank, channel in enumerate(channels, start=1)]
    first, others = rows[:_AT_ONCE], rows[_AT_ONCE:]
    if not others:
        return [_ranking_table(first, trusted)]
    more = (
        f"<details><summary>{counted(len(others), 'more channel')}</summary>{_ranking_table(others, trusted)}</details>"
    )
    return [_ranking_table(first, trusted), more]


def _ranking_table(rows: list[str], trusted: bool) -> str:
    trust = "<th>trust</th>" if trusted else ""
    head = f'<tr><th>channel</th><th class="text">distance (0 = unchanged)</th>{trust}</tr>'
    return f'<table class="ranking"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _ranked(rank: int, channel: Channel, farthest: float, trusted: bool) -> str:
    trust = f"<td>{escape(percent(channel.weight))}</td>" if trusted else ""
    return (
        f'<tr><th scope="row">{rank}. {escape(channel.name)}</th>'
        f'<td class="barred">{bar(channel.distance / farthest)} {channel.distance:.3f}</td>{trust}</tr>'
    )


def _patterns(shift: ShiftReport) -> list[str]:
    order = shift.channels()["channel"].tolist()
    channels = choice("shift-channel", "channel", [(str(shift.channel_names.index(name)), name) for name in order])
    return [
        "<h3>Which patterns changed</h3>",
        "<p>Every short piece of signal is one of a few shapes, numbered codes "
        '(<a href="#codes">drawn below</a>). A matrix tells which code follows which: its row is the code that was, '
        "its column the one that comes next. Point at a cell for its numbers.</p>",
        f'<p class="controls" hidden>{channels}</p>',
        '<figure><div class="matrices">',
        *(f'<div class="matrix" id="matrix-{side}" role="img"></div>' for side in ("source", "target", "difference")),
        '</div><figcaption id="matrix-words"></figcaption></figure>',
        "<noscript><p>The matrices need scripts. The table has what changed most.</p></noscript>",
        *_most_moved(shift),
        as_script_data("shift-data", _counts(shift)),
    ]


def _counts(shift: ShiftReport) -> dict[str, object]:
    return {
        "channels": list(shift.channel_names),
        "source": shift.source_counts.tolist(),
        "target": shift.target_counts.tolist(),
    }


def _most_moved(shift: ShiftReport) -> list[str]:
    bodies = [
        f'<tbody data-channel="{shift.channel_names.index(str(name))}">{_moved_rows(str(name), table)}</tbody>'
        for name, table in shift.transitions(_MOVED).groupby("channel", sort=False)
    ]
    head = "<tr><th>what changed most</th><th>source</th><th>target</th></tr>"
    return [f'<table id="moved"><thead>{head}</thead>', *bodies, "</table>"]


def _moved_rows(name: str, table: pd.DataFrame) -> str:
    return "".join(_moved_row(name, row) for row in table.to_dict("records"))


def _moved_row(name: str, row: Mapping[Hashable, Any]) -> str:
    before, after = row["from_code"], row["to_code"]
    often = f"{'again ' if before == after else ''}{'more' if row['difference'] > 0 else 'less'} often"
    return (
        f'<tr><td class="text"><span class="of-channel">{escape(name)}: </span>after code {code_chip(before)} '
        f"comes code {code_chip(after)} {often}</td>"
        f"<td>{escape(percent(row['source']))}</td><td>{escape(percent(row['target']))}</td></tr>"
    )
