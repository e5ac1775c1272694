"""What the explorer shows, computed here and only drawn by the page: plain data, small enough to mail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.explanation import Explanation, TransitionEvidence, thinned
from transpl.explanation.thinning import MOST
from transpl.report.adaptation.saved import Saved
from transpl.report.adaptation.signals import POINTS, packed

_DIGITS = 6
_ROOM = 6e6  # characters for all windows; plotly and the rest of the page take about as much
_FEWEST = 20
_TRANSITIONS = 5  # on either side


def explorer_data(saved: Saved) -> dict[str, Any]:
    """All windows that fit, and what is the same for all of them; probabilities are rounded to 6 digits."""
    assert saved.explanation is not None
    explanation = saved.explanation
    explanation = explanation[thinned(explanation.answers, windows_that_fit(explanation))]
    origins = saved.origins(explanation.windows)
    return {
        "classes": [str(label) for label in explanation.classes],
        "channels": list(explanation.channel_names),
        "weights": _rounded(explanation.weights),
        "shares": explanation.shares.tolist(),
        "patchLength": explanation.patch_length,
        "mode": explanation.mode,
        "signals": None if explanation.signals is None else packed(explanation.signals),
        "windows": [_window(explanation[i], origins[i]) for i in range(len(explanation))],
    }


def windows_that_fit(explanation: Explanation) -> int:
    """How many windows the page has room for."""
    _, D, N = explanation.codes.shape
    K, T = len(explanation.classes), 0 if explanation.signals is None else explanation.signals.shape[-1]
    characters = D * (2.7 * min(T, POINTS) + 2.2 * N + 9 * K + 10) + 20 * K + 1000
    return int(np.clip(_ROOM / characters, _FEWEST, MOST))


def _window(one: Explanation, origin: str) -> dict[str, Any]:
    """An explanation of one window; short names, because there are hundreds."""
    return {
        "row": int(one.windows[0]),
        "origin": origin,
        "sentence": one.sentence(0),
        "vote": _rounded(one.probabilities[0]),
        "answer": _rounded(one.answers[0]),
        "says": _rounded(one.posteriors[0]),
        "codes": one.codes[0].tolist(),
        "near": _nearest(one),
        **_evidence(one),
    }


def _evidence(one: Explanation) -> dict[str, Any]:
    """Label and runner-up of the vote, and what spoke for either; nothing if there is only one class."""
    if len(one.classes) < 2:
        return {"label": 0, "against": None}
    parts, evidence = one.contributions(0), one.top_evidence(0, _TRANSITIONS)
    return {
        "label": one.class_index("label", evidence.label),
        "against": one.class_index("against", evidence.against),
        "margin": _round(parts.margin),
        "parts": _rounded(parts.channels),
        "for": _steps(one, evidence.transitions_for),
        "other": _steps(one, evidence.transitions_against),
    }


def _steps(one: Explanation, transitions: Sequence[TransitionEvidence]) -> list[list[Any]]:
    """Channel, position, part of the margin, log-odds (null if infinite)."""
    return [
        [one.channel_names.index(each.channel), each.position, _round(each.contribution), _round(each.log_odds)]
        for each in transitions
    ]


def _nearest(one: Explanation) -> list[list[Any]]:
    """Row, class and distance of source windows."""
    if one.nearest is None:
        return []
    found = zip(one.nearest.rows[0], one.nearest.labels[0], one.nearest.distances[0], strict=True)
    return [[int(row), one.class_index("label", label), _round(distance)] for row, label, distance in found]


def _rounded(values: NDArray[np.float64]) -> list[Any]:
    return (np.round(values, _DIGITS) + 0.0).tolist()


def _round(value: float) -> float | None:
    return round(float(value), _DIGITS) + 0.0 if np.isfinite(value) else None
