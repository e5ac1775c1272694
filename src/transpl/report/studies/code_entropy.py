"""Are coarse codes simpler than fine ones? The permutation entropy of every decoded code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from transpl.report.studies.decoded_codes import codes_study
from transpl.report.studies.permutation_entropy import permutation_entropy
from transpl.report.studies.subject import Subject

# The paper names neither. Patches are short (8 steps): order 3 has 6 stretches for its 3! = 6 patterns, order 4 only 5
# for 24.
ORDER, DELAY = 3, 1


def entropy_study(
    subjects: Iterable[Subject], order: int = ORDER, delay: int = DELAY, context: str = "alone"
) -> dict[str, Any]:
    """Entropies per model and book of the codes that occur in the source; and the first model's codes, to be drawn."""
    models, drawn = [], None
    for subject in subjects:
        decoded = codes_study(subject, context)
        books = {book: _with_entropy(codes, order, delay) for book, codes in decoded["books"].items()}
        entropies = {book: [code["entropy"] for code in codes] for book, codes in books.items()}
        models.append({"name": subject.name, "group": subject.group, **entropies})
        drawn = drawn or {**decoded, "books": books}
    return {"order": order, "delay": delay, "context": context, "models": models, "drawn": drawn}


def _with_entropy(codes: list[dict[str, Any]], order: int, delay: int) -> list[dict[str, Any]]:
    """Without the codes that stand for nothing: training never gave them a shape."""
    return [
        {**code, "entropy": permutation_entropy(code["values"], order, delay)}
        for code in codes
        if code["share"] > 0 and code["values"] is not None
    ]
