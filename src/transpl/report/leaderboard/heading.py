"""What was run, and first of all what of it is missing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from transpl.report.leaderboard.wording import pair_name, settings_in_words
from transpl.report.wording import counted, listed

if TYPE_CHECKING:
    from transpl.benchmark.leaderboard_data import Leaderboard, Run


def title_of(board: Leaderboard) -> str:
    """The page's name."""
    return f"Leaderboard: {listed(board.datasets)}"


def heading(board: Leaderboard) -> list[str]:
    """Title, state, what was run, and the settings that all rows have changed."""
    parts = [
        f"<h1>{escape(title_of(board))}</h1>",
        _state(board),
        f'<p class="lead">{escape(_what_was_run(board))}</p>',
    ]
    if board.shared_changes:
        words = settings_in_words(board.shared_changes)
        parts.append(f"<p>Settings that differ from the paper's in every row: <b>{escape(words)}</b>.</p>")
    several = {name: found for name, found in board.versions.items() if len(found) > 1}
    if several:
        words = "; ".join(f"{name} {listed(found)}" for name, found in several.items())
        parts.append(f'<p class="warning">The runs were made with several versions: {escape(words)}.</p>')
    return parts


def _state(board: Leaderboard) -> str:
    finished, failed, others = (len(board.in_state(state)) for state in ("finished", "failed", "not run"))
    if finished == len(board.runs):
        return f'<p class="state">All {counted(finished, "planned run")} are finished.</p>'
    parts = [f"{failed:,} failed"] * bool(failed) + [f"{others:,} not run yet"] * bool(others)
    counts = f"{finished:,} of {counted(len(board.runs), 'planned run')} finished; {', '.join(parts)}."
    lacking = [run for run in board.runs if run.state != "finished"]
    lines = "".join(f"<li>{escape(line)}</li>" for line in _by_row(lacking))
    return (
        f'<div class="state incomplete"><p><b>Incomplete:</b> {escape(counts)} Every mean below is over what is there.'
        f"</p><details><summary>Which runs are missing</summary><ul>{lines}</ul></details></div>"
    )


def _by_row(runs: Sequence[Run]) -> list[str]:
    """As "failed: transpl on ucihar: 2-11 (seeds 0, 1), 6-23 (seed 0)"."""
    rows: dict[tuple[str, str, str], dict[tuple[int, int], list[int]]] = {}
    for run in runs:
        pairs = rows.setdefault((run.state, run.contender, run.dataset), {})
        pairs.setdefault(run.pair, []).append(run.seed)
    return [
        f"{state}: {label} on {dataset}: "
        + ", ".join(
            f"{pair_name(pair)} (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, sorted(seeds)))})"
            for pair, seeds in pairs.items()
        )
        for (state, label, dataset), pairs in sorted(rows.items())
    ]


def _what_was_run(board: Leaderboard) -> str:
    methods = list(dict.fromkeys(contender.method for contender in board.contenders))
    sets = [f"{name} ({counted(len(board.pairs_of(name)), 'pair')})" for name in board.datasets]
    rows = "" if len(board.contenders) == len(methods) else f" in {len(board.contenders)} rows of different settings"
    return (
        f"{counted(len(methods), 'method')}{rows} ({listed(methods)}) on {listed(sets)}, "
        f"{'seed' if len(board.seeds) == 1 else 'seeds'} {listed(board.seeds)}."
    )
