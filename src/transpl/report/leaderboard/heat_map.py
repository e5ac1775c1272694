"""Scores of every row on every pair, as data for the page's script, which draws them with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transpl.report.leaderboard.wording import pair_name
from transpl.report.wording import as_script_data, choice

if TYPE_CHECKING:
    from transpl.benchmark.leaderboard_data import Leaderboard

_DECIMALS = 4  # of what is drawn


def heat_map_section(board: Leaderboard) -> list[str]:
    """Choices of data set and metric, and the place for the map; nothing if no run is finished."""
    if not board.cells:
        return []
    sets = choice("heat-set", "data set", [(str(i), name) for i, name in enumerate(board.datasets)])
    metrics = choice("heat-metric", "score", [(str(i), metric.label) for i, metric in enumerate(board.metrics)])
    return [
        "<section><h2>Every pair</h2>",
        "<p>Mean over seeds of each row (down) on each pair, source-target (across); brighter is better, empty is not "
        "finished. Point at a cell for its spread.</p>",
        "<noscript><p>The map needs scripts. The runs below have the same numbers.</p></noscript>",
        f'<p class="controls" hidden>{sets} {metrics}</p>',
        '<figure><div id="heat" role="img" aria-labelledby="heat-words"></div>'
        '<figcaption id="heat-words"></figcaption></figure>',
        '<details hidden id="heat-numbers"><summary>The same numbers as a table</summary>'
        '<div class="wide"></div></details>',
        as_script_data("heat-data", heat_map_data(board)),
        "</section>",
    ]


def heat_map_data(board: Leaderboard) -> dict[str, Any]:
    """By data set: pairs, rows, and per metric the mean, std and number of runs of every cell (null if none)."""
    return {
        "metrics": [
            {"label": each.label, "unit": each.unit, "better": each.better, "decimals": each.decimals}
            for each in board.metrics
        ],
        "sets": [_of_set(board, name) for name in board.datasets],
    }


def _of_set(board: Leaderboard, dataset: str) -> dict[str, Any]:
    rows = [standing.contender for standing in board.standings if standing.dataset == dataset]
    pairs = board.pairs_of(dataset)
    cells = [
        [[_numbers(board, (dataset, row, pair), metric.name) for pair in pairs] for row in rows]
        for metric in board.metrics
    ]
    return {"name": dataset, "rows": rows, "pairs": [pair_name(pair) for pair in pairs], "cells": cells}


def _numbers(
    board: Leaderboard, where: tuple[str, str, tuple[int, int]], metric: str
) -> list[float | int | None] | None:
    spread = board.cells.get(where, {}).get(metric)
    if spread is None:
        return None
    std = None if spread.std is None else round(spread.std, _DECIMALS)
    return [round(spread.mean, _DECIMALS), std, spread.n]
