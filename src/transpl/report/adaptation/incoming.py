"""What came in, and what came of it."""

from __future__ import annotations

from html import escape
from typing import Any

from transpl.report.adaptation.html import percent
from transpl.report.adaptation.saved import Saved
from transpl.report.wording import counted, listed

_ANSWERS = {
    "finetune": "a neural network, trained on the source, then on the labels that the vote gave to the target",
    "markov": "a vote of the channels over the patterns that follow each other; nothing was trained on the target",
    "source": "the network as trained on the source; it was not adapted",
}
_SCORES = {
    "before": "right before adaptation",
    "after": "right after adaptation",
    "pseudo_labels": "right by the vote of the channels, on the windows adapted to",
}
_SCORES_OF_COUNCIL = {**_SCORES, "pseudo_labels": "right on the windows adapted to"}


def incoming_section(saved: Saved) -> list[str]:
    """Windows, channels, classes, who answers, and how often it is right if that is known."""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in _facts(saved))
    return ["<section><h2>What came in</h2>", f'<dl class="facts">{facts}</dl>', *_scores(saved), "</section>"]


def _facts(saved: Saved) -> list[tuple[str, str]]:
    summary = saved.summary
    source, target, test = summary["source"], summary["target"], summary["test"]
    labelled = "" if source["windows"] is None else f"{counted(source['windows'], 'window')} "
    facts = [
        ("source", f"{source['name']}: {labelled}with labels"),
        ("target", f"{target['name']}: {counted(target['windows'], 'window')}, used without labels"),
        ("labelled here", counted(test["windows"], "window")),
        ("channels", f"{len(saved.channels)}: {listed(channel.name for channel in saved.channels)}"),
        ("classes", f"{len(saved.classes)}: {listed(saved.classes)}"),
        ("labels are from", _answered_by(saved)),
    ]
    if saved.explanation is not None and saved.explanation.signals is not None:
        facts.insert(3, ("a window", _window_in_words(saved)))
    if summary["prior"]:
        given = listed(f"{name} {percent(share)}" for name, share in summary["prior"].items())
        facts.append(("class proportions given", given))
    return facts


def _answered_by(saved: Saved) -> str:
    if not saved.of_council:
        return _ANSWERS[saved.summary["mode"]]
    n = counted(len(saved.witnesses), "simple classifier")
    return f"{n} (witnesses), each counted by how reliable it proved on this target, without any true label"


def _window_in_words(saved: Saved) -> str:
    assert saved.explanation is not None
    assert saved.explanation.signals is not None
    steps, m = saved.explanation.signals.shape[-1], saved.explanation.patch_length
    return (
        f"up to {steps} time steps, read in pieces of {m}"
        if saved.explanation.codes.min() < 0
        else (f"{steps} time steps, read in pieces of {m}")
    )


def _scores(saved: Saved) -> list[str]:
    metrics = saved.metrics
    names = _SCORES_OF_COUNCIL if saved.of_council else _SCORES
    if metrics is None or not set(names) & set(metrics):
        return ["<p>No true labels were given, so nothing is scored here.</p>"]
    cards = [
        f'<div class="number"><b>{100 * metrics[key]["accuracy"]:.1f} %</b>{escape(words)}<br>'
        f'<span class="notes">{counted(metrics[key]["windows"], "window")}; macro-F1 '
        f"{100 * metrics[key]['macro_f1']:.1f} %</span></div>"
        for key, words in names.items()
        if key in metrics
    ]
    return ['<div class="numbers">', *cards, "</div>", *_gain(metrics)]


def _gain(metrics: dict[str, Any]) -> list[str]:
    if "before" not in metrics or "after" not in metrics:
        return []
    before, after = (round(100 * metrics[key]["accuracy"], 1) for key in ("before", "after"))  # as they are shown
    points = after - before
    if points == 0:
        return ["<p>Adaptation changed nothing in how many labels are right.</p>"]
    outcome = "more labels right than before" if points > 0 else "fewer labels right than before"
    return [f"<p>Adaptation made {abs(points):.1f} percentage points {outcome}.</p>"]
