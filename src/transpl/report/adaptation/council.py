"""What the page says of the council: how good its labels are here, which witnesses were believed, and how it works."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.council import CouncilExplanation, witness_in_words
from transpl.report import plots
from transpl.report.adaptation.answers import cards, moved_most, windows_to_check
from transpl.report.adaptation.html import bar, chart, percent
from transpl.report.adaptation.saved import Saved
from transpl.report.wording import counted

LOW = 0.6  # estimated accuracy below which a reader is warned
_WORTH_TELLING = 0.05  # difference in the share of a class

_KINDS = {
    "codes": "which short shape follows which in the signal",
    "kernels": "how often and how strongly random short patterns occur in the signal",
    "linear": "averages, spreads and frequencies of the channels, weighed and added up",
    "trees": "the same numbers as linear, asked one after the other by many random decision trees",
    "conv": "a small neural network, tuned to the target's signals without labels",
    "vq": "as codes, with shapes that a neural network chose",
    "relearned": "the same once more, but learnt on the target, from the labels that all witnesses together gave it",
}
_VIEWS = {
    "recorded": "the signals as they are",
    "standardised": "source and target each brought to the same mean and spread per channel, so that another gain or "
    "offset makes no difference",
    "shape": "every window brought to the same mean and spread, so that only its shape is left",
}


_AGREEING = (
    "To agree with the labels is not yet to be right: where the labels are wrong, so are the witnesses that agree. "
    "Those that relearned were taught with these labels, so that they agree almost always."
)


def first_screen(saved: Saved) -> list[str]:
    """How good, what shifted, what to check."""
    return cards(
        ("How good is it here?", _how_good(saved)),
        ("What shifted?", _what_shifted(saved)),
        ("Which windows should I check?", windows_to_check(saved)),
    )


def estimated_accuracy(saved: Saved) -> Mapping[str, float] | None:
    """accuracy, low and high; from the summary, else from the scores, None in folders that do not have it."""
    found = saved.summary.get("estimated_accuracy") or (saved.metrics or {}).get("estimated_accuracy")
    return found or None


def witnesses_section(saved: Saved) -> list[str]:
    """What a witness is, how far each was believed, and which agreed with which."""
    return [
        '<section id="witnesses"><h2>Which witnesses were believed</h2>',
        f"<p>The labels come from {counted(len(saved.witnesses), 'simple classifier')}, here called witnesses. Each "
        "looks at the signals in its own way, and learnt from the source with its labels:</p>",
        *_described(saved),
        "<p>No witness is right everywhere, and nobody told which one to believe on this target. It was found out by "
        "comparing them: a witness that often agrees with the others, class by class, counts more.</p>",
        *_ranking(saved),
        f'<p class="notes">{_AGREEING}</p>',
        *_agreement(saved),
        "</section>",
    ]


def _how_good(saved: Saved) -> list[str]:
    found = estimated_accuracy(saved)
    return [*([] if found is None else _estimate(found)), *_truth(saved.metrics), *_warning(found)]


def _estimate(found: Mapping[str, float]) -> list[str]:
    accuracy, low, high = (escape(percent(found[name])) for name in ("accuracy", "low", "high"))
    return [
        f'<p class="estimate"><b>about {accuracy}</b> of the labels are right, probably between {low} and {high}.</p>',
        '<p class="notes">This is an estimate. It was made without any true label, from how the witnesses agree.</p>',
    ]


def _truth(metrics: dict[str, Any] | None) -> list[str]:
    if metrics is None or "after" not in metrics:
        return ["<p>No true labels were given to compare with.</p>"]
    after = metrics["after"]
    before = "" if "before" not in metrics else f", {_one_decimal(metrics['before'])} before adaptation"
    return [
        f"<p>True labels are known for {counted(after['windows'], 'window')}: <b>{_one_decimal(after)}</b> "
        f"are right{before}. They were used for this comparison only.</p>"
    ]


def _one_decimal(score: Mapping[str, float]) -> str:
    return escape(percent(score["accuracy"], 1))


def _warning(found: Mapping[str, float] | None) -> list[str]:
    if found is None or found["accuracy"] >= LOW:
        return []
    return [
        '<p class="warning"><b>Do not rely on these labels.</b> Probably many of them are wrong. What helps most is to '
        "label some windows by hand: <code>transpl review --model FOLDER --out to_label.csv</code> (with the folder of "
        "this page) lists the ones to look at; fill in true_label, then run transpl adapt again with "
        "<code>--labels to_label.csv</code>.</p>"
    ]


def _what_shifted(saved: Saved) -> list[str]:
    classes = _class_that_changed_most(saved)
    if not saved.undone:
        return ["<p>Nothing was undone in the target's signals.</p>", f"<p>{moved_most(saved)}</p>", *classes]
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in saved.undone)
    return [f'<ul class="undone">{items}</ul>', f"<p>As recorded: {moved_most(saved)}</p>", *classes]


def _class_that_changed_most(saved: Saved) -> list[str]:
    """Its share in the source and as labelled here, if the difference is worth a sentence."""
    here, there = saved.summary["source"]["class_shares"], saved.summary["test"]["class_shares"]
    if not here:
        return []
    most = max(saved.classes, key=lambda name: abs(there.get(name, 0.0) - here.get(name, 0.0)))
    before, after = here.get(most, 0.0), there.get(most, 0.0)
    if abs(after - before) < _WORTH_TELLING:
        return ["<p>The classes are about as common as in the source.</p>"]
    kind = "more" if after > before else "less"
    return [
        f"<p><b>{escape(most)}</b> is {kind} common: {escape(percent(before))} of the source's windows, "
        f"{escape(percent(after))} of those labelled here.</p>"
    ]


def _described(saved: Saved) -> list[str]:
    kinds = {part for one in saved.witnesses for part in one.witness.split()}  # as "relearned linear"
    views = {one.view for one in saved.witnesses}
    return [
        "<h4>What they look at</h4>",
        _definitions(kinds, _KINDS),
        "<h4>How they see the signals</h4>",
        _definitions(views, _VIEWS),
    ]


def _definitions(names: Collection[str], words: Mapping[str, str]) -> str:
    """What some names mean, in the order of `words`; those that it does not have come last, without a meaning."""
    order = [name for name in words if name in names] + sorted(name for name in names if name not in words)
    inner = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words.get(name, ''))}</dd>" for name in order)
    return f'<dl class="facts">{inner}</dl>'


def _ranking(saved: Saved) -> list[str]:
    rows = [
        f'<tr><th scope="row">{rank}. {escape(witness_in_words(witness, view))}</th>'
        f'<td class="barred">{bar(accuracy)} {escape(percent(accuracy))}</td></tr>'
        for rank, (witness, view, accuracy) in enumerate(saved.witnesses, start=1)
    ]
    head = '<tr><th>witness</th><th class="text">agrees with the labels given</th></tr>'
    return [f'<table class="ranking believed"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>']


def _agreement(saved: Saved) -> list[str]:
    explanation = saved.explanation
    if not isinstance(explanation, CouncilExplanation) or len(explanation.seats) < 2 or not len(explanation):
        return []
    place = {seat: s for s, seat in enumerate(explanation.seats)}
    order = [place[one[:2]] for one in saved.witnesses if one[:2] in place]
    names = [", ".join(explanation.seats[s]) for s in order]
    shares = agreement(explanation.votes[:, order])
    words = (
        f"How often two witnesses give the same label, in percent, on the {counted(len(explanation), 'window')} of "
        "this page; numbers are those of the table. Dark is agreement."
    )
    if len(explanation) < len(saved.predictions):
        words += " Half of these windows are the least sure ones, so that witnesses agree more often on the others."
    return chart("agreement", plots.agreement(names, shares), words)


def agreement(votes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of windows for which two witnesses say the same, (S, S), from votes (n, S)."""
    return (votes[:, :, None] == votes[:, None, :]).mean(axis=0)


