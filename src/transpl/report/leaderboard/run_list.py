"""Every finished and failed run, to filter and to open; failures come first, with their error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from transpl.report.leaderboard.wording import pair_name, shown
from transpl.report.wording import choice, counted

if TYPE_CHECKING:
    from transpl.benchmark.leaderboard_data import Leaderboard, Run
    from transpl.benchmark.measures import Metric

_MOST_SUMMARY, _MOST_ERROR, _MOST_TRACEBACK = 200, 1500, 1500  # characters; of a traceback the end says most
_SUMMARY = ("accuracy", "macro_f1", "label_accuracy")


def run_section(board: Leaderboard) -> list[str]:
    """Filters, a count of what they leave, and the runs."""
    failed, finished = board.in_state("failed"), board.in_state("finished")
    title = "<section><h2>Every run</h2>"
    if not failed and not finished:
        return [title, "<p>No run is finished yet.</p></section>"]
    rows = [(str(i), contender.label) for i, contender in enumerate(board.contenders)]
    sets = [(str(i), name) for i, name in enumerate(board.datasets)]
    controls = " ".join(
        [
            '<label>containing <input id="run-text" type="search" placeholder="as 0-1 seed 2"></label>',
            choice("run-set", "data set", [("", "all"), *sets]),
            choice("run-row", "method", [("", "all"), *rows]),
            choice("run-state", "state", [("", "all"), ("failed", "failed"), ("finished", "finished")]),
        ]
    )
    total = counted(len(failed) + len(finished), "run")
    return [
        title,
        "<p>Open a run for scores, epochs, seconds per stage and what the method tells of itself.</p>",
        f'<p class="controls" hidden>{controls}</p>',
        f'<p id="run-count" role="status">{total}</p>',
        '<div id="runs">',
        *(_run(board, run) for run in (*failed, *finished)),
        "</div></section>",
    ]


def _run(board: Leaderboard, run: Run) -> str:
    row = next(i for i, contender in enumerate(board.contenders) if contender.label == run.contender)
    body = _failure(run) if run.state == "failed" else _facts(run, {metric.name: metric for metric in board.metrics})
    return (
        f'<details class="run {escape(run.state)}" data-set="{board.datasets.index(run.dataset)}" data-row="{row}" '
        f'data-state="{escape(run.state)}"><summary>{_summary(run, board.metrics)}</summary>{body}</details>'
    )


def _summary(run: Run, metrics: Sequence[Metric]) -> str:
    where = f"{escape(run.dataset)} {pair_name(run.pair)} <b>{escape(run.contender)}</b> seed {run.seed}"
    if run.state == "failed":
        return f'{where} <span class="error">failed: {escape(_start(run.error, _MOST_SUMMARY))}</span>'
    found = [
        f"{escape(metric.label)} {shown(run.scores[metric.name], metric)}"
        for metric in metrics
        if metric.name in _SUMMARY and metric.name in run.scores
    ]
    return f'{where} <span class="scores">{", ".join(found)}</span>'


def _failure(run: Run) -> str:
    cut = len(run.traceback) - _MOST_TRACEBACK
    text = ("…" if cut > 0 else "") + run.traceback[max(cut, 0) :]
    trace = f'<pre tabindex="0">{escape(text.strip())}</pre>' if text.strip() else ""
    again = f"{counted(run.attempts, 'attempt')}. transpl bench with the same options tries again."
    record = f"The whole record: failures/{run.digest}.json"
    more = f"<p>{escape(_start(run.error, _MOST_ERROR))}</p>" if len(run.error) > _MOST_SUMMARY else ""
    return f"{more}<p>{escape(again)} {escape(record)}</p>{trace}"


def _start(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _facts(run: Run, metrics: Mapping[str, Metric]) -> str:
    facts = [("test part", _scores(run, metrics))]
    facts += [(f"pseudo-labels, {when}", _label_scores(found)) for when, found in run.labels.items()]
    facts.append(("epochs", ", ".join(f"{phase} {count}" for phase, count in run.epochs.items())))
    facts.append(("seconds", ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.seconds.items())))
    inner = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    return f"<dl>{inner}{_details(run.details)}<dt>file</dt><dd>runs/{escape(run.digest)}.json</dd></dl>"


def _scores(run: Run, metrics: Mapping[str, Metric]) -> str:
    names = [name for name in run.scores if name in metrics and not name.startswith("label_") and name != "seconds"]
    return ", ".join(f"{metrics[name].label} {run.scores[name]:.2f}" for name in names)


def _label_scores(scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ').replace('macro f1', 'macro-F1')} {v:.2f}" for name, v in scores.items())


def _learnt_from(learnt: Mapping[str, float]) -> str:
    right = f", labels right in {100 * learnt['accuracy']:.1f} %" if "accuracy" in learnt else ""
    return f"{counted(int(learnt['rows']), 'target window')} ({100 * learnt['share']:.0f} %){right}"


def _details(details: Mapping[str, Any]) -> str:
    """What ATT tells of the rows it learns from, SHOT of its guard, TransPL of its channels and codes."""
    parts = []
    if learnt := details.get("learnt_from"):
        parts.append(f"<dt>learnt from</dt><dd>{escape(_learnt_from(learnt))}</dd>")
    if guard := details.get("source_guard"):
        parts.append(f"<dt>source guard</dt><dd>{'the source model stays' if guard['held_back'] else 'passed'}</dd>")
    if weights := details.get("channel_weights"):
        distances = details.get("channel_distances") or [None] * len(weights)
        items = "".join(_channel(c, w, d) for c, (w, d) in enumerate(zip(weights, distances, strict=False)))
        parts.append(f'<dt>trust in channels</dt><dd><ul class="weights">{items}</ul></dd>')
    if books := details.get("codebooks"):
        parts.append(f"<dt>codebooks</dt><dd>{escape('; '.join(_codebooks(books)))}</dd>")
    if (error := details.get("reconstruction_error")) is not None:
        parts.append(f"<dt>reconstruction error</dt><dd>{error:.4g}</dd>")
    return "".join(parts)


def _channel(c: int, weight: float, distance: float | None) -> str:
    moved = "" if distance is None else f", distance {distance:.3f}"
    return f'<li style="--weight:{weight:.3f}">channel {c}: {weight:.2f}{moved}</li>'


def _codebooks(books: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    return (
        f"{name}: {book['codes']} codes, {book['dead']} never used, perplexity {book['perplexity']:.1f}"
        for name, book in books.items()
    )
