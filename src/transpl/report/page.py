"""One self-contained HTML page about one adaptation; opens offline, in any browser."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from transpl.errors import unreadable
from transpl.files import read_json, write_text
from transpl.page_style import PAGE_STYLE
from transpl.report import figures
from transpl.report.document import document

_STYLE = (
    PAGE_STYLE
    + """
p.lead, figcaption, footer { color: var(--soft); }
.numbers { display: flex; flex-wrap: wrap; gap: 1rem; }
.number { background: var(--card); border-radius: .5rem; flex: 1 1 10rem; padding: .8rem 1rem; }
.number b { display: block; font-size: 1.7rem; }
"""
)


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write `report.html` from the summary, predictions and metrics that a job left in `folder`."""
    home = Path(folder)
    if not (home / "summary.json").is_file():
        raise unreadable(
            home, problem="no summary.json in it", advice="Point at a folder written by transpl adapt, demo or bench."
        )
    summary = read_json(home / "summary.json")
    metrics = read_json(home / "metrics.json") if (home / "metrics.json").is_file() else None
    try:
        confidence = pd.read_csv(home / "predictions.csv", usecols=["confidence"])["confidence"]
        page = render(summary, metrics, confidence)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        problem = f"its results are incomplete or of another version ({type(error).__name__}: {error})"
        raise unreadable(home, problem=problem, advice="Run transpl adapt or demo again.") from None
    write_text(home / "report.html", page)
    return home / "report.html"


def render(summary: dict[str, Any], metrics: dict[str, Any] | None, confidence: pd.Series) -> str:
    """Return the page as text."""
    title = f"From {summary['source']['name']} to {summary['target']['name']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">{escape(_what_came_in(summary))}</p>',
        *_score_cards(metrics),
        *_sections(summary, metrics, confidence),
        f"<footer><p>transpl {escape(summary['transpl_version'])}, {escape(summary['written'])}</p></footer>",
    ]
    return document(title, _STYLE, parts)


def _sections(summary: dict[str, Any], metrics: dict[str, Any] | None, confidence: pd.Series) -> list[str]:
    sections = [
        _section("What shifted", _channel_sentence(summary), figures.channel_weights(summary)),
        _section(
            "What the target does",
            "How often each class occurs. Large differences between source and target are a shift of their own.",
            figures.class_shares(summary),
        ),
        _section(
            "How sure the labels are",
            f"Half of the labels have a confidence above {confidence.median():.2f}.",
            figures.confidence_histogram(confidence, len(summary["classes"])),
        ),
    ]
    if metrics is not None and "confusion" in metrics:
        found = metrics["confusion"]
        words = "Rows: true classes. Columns: labels given after adaptation. True labels were used for nothing else."
        sections.append(
            _section("Where labels are right and wrong", words, figures.confusion(found["labels"], found["counts"]))
        )
    sections.append(_section("How training went", _training_sentence(summary), figures.loss_curves(summary["history"])))
    sections.append(
        _section("The vocabulary", _codes_sentence(summary), figures.codebook_usage(summary["codebook_usage"]))
    )
    return sections


def _section(title: str, words: str, figure: go.Figure) -> str:
    drawn = figure.to_html(
        full_html=False, include_plotlyjs=False, config={"displayModeBar": False, "responsive": True}
    )
    return f"<section><h2>{escape(title)}</h2><p>{escape(words)}</p><figure>{drawn}</figure></section>"


def _score_cards(metrics: dict[str, Any] | None) -> list[str]:
    if metrics is None:
        return ["<p>No true labels were given, so nothing is scored here.</p>"]
    names = {
        "before": "right before adaptation",
        "after": "right after adaptation",
        "pseudo_labels": "pseudo-labels right, on the windows adapted to",
    }
    cards = [
        f'<div class="number"><b>{100 * metrics[key]["accuracy"]:.1f} %</b>{escape(words)}<br>'
        f"macro-F1 {100 * metrics[key]['macro_f1']:.1f}, {metrics[key]['windows']} windows</div>"
        for key, words in names.items()
        if key in metrics
    ]
    return ['<div class="numbers">', *cards, "</div>"]


def _what_came_in(summary: dict[str, Any]) -> str:
    source, target = summary["source"], summary["target"]
    labelled = "Labelled windows" if source["windows"] is None else f"{source['windows']:,} labelled windows"
    return (
        f"{labelled} of {source['name']}, {target['windows']:,} unlabelled windows of "
        f"{target['name']}, {len(summary['channels'])} channels, {len(summary['classes'])} classes. "
        f"The classifier after adaptation: {_MODES[summary['mode']]}."
    )


_MODES = {
    "finetune": "the network, fine-tuned on the pseudo-labels",
    "markov": "the Markov posterior itself, without a training step",
    "source": "the source network",
}


def _channel_sentence(summary: dict[str, Any]) -> str:
    ranked = sorted(summary["channels"], key=lambda channel: -channel["distance"])
    return (
        f"{ranked[0]['name']} moved most (distance {ranked[0]['distance']:.3f}), {ranked[-1]['name']} least "
        f"({ranked[-1]['distance']:.3f}). The more a channel's patterns moved between source and target, "
        "the less it counts in the vote for a label."
    )


def _training_sentence(summary: dict[str, Any]) -> str:
    parts = [f"{phase}: {len(records)} epochs" for phase, records in summary["history"].items()]
    seconds = sum(summary["seconds"].values())
    return (
        f"{'; '.join(parts)}; {seconds:.0f} seconds in all. Each phase keeps the weights of its best validation loss."
    )


def _codes_sentence(summary: dict[str, Any]) -> str:
    parts = [
        f"{book} codebook: {len(usage['counts'])} codes, {len(usage['dead'])} never used, "
        f"perplexity {usage['perplexity']:.1f}"
        for book, usage in summary["codebook_usage"].items()
    ]
    return f"Every stretch of signal becomes one of a few codes. {'; '.join(parts)}."
