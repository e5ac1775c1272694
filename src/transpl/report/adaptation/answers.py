"""The two questions that most readers come with, answered before anything else."""

from __future__ import annotations

from html import escape

import numpy as np

from transpl.report.adaptation.html import percent
from transpl.report.adaptation.saved import Saved

_DOUBTFUL = 8  # windows in the list: as many as one looks at in a sitting
_HARDLY = 0.95  # a channel that still counts so much has hardly moved


def answers(saved: Saved) -> list[str]:
    """Which sensor changed most, and which windows to check."""
    most = saved.furthest_first[0]
    trust = f" The vote of {escape(most.name)} now counts {escape(percent(most.weight))} of an unchanged sensor's."
    return cards(
        ("Which sensor changed most?", [f"<p>{moved_most(saved)}{trust if most.distance > 0 else ''}</p>"]),
        ("Which windows should I check?", windows_to_check(saved)),
    )


def cards(*questions: tuple[str, list[str]]) -> list[str]:
    """Questions with their answers, side by side."""
    found = [line for question, answer in questions for line in _card(question, answer)]
    return ['<div class="answers">', *found, "</div>"]


def _card(question: str, answer: list[str]) -> list[str]:
    return ['<div class="answer">', f"<h2>{question}</h2>", *answer, "</div>"]


def moved_most(saved: Saved) -> str:
    """Which channel changed most, and which least."""
    channels = saved.furthest_first
    most, least = channels[0], channels[-1]
    name = f"<b>{escape(most.name)}</b>"
    if most.distance <= 0:
        return "No sensor changed: source and target show the same patterns."
    if len(channels) == 1:
        return f"There is only one, {name}; it changed by {most.distance:.3f}, where 0 is unchanged."
    hardly = ", but hardly" if most.weight >= _HARDLY else ""
    if f"{most.distance:.3f}" == f"{least.distance:.3f}":
        return f"All changed alike{hardly} (distance {most.distance:.3f}, where 0 is unchanged)."
    return (
        f"{name} changed most{hardly} (distance {most.distance:.3f}, where 0 is unchanged), {escape(least.name)} least "
        f"({least.distance:.3f})."
    )


def windows_to_check(saved: Saved) -> list[str]:
    """The least sure ones."""
    rows = np.argsort(saved.confidence, kind="stable")[:_DOUBTFUL].tolist()
    explained = set() if saved.explanation is None else set(saved.explanation.windows.tolist())
    items = "".join(f"<li>{_doubtful(saved, row, row in explained)}</li>" for row in rows)
    opened = " Open one to see its signal and the reasons." if explained else ""
    return [
        f"<p>These labels are the least sure of {len(saved.confidence):,}.{opened}</p>",
        f'<ol class="doubtful">{items}</ol>',
    ]


def _doubtful(saved: Saved, row: int, explained: bool) -> str:
    """As "window 17: sit 51 % or walk 49 %"."""
    p = saved.probabilities[row]
    first = np.argsort(-p, kind="stable")[:2]
    said = " or ".join(f"{escape(saved.classes[k])} {escape(percent(p[k]))}" for k in first)
    name = f'<a href="#window-{row}">window {row}</a>' if explained else f"window {row}"
    return f"{name}: {said}"
