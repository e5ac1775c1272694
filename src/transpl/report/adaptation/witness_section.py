"""The witnesses: what each looks at, how much it was believed, and who agreed with whom."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

from transpl._utils.wording import counted
from transpl.council import CouncilExplanation, witness_in_words
from transpl.report.adaptation.saved_job import RankedWitness, SavedJob
from transpl.report.html_parts import bar, definitions, percent

Floats = NDArray[np.float64]

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


def witness_section(saved: SavedJob) -> list[str]:
    """What a witness is, how much each was believed, and which agreed with which."""
    return [
        '<section id="witnesses"><h2>Which witnesses were believed</h2>',
        f"<p>The labels come from {counted(len(saved.witnesses), 'simple classifier')}, here called witnesses. Each "
        "learned from the labelled source and looks at the signals in its own way. None is right everywhere, and "
        "nobody knows in advance which one to believe on this target. Comparing them shows it: a witness that often "
        "agrees with the others, class by class, counts more.</p>",
        *_table(saved),
        "<details><summary>What the witnesses look at</summary>",
        "<h4>What they measure</h4>",
        _defined({part for one in saved.witnesses for part in one.witness.split()}, _KINDS),  # as "relearned linear"
        "<h4>How they see the signals</h4>",
        _defined({one.view for one in saved.witnesses}, _VIEWS),
        "</details>",
        "</section>",
    ]


def _defined(names: set[str], words: Mapping[str, str]) -> str:
    """What some names mean, in the order of `words`; names without a meaning come last."""
    order = [name for name in words if name in names] + sorted(names - set(words))
    return definitions((name, words.get(name, "")) for name in order)


def _table(saved: SavedJob) -> list[str]:
    """A row per witness: how much it was believed, how often right by the labels, and its agreement with the others."""
    found = _ranked(saved)
    if found is None:  # the folder explains nothing
        rows = [
            _row(rank, one, f'<td class="barred">{_with_bar(one.accuracy)}</td>')
            for rank, one in _numbered(saved.witnesses)
        ]
        head = '<th>witness</th><th class="text">agrees with the labels</th>'
        return _framed(head, rows, [_AGREES])
    witnesses, believed, same = found
    most = float(believed.max()) or 1.0
    rows = [
        _row(
            rank,
            one,
            f'<td class="barred">{bar(believed[at] / most)} {escape(percent(believed[at]))}</td>'
            f"<td>{escape(percent(one.accuracy))}</td>{_cells(same, at)}",
        )
        for at, (rank, one) in enumerate(_numbered(witnesses))
    ]
    head = '<th>witness</th><th class="text">believed</th><th>agrees with the labels</th>' + "".join(
        f'<th class="cell">{rank}</th>' for rank in range(1, len(witnesses) + 1)
    )
    n = len(saved.explained)
    words = (
        f"Counted on {counted(n, 'window')}. Believed: its share in deciding between the label and the next class. "
        "In the numbered columns: how often it gives the same label as the witness of that number, in percent; dark is "
        "agreement."
    )
    if n < len(saved.predictions):
        words += " Half of these windows are the ones to check first; on the others the witnesses agree more often."
    return _framed(head, rows, [words, _AGREES])


_AGREES = (
    "To agree with the labels is not to be right: if a label is wrong, so are the witnesses that agree with it. "
    "Relearned witnesses were trained on these labels, so they agree almost always."
)


def _framed(head: str, rows: list[str], words: list[str]) -> list[str]:
    return [
        '<div class="wide" tabindex="0" role="region" aria-label="Witnesses">'
        f'<table class="believed"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>',
        *(f'<p class="notes">{each}</p>' for each in words),
    ]


def _numbered(witnesses: list[RankedWitness]) -> list[tuple[int, RankedWitness]]:
    return list(enumerate(witnesses, start=1))


def _row(rank: int, one: RankedWitness, cells: str) -> str:
    return f'<tr><th scope="row">{rank}. {escape(witness_in_words(one.witness, one.view))}</th>{cells}</tr>'


def _with_bar(share: float) -> str:
    return f"{bar(share)} {escape(percent(share))}"


def _cells(same: Floats, at: int) -> str:
    """Agreement of one witness with all, the darker the more."""
    return "".join(
        '<td class="cell same"></td>'
        if at == other
        else f'<td class="cell {"dark" if share >= _DARK else ""}" style="--part:{share:.3f}">{100 * share:.0f}</td>'
        for other, share in enumerate(same[at])
    )


_DARK = 0.6  # agreement from which a number needs a light colour


def _ranked(saved: SavedJob) -> tuple[list[RankedWitness], Floats, Floats] | None:
    """The witnesses, the most believed first; how much each was believed, (S,); who agreed with whom, (S, S)."""
    explanation = saved.explanation
    if not isinstance(explanation, CouncilExplanation) or not len(explanation):
        return None
    known = {(one.witness, one.view): one for one in saved.witnesses}
    share = believed_share(explanation)
    order = [s for s in np.argsort(-share, kind="stable").tolist() if explanation.seats[s] in known]
    same = label_agreement(explanation.votes[:, order])
    return [known[explanation.seats[s]] for s in order], share[order], same


def label_agreement(votes: NDArray[np.int64]) -> Floats:
    """Share of windows for which two witnesses give the same label, (S, S), from votes (n, S)."""
    return (votes[:, :, None] == votes[:, None, :]).mean(axis=0)


def believed_share(explanation: CouncilExplanation) -> Floats:
    """How much each witness moved the decision between the first and the second class of a window, (S,), sum 1."""
    if len(explanation.classes) < 2:
        return np.full(len(explanation.seats), 1 / len(explanation.seats))
    second, first = np.argsort(explanation.probabilities, axis=1, kind="stable")[:, -2:].T
    at = np.arange(len(explanation))
    evidence = np.maximum(explanation.evidence, _IMPOSSIBLE)
    parts = np.abs(evidence[at, :, first] - evidence[at, :, second]).mean(axis=0)
    return parts / (parts.sum() or 1.0)


_IMPOSSIBLE = -1e4  # replaces -inf
