"""The labels: how many of each class, how sure, how right if that is known, and which witnesses they come from."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

from transpl.council import CouncilExplanation, witness_in_words
from transpl.report import plots
from transpl.report.adaptation.saved_job import SavedJob
from transpl.report.html_parts import bar, chart, counted, definitions, listed, percent

_COLOURS = {
    "source": plots.GREY,
    "target, as you said": plots.PURPLE,
    "target, estimated by the vote": plots.SKY,
    "target, estimated": plots.SKY,
    "target, as labelled": plots.BLUE,
    "target, true": plots.ORANGE,
}
_KINDS = {
    "codes": "which short shape follows which in the signal",
    "kernels": "how often and how strongly random short patterns occur in the signal",
    "linear": "averages, spreads and frequencies of the channels, weighted and added up",
    "trees": "the same numbers as linear, judged one after the other by many random decision trees",
    "conv": "a small neural network, tuned to the target's signals without labels",
    "vq": "as codes, with shapes chosen by a neural network",
    "relearned": "the same once more, but trained on the target with the labels that all witnesses together gave it",
}
_VIEWS = {
    "recorded": "the signals as they are",
    "standardised": "source and target each brought to the same mean and spread per channel, so that another gain or "
    "offset makes no difference",
    "shape": "every window brought to the same mean and spread, so that only its shape is left",
}


def label_section(saved: SavedJob) -> list[str]:
    """Class proportions, confidence and, if the truth is known, which class was taken for which."""
    parts = ["<section><h2>What labels the target got</h2>", *_proportions(saved), *_confidence(saved)]
    if saved.metrics is not None and "confusion" in saved.metrics:
        found = saved.metrics["confusion"]
        words = (
            "Which class was taken for which, in windows: a row per true class, a column per label. Right labels are "
            "on the diagonal. The true labels were used only for this and for the scores."
        )
        parts += chart("confusion", plots.confusion(found["labels"], found["counts"]), words)
    return [*parts, "</section>"]


def class_proportions(saved: SavedJob) -> dict[str, dict[str, float]]:
    """Class shares by where they come from, as far as they are known."""
    summary, shift, prior = saved.summary, saved.shift, saved.summary["prior"]
    estimated = None
    if shift is not None and shift.target_shares is not None:
        estimated = dict(zip(shift.classes, shift.target_shares, strict=True))
    found = {
        "source": summary["source"]["class_shares"],
        "target, as you said": prior and {name: prior.get(name, 0.0) for name in saved.classes},
        "target, estimated" if saved.is_council else "target, estimated by the vote": estimated,
        "target, as labelled": summary["test"]["class_shares"],
        "target, true": summary["test"]["true_class_shares"],
    }
    return {name: shares for name, shares in found.items() if shares}


def _proportions(saved: SavedJob) -> list[str]:
    words = [
        "How often each class occurs, in percent of windows. A large difference from source to target is a shift too."
    ]
    series = class_proportions(saved)
    adapted_to, labelled = saved.summary["target"]["windows"], saved.summary["test"]["windows"]
    if any("estimated" in name for name in series):
        whose = "" if saved.is_council else " of the vote"
        words.append(f"The estimate is the mean of the probabilities{whose}.")
        if adapted_to != labelled:
            words.append(
                f"It covers the {adapted_to:,} windows adapted to; the labels are those of the other {labelled:,}."
            )
    missing = [name for name, share in series["target, as labelled"].items() if not share]
    if missing:
        words.append(f"No window was labelled {listed(missing, 'or')}. Check whether that can be right.")
    return chart("class-shares", plots.class_shares(saved.classes, series, _COLOURS), " ".join(words))


def _confidence(saved: SavedJob) -> list[str]:
    confidence, K = saved.confidence, len(saved.classes)
    half = min(99, int(100 * np.median(confidence)))  # nothing is more than 100 %
    words = [
        f"How sure the labels are: half of them more than {half} %. With {K} classes, {100 / K:.0f} % is a guess.",
        "A sure label is not always right: if the target differs much from the source, wrong labels can be sure too.",
    ]
    changed = saved.summary["test"].get("changed")
    if changed is not None:
        words.append(f"Adaptation changed {changed:,} of {len(confidence):,} labels.")
    return chart("confidence", plots.confidence_histogram(confidence, K), " ".join(words))


def witness_section(saved: SavedJob) -> list[str]:
    """What a witness is, how much each was believed, and which agreed with which."""
    rows = [
        f'<tr><th scope="row">{rank}. {escape(witness_in_words(witness, view))}</th>'
        f'<td class="barred">{bar(accuracy)} {escape(percent(accuracy))}</td></tr>'
        for rank, (witness, view, accuracy) in enumerate(saved.witnesses, start=1)
    ]
    head = '<tr><th>witness</th><th class="text">agrees with the labels</th></tr>'
    return [
        '<section id="witnesses"><h2>Which witnesses were believed</h2>',
        f"<p>The labels come from {counted(len(saved.witnesses), 'simple classifier')}, here called witnesses. Each "
        "looks at the signals in its own way and learned from the labelled source:</p>",
        "<h4>What they look at</h4>",
        _defined({part for one in saved.witnesses for part in one.witness.split()}, _KINDS),  # as "relearned linear"
        "<h4>How they see the signals</h4>",
        _defined({one.view for one in saved.witnesses}, _VIEWS),
        "<p>No witness is right everywhere, and nobody knows in advance which one to believe on this target. Comparing "
        "them shows it: a witness that often agrees with the others, class by class, counts more.</p>",
        f'<table class="ranking believed"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>',
        '<p class="notes">To agree with the labels is not the same as to be right: if a label is wrong, so are the '
        "witnesses that agree with it. Relearned witnesses were trained on these labels, so they agree almost always."
        "</p>",
        *_agreement(saved),
        "</section>",
    ]


def _defined(names: set[str], words: Mapping[str, str]) -> str:
    """What some names mean, in the order of `words`; names without a meaning come last."""
    order = [name for name in words if name in names] + sorted(names - set(words))
    return definitions((name, words.get(name, "")) for name in order)


def _agreement(saved: SavedJob) -> list[str]:
    explanation = saved.explanation
    if not isinstance(explanation, CouncilExplanation) or len(explanation.seats) < 2 or not len(explanation):
        return []
    place = {seat: s for s, seat in enumerate(explanation.seats)}
    order = [place[one[:2]] for one in saved.witnesses if one[:2] in place]
    words = (
        f"How often two witnesses give the same label, in percent, on the {counted(len(explanation), 'window')} of "
        "this page; the numbers of the witnesses are those of the table. Dark is agreement."
    )
    if len(explanation) < len(saved.predictions):
        words += " Half of these windows are the least sure ones; on the others the witnesses agree more often."
    names = [", ".join(explanation.seats[s]) for s in order]
    return chart("agreement", plots.agreement(names, agreement(explanation.votes[:, order])), words)


def agreement(votes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of windows for which two witnesses give the same label, (S, S), from votes (n, S)."""
    return (votes[:, :, None] == votes[:, None, :]).mean(axis=0)
