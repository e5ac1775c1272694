"""One self-contained HTML page about a benchmark folder; opens offline, in any browser.

Its parts: what was run and what is missing, the standings (a table that scripts only sort), the heat map of every pair
(drawn by the page's script), the ranks (`rank_diagram`), and every run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transpl._utils.files import write_text
from transpl._utils.wording import counted, listed
from transpl.report.html_parts import choice, document, script, script_data, style_sheet
from transpl.report.rank_diagram import rank_section

if TYPE_CHECKING:
    from transpl.benchmark import EntryStanding, Leaderboard, LeaderboardEntry, LeaderboardRun, Metric, Spread

_LONG = 100.0  # seconds from which decimals say nothing
_COLUMNS = ("accuracy", "macro_f1", "binary_f1", "label_accuracy", "calibration_error", "rank", "seconds")
_SUMMARY = ("accuracy", "macro_f1", "label_accuracy")  # scores in the line of a run
_HEAT_DECIMALS = 4
_ERROR_START, _ERROR_LENGTH, _TRACEBACK_END = 200, 1500, 1500  # characters shown; of a traceback the end says most
_NONE = '<td class="none">\N{EN DASH}</td>'
_STAR = '<span class="star" role="img" aria-label="best">★</span> '


def write_leaderboard(board: Leaderboard, path: str | os.PathLike[str]) -> Path:
    """Write the page of a leaderboard.

    Parameters
    ----------
    board : Leaderboard
        From `transpl.benchmark.read_leaderboard(folder)` or `leaderboard_of_lines`.
    path : path
        Where to write it: an .html file, or a folder for its `report.html`.

    Returns
    -------
    pathlib.Path
        The page.
    """
    page = Path(path) if Path(path).suffix == ".html" else Path(path) / "report.html"
    write_text(page, render_leaderboard(board, datetime.now(UTC).isoformat(timespec="seconds")))
    return page


def render_leaderboard(board: Leaderboard, written: str = "") -> str:
    """Return the page as text."""
    title = f"Leaderboard: {listed(board.datasets)}"
    versions = ", ".join(f"{name} {' and '.join(found)}" for name, found in board.versions.items())
    made_with = ". ".join(part for part in (f"Made with {versions}" if versions else "", written) if part)
    parts = [
        f"<h1>{escape(title)}</h1>",
        *_heading(board),
        *_standings_section(board),
        *_heat_map_section(board),
        *rank_section(board),
        *_run_section(board),
        f"<footer><p>{escape(made_with)}</p></footer>",
        script("leaderboard.js"),
    ]
    return document(title, style_sheet("leaderboard.css"), parts)


def _shown(value: float, metric: Metric) -> str:
    """A number with as many decimals as make sense."""
    return f"{value:.{0 if metric.unit == 's' and value >= _LONG else metric.decimals}f}"


def _spread(spread: Spread, metric: Metric) -> str:
    """As 69.0 ± 1.2."""
    mean = _shown(spread.mean, metric)
    return mean if spread.std is None else f"{mean} ± {_shown(spread.std, metric)}"


def _settings(changes: Mapping[str, str]) -> str:
    """As width=16, codes=false."""
    return ", ".join(f"{name}={value}" for name, value in changes.items())


def _pair(pair: tuple[int, int]) -> str:
    """As 2-11: from domain 2 to domain 11."""
    return f"{pair[0]}-{pair[1]}"


def _by_name(board: Leaderboard) -> dict[str, Metric]:
    return {metric.name: metric for metric in board.metrics}


def _numbered(names: Sequence[str]) -> list[tuple[str, str]]:
    """Options of a drop-down list whose values are positions."""
    return [(str(i), name) for i, name in enumerate(names)]


# What was run


def _heading(board: Leaderboard) -> list[str]:
    """State, what was run, and the settings that all rows have changed."""
    methods = list(dict.fromkeys(entry.method for entry in board.entries))
    sets = [f"{name} ({counted(len(board.pairs_of(name)), 'pair')})" for name in board.datasets]
    rows = "" if len(board.entries) == len(methods) else f" in {len(board.entries)} rows of different settings"
    seeds = f"{'seed' if len(board.seeds) == 1 else 'seeds'} {listed(board.seeds)}"
    what = f"{counted(len(methods), 'method')}{rows} ({listed(methods)}) on {listed(sets)}, {seeds}."
    parts = [_state(board), f'<p class="lead">{escape(what)}</p>']
    if board.shared_changes:
        changes = escape(_settings(board.shared_changes))
        parts.append(f"<p>Settings that differ from the paper's in every row: <b>{changes}</b>.</p>")
    several = [f"{name} {listed(found)}" for name, found in board.versions.items() if len(found) > 1]
    if several:
        parts.append(f'<p class="warning">The runs were made with several versions: {escape("; ".join(several))}.</p>')
    return parts


def _state(board: Leaderboard) -> str:
    finished, failed, others = (len(board.in_state(state)) for state in ("finished", "failed", "not run"))
    if finished == len(board.runs):
        which = "The only planned run is" if finished == 1 else f"All {finished:,} planned runs are"
        return f'<p class="state">{which} finished.</p>'
    parts = [f"{failed:,} failed"] * bool(failed) + [f"{others:,} not run yet"] * bool(others)
    counts = f"{finished:,} of {counted(len(board.runs), 'planned run')} finished; {', '.join(parts)}."
    lines = _missing_by_row(board)
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return (
        f'<div class="state incomplete"><p><b>Incomplete:</b> {escape(counts)} All means below are over the finished '
        f"runs.</p><details><summary>Which runs are missing</summary><ul>{items}</ul></details></div>"
    )


def _missing_by_row(board: Leaderboard) -> list[str]:
    """As "failed: transpl on ucihar: 2-11 (seeds 0, 1), 6-23 (seed 0)"."""
    rows: dict[tuple[str, str, str], dict[tuple[int, int], list[int]]] = {}
    for run in (run for run in board.runs if run.state != "finished"):
        rows.setdefault((run.state, run.entry, run.dataset), {}).setdefault(run.pair, []).append(run.seed)
    lines = []
    for (state, label, dataset), pairs in sorted(rows.items()):
        every = set(pairs) == set(board.pairs_of(dataset)) and all(len(s) == len(board.seeds) for s in pairs.values())
        found = [
            f"{_pair(pair)} (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, sorted(seeds)))})"
            for pair, seeds in pairs.items()
        ]
        lines.append(f"{state}: {label} on {dataset}: {'every pair' if every else ', '.join(found)}")
    return lines


# Standings


def _standings_section(board: Leaderboard) -> list[str]:
    """Controls, the table, and what its signs mean."""
    several = len(board.datasets) > 1
    sets = choice("standings-set", "data set", [("", "all"), *_numbered(board.datasets)])
    metrics = _by_name(board)
    columns = [name for name in _COLUMNS if name in metrics or (name == "rank" and board.ranked_by)]
    heads = [_sorter("method", "ascending")]
    if several:
        heads.append(_sorter("data set", "ascending", kind="text"))
    if _several_backbones(board):
        heads.append(_sorter("network", "ascending", kind="text"))
    for name in columns:
        if name == "rank":
            heads.append(_sorter("average rank", "ascending"))
            continue
        first = "descending" if metrics[name].better == "higher" else "ascending"
        label = metrics[name].label + (" %" if metrics[name].unit == "%" else "")
        is_sorted = name == board.ranked_by and not several
        heads.append(_sorter(label, first, now="descending" if is_sorted else "none"))
    heads.append(_sorter("runs", "descending"))
    by = board.ranked_by or "accuracy"

    def best_first(standing: EntryStanding) -> tuple[int, bool, float]:
        score = standing.scores.get(by)
        return board.datasets.index(standing.dataset), score is None, 0.0 if score is None else -score.mean

    return [
        "<section><h2>Standings</h2>",
        "<p>To sort by a column, click its head, or reach it with Tab and press Enter.</p>",
        f'<p class="controls" hidden>{sets}</p>' if several else "",
        '<div class="wide"><table id="standings" class="sortable">',
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>",
        *(_standing_row(board, standing, columns) for standing in sorted(board.standings, key=best_first)),
        "</tbody></table></div>",
        f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in _notes(board))}</ul></section>',
    ]


def _several_backbones(board: Leaderboard) -> bool:
    return len({entry.backbone for entry in board.entries}) > 1


def _sorter(label: str, first: str, now: str = "none", kind: str = "number") -> str:
    """A head that sorts; `first` is the direction of the first click."""
    button = f'<button type="button">{escape(label)}</button>'
    return f'<th scope="col" class="{kind}" aria-sort="{now}" data-first="{first}">{button}</th>'


def _standing_row(board: Leaderboard, standing: EntryStanding, columns: Sequence[str]) -> str:
    entry = next(each for each in board.entries if each.label == standing.entry)
    metrics = _by_name(board)
    cells = [_name_cell(entry, standing)]
    if len(board.datasets) > 1:
        cells.append(f'<td class="text" data-value="{escape(standing.dataset)}">{escape(standing.dataset)}</td>')
    if _several_backbones(board):
        network = escape(entry.backbone or "none")
        cells.append(f'<td class="text" data-value="{network}">{network}</td>')
    for name in columns:
        score = standing.scores.get(name)
        if name == "rank":
            value, text = standing.rank, "" if standing.rank is None else f"{standing.rank:.2f}"
        elif score is None:
            value, text = None, ""
        else:
            in_seconds = metrics[name].unit == "s"
            value = score.mean
            text = _shown(value, metrics[name]) if in_seconds else _spread(score, metrics[name])
        is_best = name in standing.best
        best, star = (' class="best"', _STAR) if is_best else ("", "")
        cells.append(_NONE if value is None else f'<td data-value="{value!r}"{best}>{star}{escape(text)}</td>')
    of = "" if standing.pairs == standing.of_pairs else f" of {standing.of_pairs}"
    cells.append(
        f'<td data-value="{standing.finished}">{standing.finished}/{standing.planned}'
        f'<span class="remark">{standing.pairs}{of} pairs, {counted(standing.seeds, "seed")}</span></td>'
    )
    return f'<tr data-set="{board.datasets.index(standing.dataset)}">{"".join(cells)}</tr>'


def _name_cell(entry: LeaderboardEntry, standing: EntryStanding) -> str:
    method = f"{entry.method} (labels only)" if entry.goal == "label" else entry.method
    parts = [f"<b>{escape(method)}</b>{'' if standing.complete else ' †'}"]
    if entry.changes:
        parts.append(f'<span class="changes">{escape(_settings(entry.changes))}</span>')
    parts += [f'<span class="remark">{escape(remark)}</span>' for remark in entry.remarks]
    return f'<th scope="row" data-value="{escape(entry.label)}">{"".join(parts)}</th>'


def _notes(board: Leaderboard) -> list[str]:
    notes = ["Scores are averaged over pairs; then mean ± standard deviation over seeds. With one seed there is no ±."]
    informed = {entry.informed for entry in board.entries if not entry.upper_bound} == {True, False}
    if any(standing.best for standing in board.standings):
        notes.append(
            "★ best of a data set, among rows with all its pairs and the seeds that most rows have"
            + (", without those that know more of the target than its windows." if informed else ".")
        )
    elif any(standing.scores for standing in board.standings):
        notes.append("No best is marked: fewer than two rows have all pairs with the same seeds.")
    if any(not standing.complete for standing in board.standings):
        notes.append("† has other pairs or seeds than most rows, so its means cannot be compared with theirs.")
    metrics = _by_name(board)
    ranked = [
        f"{counted(len(each.statistics.pairs), 'pair')} of {each.dataset}"
        for each in board.comparisons
        if each.metric == board.ranked_by and each.dataset in board.datasets
    ]
    if ranked and board.ranked_by is not None:
        by = metrics[board.ranked_by].label
        notes.append(f"average rank: by {by}, 1 is best, over {listed(ranked)} where ranked rows have the same seeds.")
    methods = [(each.method, each.goal) for each in board.entries]
    if len(set(methods)) < len(methods):
        notes.append(
            "Rows of one method differ in their settings. Choosing among them by this table means choosing on the test "
            "data; transpl table --grid chooses by a rule that does not see it."
        )
    return notes + [f"{metrics[name].label}: {metrics[name].what}." for name in metrics if name in _COLUMNS]


# Heat map


def _heat_map_section(board: Leaderboard) -> list[str]:
    """Choices of data set and metric, and the place for the map; nothing if no run is finished."""
    if not board.cells:
        return []
    metrics = choice("heat-metric", "score", _numbered([metric.label for metric in board.metrics]))
    return [
        "<section><h2>Every pair</h2>",
        "<p>Mean over seeds of each row (down) on each pair of source-target (across). Brighter is better; empty is "
        "not finished. Point at a cell to see its spread.</p>",
        "<noscript><p>The map needs scripts. The runs below have the same numbers.</p></noscript>",
        f'<p class="controls" hidden>{choice("heat-set", "data set", _numbered(board.datasets))} {metrics}</p>',
        '<figure><div id="heat" role="img" aria-labelledby="heat-words"></div>'
        '<figcaption id="heat-words"></figcaption></figure>',
        '<details hidden id="heat-numbers"><summary>The same numbers as a table</summary>'
        '<div class="wide"></div></details>',
        script_data("heat-data", _heat_map_data(board)),
        "</section>",
    ]


def _heat_map_data(board: Leaderboard) -> dict[str, Any]:
    """By data set: pairs, rows, and per metric the mean, std and number of runs of every cell (None if empty)."""

    def numbers(where: tuple[str, str, tuple[int, int]], metric: str) -> list[float | None] | None:
        spread = board.cells.get(where, {}).get(metric)
        if spread is None:
            return None
        std = None if spread.std is None else round(spread.std, _HEAT_DECIMALS)
        return [round(spread.mean, _HEAT_DECIMALS), std, spread.n]

    sets = []
    for name in board.datasets:
        rows = [standing.entry for standing in board.standings if standing.dataset == name]
        pairs = board.pairs_of(name)
        cells = [
            [[numbers((name, row, pair), metric.name) for pair in pairs] for row in rows] for metric in board.metrics
        ]
        sets.append({"name": name, "rows": rows, "pairs": [_pair(pair) for pair in pairs], "cells": cells})
    shown = ("label", "unit", "better", "decimals")
    return {"metrics": [{key: getattr(metric, key) for key in shown} for metric in board.metrics], "sets": sets}


# Runs


def _run_section(board: Leaderboard) -> list[str]:
    """Filters, a count of what they leave, and the runs; failures come first, with their error."""
    runs = (*board.in_state("failed"), *board.in_state("finished"))
    title = "<section><h2>Every run</h2>"
    if not runs:
        return [title, "<p>No run is finished yet.</p></section>"]
    every = ("", "all")
    controls = " ".join(
        [
            '<label>containing <input id="run-text" type="search" placeholder="as 0-1 seed 2"></label>',
            choice("run-set", "data set", [every, *_numbered(board.datasets)]),
            choice("run-row", "method", [every, *_numbered([entry.label for entry in board.entries])]),
            choice("run-state", "state", [every, ("failed", "failed"), ("finished", "finished")]),
        ]
    )
    return [
        title,
        "<p>Open a run to see its scores, epochs, seconds per stage and what the method reports.</p>",
        f'<p class="controls" hidden>{controls}</p>',
        f'<p id="run-count" role="status">{counted(len(runs), "run")}</p>',
        '<div id="runs">',
        *(_run(board, run) for run in runs),
        "</div></section>",
    ]


def _run(board: Leaderboard, run: LeaderboardRun) -> str:
    row = next(i for i, entry in enumerate(board.entries) if entry.label == run.entry)
    where = f"{escape(run.dataset)} {_pair(run.pair)} <b>{escape(run.entry)}</b> seed {run.seed}"
    if run.state == "failed":
        line = f'<span class="error">failed: {escape(_start(run.error, _ERROR_START))}</span>'
        body = _failure(run)
    else:
        scores = [
            f"{escape(metric.label)} {_shown(run.scores[metric.name], metric)}"
            for metric in board.metrics
            if metric.name in _SUMMARY and metric.name in run.scores
        ]
        line = f'<span class="scores">{", ".join(scores)}</span>'
        body = _run_facts(run, _by_name(board))
    return (
        f'<details class="run {escape(run.state)}" data-set="{board.datasets.index(run.dataset)}" data-row="{row}" '
        f'data-state="{escape(run.state)}"><summary>{where} {line}</summary>{body}</details>'
    )


def _start(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


def _failure(run: LeaderboardRun) -> str:
    cut = len(run.traceback) - _TRACEBACK_END
    text = ("…" if cut > 0 else "") + run.traceback[max(cut, 0) :]
    trace = f'<pre tabindex="0">{escape(text.strip())}</pre>' if text.strip() else ""
    more = f"<p>{escape(_start(run.error, _ERROR_LENGTH))}</p>" if len(run.error) > _ERROR_START else ""
    return (
        f"{more}<p>{counted(run.attempts, 'attempt')}. transpl bench with the same options tries again. The whole "
        f"record: failures/{escape(run.digest)}.json</p>{trace}"
    )


def _run_facts(run: LeaderboardRun, metrics: Mapping[str, Metric]) -> str:
    scored = [name for name in run.scores if name in metrics and not name.startswith("label_") and name != "seconds"]
    facts = [("test part", ", ".join(f"{metrics[name].label} {run.scores[name]:.2f}" for name in scored))]
    for when, scores in run.labels.items():
        words = {name: name.replace("_", " ").replace("macro f1", "macro-F1") for name in scores}
        facts.append((f"pseudo-labels, {when}", ", ".join(f"{words[name]} {scores[name]:.2f}" for name in scores)))
    facts.append(("epochs", ", ".join(f"{phase} {count}" for phase, count in run.epochs.items())))
    facts.append(("seconds", ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.seconds.items())))
    inner = "".join(_fact(name, escape(text)) for name, text in facts if text)
    return f"<dl>{inner}{_details(run.details)}{_fact('file', f'runs/{escape(run.digest)}.json')}</dl>"


def _fact(name: str, inner: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{inner}</dd>"


def _details(details: Mapping[str, Any]) -> str:
    """What ATT reports of the rows it learns from, SHOT of its guard, TransPL of its channels and codes."""
    parts = []
    if learnt := details.get("learnt_from"):
        right = f", labels right in {100 * learnt['accuracy']:.1f} %" if "accuracy" in learnt else ""
        rows = f"{counted(int(learnt['rows']), 'target window')} ({100 * learnt['share']:.0f} %){right}"
        parts.append(_fact("learned from", escape(rows)))
    if guard := details.get("source_guard"):
        parts.append(_fact("source guard", "the source model stays" if guard["held_back"] else "passed"))
    if weights := details.get("channel_weights"):
        distances = details.get("channel_distances") or [None] * len(weights)
        items = [
            f'<li style="--weight:{weight:.3f}">channel {c}: {weight:.2f}'
            f"{'' if distance is None else f', distance {distance:.3f}'}</li>"
            for c, (weight, distance) in enumerate(zip(weights, distances, strict=False))
        ]
        parts.append(_fact("trust in channels", f'<ul class="weights">{"".join(items)}</ul>'))
    if books := details.get("codebooks"):
        used = (
            f"{name}: {book['codes']} codes, {book['dead']} never used"
            + (f", perplexity {book['perplexity']:.1f}" if "perplexity" in book else "")
            for name, book in books.items()
        )
        parts.append(_fact("codebooks", escape("; ".join(used))))
    if (error := details.get("reconstruction_error")) is not None:
        parts.append(_fact("reconstruction error", f"{error:.4g}"))
    return "".join(parts)
