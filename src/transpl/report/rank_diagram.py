"""The critical-difference diagram: rows on the axis of average ranks, bars beside rows that tests cannot tell apart.

It is Demšar's diagram turned by a right angle, so that long names wrap and it fits a phone.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, cast

from transpl._utils.wording import counted, listed
from transpl.report.html_parts import choice

if TYPE_CHECKING:
    from transpl.benchmark import Comparison, Leaderboard, Metric, Statistics

_MOST_TICKS = 6
_NOTHING_SHARED = "no two rows have finished runs of the same pair and seeds"


def rank_section(board: Leaderboard) -> list[str]:
    """One diagram per data set and metric; scripts show the chosen one."""
    title = "<section><h2>Which differences are more than chance</h2>"
    if not board.comparisons:
        return [title, f"<p>Nothing to compare yet: {_NOTHING_SHARED}.</p></section>"]
    sets = list(dict.fromkeys(each.dataset for each in board.comparisons))
    compared = {each.metric for each in board.comparisons}
    metrics = {metric.name: metric for metric in board.metrics if metric.name in compared}
    choose_set = choice("rank-set", "data set", [(name, name) for name in sets])
    choose_metric = choice("rank-metric", "ranked by", [(name, metric.label) for name, metric in metrics.items()])
    return [
        title,
        f'<p class="controls" hidden>{choose_set} {choose_metric}</p>',
        f'<p id="rank-none" hidden>Nothing to compare here: {_NOTHING_SHARED}.</p>',
        *(_figure(each, metrics[each.metric]) for each in board.comparisons),
        "</section>",
    ]


def _figure(comparison: Comparison, metric: Metric) -> str:
    return (
        f'<figure class="ranks" data-set="{escape(comparison.dataset)}" data-metric="{escape(comparison.metric)}">'
        f"<h3>{escape(comparison.dataset)}, by {escape(metric.label)}</h3>"
        f"<p>{escape(' '.join(_sentences(comparison, metric)))}</p>{diagram(comparison.statistics)}</figure>"
    )


def _sentences(comparison: Comparison, metric: Metric) -> list[str]:
    """What the diagram means."""
    found = comparison.statistics
    words = [
        f"Based on {_where(found)}. On each pair, rows are ranked by {metric.label}, averaged over the same seeds; 1 "
        "is best. A dot is the average of a row's ranks."
    ]
    words += verdict(found)
    if found.left_out:
        words.append(
            f"{counted(len(found.left_out), 'pair')} left out, because not every row has the same seeds finished there."
        )
    if comparison.unranked:
        why = "because they lack too many of these pairs or have other seeds there"
        words.append(f"Not ranked, {why}: {listed(comparison.unranked)}.")
    return words


def _where(found: Statistics) -> str:
    """How many pairs, and of which data sets."""
    sets = [dataset for dataset, _ in cast("tuple[tuple[str, object], ...]", found.pairs)]
    counts = {name: sets.count(name) for name in dict.fromkeys(sets)}
    total = counted(len(sets), "pair")
    if len(counts) == 1:
        return f"{total} of {sets[0]}"
    return f"{total} ({listed(f'{count} of {name}' for name, count in counts.items())})"


def verdict(found: Statistics) -> list[str]:
    """Which rows differ, in sentences that all come from one test."""
    if found.too_few_pairs:
        return [
            f"With so few pairs, no two of {len(found.methods)} rows can be told apart, however large the differences. "
            "Do not read anything into the order until there are more."
        ]
    different = sum(test.significant for test in found.tests)
    if not different:
        return ["No two rows can be told apart: every difference may be chance."]
    are = "is" if different == 1 else "are"
    return [
        f"{different} of {counted(len(found.tests), 'difference')} between two rows {are} more than chance.",
        "Rows along one bar cannot be told apart." if found.groups else "No bar: all neighbours differ.",
    ]


def diagram(found: Statistics) -> str:
    """A table whose last columns hold the bars, each as high as the rows it joins."""
    n_rows = len(found.methods)
    ticks = range(1, n_rows + 1, -(-n_rows // _MOST_TICKS))
    positions = {tick: _position(tick, n_rows) for tick in ticks}
    marks = "".join(f'<line x1="{x}" x2="{x}" y1="6" y2="18"/>' for x in positions.values())
    numbers = "".join(f'<text x="{x}" y="16">{tick}</text>' for tick, x in positions.items())
    lanes = _lanes(found)
    lines = []
    for i, (label, rank) in enumerate(zip(found.methods, found.average_ranks, strict=True)):
        dot = f'<circle cx="{_position(rank, n_rows)}" cy="12" r="6"/>'
        track = f'<svg aria-hidden="true"><line x1="0%" x2="100%" y1="12" y2="12"/>{marks}{dot}</svg>'
        bars = "".join(_bar_cell(lane, i) for lane in lanes)
        lines.append(
            f'<tr><th scope="row">{escape(label)}</th><td class="track">{track}</td>'
            f'<td class="rank">{rank:.2f}</td>{bars}</tr>'
        )
    axis = f'<svg role="img" aria-label="axis of ranks, 1 to {n_rows}">{numbers}</svg>'
    head = f'<th scope="col">method</th><th scope="col" class="track">{axis}</th><th scope="col">average</th>'
    head += f'<th scope="col" colspan="{len(lanes)}">bars</th>' if lanes else ""
    least = "none can be with so few pairs" if found.too_few_pairs else f"{found.critical_difference:.2f} or more"
    caption = (
        f"Differences of average ranks that are more than chance, at level {found.alpha:g} for all comparisons "
        f"together: {least} (Nemenyi's test, with ranks shuffled on every pair). If all rows were "
        f"alike, the first and the last would be as far apart as here with p = {found.p:.2g}."
    )
    return (
        f'<table class="rank-diagram"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
        f"<figcaption>{escape(caption)}</figcaption>"
    )


def _position(rank: float, n_rows: int) -> str:
    return f"{100 * (rank - 1) / (n_rows - 1):.1f}%"


def _lanes(found: Statistics) -> list[list[tuple[int, int]]]:
    """Bars as (first, last) row, in as few columns as keep them from touching."""
    lanes: list[list[tuple[int, int]]] = []
    for group in found.groups:
        first = found.methods.index(group[0])
        bar = first, first + len(group) - 1
        free = next((lane for lane in lanes if lane[-1][1] < first), None)
        if free is None:
            lanes.append([bar])
        else:
            free.append(bar)
    return lanes


def _bar_cell(lane: list[tuple[int, int]], row: int) -> str:
    bar = next((bar for bar in lane if bar[0] <= row <= bar[1]), None)
    if bar is None:
        return "<td></td>"
    return f'<td class="bar" rowspan="{bar[1] - bar[0] + 1}"></td>' if row == bar[0] else ""