_UNDOING = (
    "First it is looked whether the target's sensors suffered something simple: turned, mirrored or swapped axes, "
    "another unit or sampling rate, a dead channel. It is undone if the source explains the target much better with it."
)
_JOINING = (
    "Each witness names a class for each window. An algorithm in the manner of Dawid and Skene (1979), expectation "
    "maximisation, then finds what fits together best: the classes of the windows, how often each class occurs, and "
    "how often each witness takes which class for which. Some witnesses then learn again, on the target, from these "
    "labels, and all are joined once more."
)
_SUM = (
    "The logarithm of a class's probability is a sum: what each witness adds, weighed by how reliable it proved, the "
    "class's share, and what known labels and neighbouring windows add. The explorer shows the parts that decide "
    "between two classes; multiplied as factors they give the whole. Nothing in it is approximated."
)
_CODES = (
    "Codes are short shapes, found by k-means clustering of all pieces of the source's signals. For every class and "
    "channel it is counted how often one code follows another: a Markov chain. How well a class's chains explain the "
    "codes of a window is the likelihood of that class."
)
_DISTANCE = (
    "The same transitions are counted on the target, without labels. The distance of a channel is the mean earth "
    "mover's distance (EMD) between the rows of both transition matrices, with the cosine distance of codes as cost."
)
_LINEAR = (
    "The linear witness is a logistic regression: a weight times the value of each quantity, added up. That sum is "
    "shown part by part. Trees and kernels cannot be split in this way and are shown as a whole."
)
_NEAREST = "Similar source windows are those that share most codes at the same places."


def how_the_council_works() -> list[str]:
    """A closed box; open it for the terms of the field."""
    points = (_UNDOING, _JOINING, _SUM, _CODES, _DISTANCE, _LINEAR, _NEAREST)
    items = "".join(f"<li>{point}</li>" for point in points)
    return [f"<section><details><summary>How it works</summary><ul>{items}</ul></details></section>"]
