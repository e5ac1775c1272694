"""The sortable table: one line per row of settings and data set. It is whole without scripts; they only sort it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from transpl.report.leaderboard.wording import settings_in_words, shown, spread_in_words
from transpl.report.wording import choice, counted, listed

if TYPE_CHECKING:
    from transpl.benchmark.leaderboard_data import Contender, Leaderboard, Standing
    from transpl.benchmark.measures import Metric

_COLUMNS = ("accuracy", "macro_f1", "binary_f1", "label_accuracy", "calibration_error", "rank", "seconds")
_NONE = '<td class="none">\N{EN DASH}</td>'
_STAR = '<span class="star" role="img" aria-label="best">★</span> '


def standings_section(board: Leaderboard) -> list[str]:
    """Controls, the table, and what its signs mean."""
    several = len(board.datasets) > 1
    options = [("", "all"), *((str(i), name) for i, name in enumerate(board.datasets))]
    return [
        "<section><h2>Standings</h2>",
        "<p>Sort by any column: click its head, or reach it with Tab and press Enter.</p>",
        f'<p class="controls" hidden>{choice("standings-set", "data set", options)}</p>' if several else "",
        '<div class="wide"><table id="standings" class="sortable">',
        f"<thead><tr>{_head(board)}</tr></thead><tbody>",
        *(_line(board, standing) for standing in _best_first(board)),
        "</tbody></table></div>",
        f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in _notes(board))}</ul></section>',
    ]


def _best_first(board: Leaderboard) -> list[Standing]:
    """By data set, then by what rows are ranked by; rows without it last."""
    metric = board.ranked_by or "accuracy"

    def place(standing: Standing) -> tuple[int, bool, float]:
        score = standing.scores.get(metric)
        return board.datasets.index(standing.dataset), score is None, 0.0 if score is None else -score.mean

    return sorted(board.standings, key=place)


def _metrics(board: Leaderboard) -> dict[str, Metric]:
    return {metric.name: metric for metric in board.metrics}


def _columns(board: Leaderboard) -> list[str]:
    known = {*_metrics(board), *(("rank",) if board.ranked_by else ())}
    return [name for name in _COLUMNS if name in known]


def _head(board: Leaderboard) -> str:
    metrics, sorted_by = _metrics(board), board.ranked_by if len(board.datasets) == 1 else None
    heads = [_sorter("method", "ascending")]
    if len(board.datasets) > 1:
        heads.append(_sorter("data set", "ascending", kind="text"))
    for name in _columns(board):
        if name == "rank":
            heads.append(_sorter("average rank", "ascending"))
        else:
            first = "descending" if metrics[name].better == "higher" else "ascending"
            label = metrics[name].label + (" %" if metrics[name].unit == "%" else "")
            heads.append(_sorter(label, first, now="descending" if name == sorted_by else "none"))
    return "".join([*heads, _sorter("runs", "descending")])


def _sorter(label: str, first: str, now: str = "none", kind: str = "number") -> str:
    """A head that sorts; `first` is the direction of the first click."""
    button = f'<button type="button">{escape(label)}</button>'
    return f'<th scope="col" class="{kind}" aria-sort="{now}" data-first="{first}">{button}</th>'


def _line(board: Leaderboard, standing: Standing) -> str:
    contender = next(each for each in board.contenders if each.label == standing.contender)
    cells = [_name(contender, standing)]
    if len(board.datasets) > 1:
        cells.append(f'<td class="text" data-value="{escape(standing.dataset)}">{escape(standing.dataset)}</td>')
    metrics = _metrics(board)
    cells += [_rank(standing) if name == "rank" else _score(standing, metrics[name]) for name in _columns(board)]
    return f'<tr data-set="{board.datasets.index(standing.dataset)}">{"".join(cells)}{_runs(standing)}</tr>'


def _name(contender: Contender, standing: Standing) -> str:
    method = f"{contender.method} (labels only)" if contender.goal == "label" else contender.method
    parts = [f"<b>{escape(method)}</b>{'' if standing.complete else ' †'}"]
    parts += [f'<span class="changes">{escape(settings_in_words(contender.changes))}</span>'] * bool(contender.changes)
    parts += [f'<span class="remark">{escape(remark)}</span>' for remark in contender.remarks]
    return f'<th scope="row" data-value="{escape(contender.label)}">{"".join(parts)}</th>'


def _runs(standing: Standing) -> str:
    of = "" if standing.pairs == standing.of_pairs else f" of {standing.of_pairs}"
    return (
        f'<td data-value="{standing.finished}">{standing.finished}/{standing.planned}'
        f'<span class="remark">{standing.pairs}{of} pairs, {counted(standing.seeds, "seed")}</span></td>'
    )


def _score(standing: Standing, metric: Metric) -> str:
    spread = standing.scores.get(metric.name)
    if spread is None:
        return _NONE
    text = shown(spread.mean, metric) if metric.unit == "s" else spread_in_words(spread, metric)
    return _cell(spread.mean, text, metric.name in standing.best)


def _rank(standing: Standing) -> str:
    return _NONE if standing.rank is None else _cell(standing.rank, f"{standing.rank:.2f}", "rank" in standing.best)


def _cell(value: float, text: str, best: bool) -> str:
    kind = ' class="best"' if best else ""
    return f'<td data-value="{value!r}"{kind}>{_STAR if best else ""}{escape(text)}</td>'


def _notes(board: Leaderboard) -> list[str]:
    notes = ["Mean over pairs first, then mean ± standard deviation over seeds; with one seed there is no ±."]
    if any(standing.best for standing in board.standings):
        notes.append("★ best of a data set, among rows with all its pairs and the seeds that most rows have.")
    elif any(standing.scores for standing in board.standings):
        notes.append("No best is marked: fewer than two rows have all pairs with the same seeds.")
    if any(not standing.complete for standing in board.standings):
        notes.append("† has other pairs or seeds than most rows, so its means are over other runs than theirs.")
    notes += _rank_notes(board)
    methods = [(each.method, each.goal) for each in board.contenders]
    if len(set(methods)) < len(methods):
        notes.append(
            "Rows of one method differ in their settings. To choose among them by this table is to choose on the test "
            "part; transpl table --grid chooses by a rule that does not see it."
        )
    notes += [f"{metric.label}: {metric.what}." for name, metric in _metrics(board).items() if name in _COLUMNS]
    return notes


def _rank_notes(board: Leaderboard) -> list[str]:
    used = {
        each.dataset: counted(len(each.statistics.pairs), "pair")
        for each in board.comparisons
        if each.metric == board.ranked_by and each.dataset in board.datasets
    }
    if not used or board.ranked_by is None:
        return []
    over = listed(f"{pairs} of {name}" for name, pairs in used.items())
    by = _metrics(board)[board.ranked_by].label
    return [f"average rank: by {by}, 1 is best, over {over} on which ranked rows have the same seeds."]
