"""What the explorer shows, computed here and only drawn by the page: plain data, small enough to mail."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.explanation import Contributions, Explanation, thinned
from transpl.explanation.thinning import MOST
from transpl.report.adaptation.saved import Saved
from transpl.report.adaptation.signals import POINTS, packed

_DIGITS = 6
_ROOM = 6e6  # characters for all windows; plotly and the rest of the page take about as much
_FEWEST = 20
_STEPS = 5  # on either side
_PART = 5  # place in a step


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
        "scale": "probability",  # the page also knows "log odds"
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
    found = one.contributions(0)
    steps = sorted(steps_of(one, found), key=lambda step: -abs(step[_PART]))
    return {
        "label": one.class_index("label", found.label),
        "against": one.class_index("against", found.against),
        "margin": _round(found.margin),
        "parts": _rounded(found.channels),
        "for": [step for step in steps if step[_PART] > 0][:_STEPS],
        "other": [step for step in steps if step[_PART] < 0][:_STEPS],
    }


def steps_of(one: Explanation, found: Contributions) -> list[list[Any]]:
    """Each step from a code to the next that a window has: channel, both codes, how often, position of the first, its
    part of the margin in all, its log-odds (null if infinite)."""
    codes, steps = one.codes[0], []
    for d, (before, after) in enumerate(zip(codes[:, :-1], codes[:, 1:], strict=True)):
        pairs = np.stack([before, after], axis=1)[after >= 0]
        kinds, first, kind = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        parts = np.bincount(kind.ravel(), found.transitions[d, : len(pairs)], len(kinds))
        often = np.bincount(kind.ravel(), minlength=len(kinds))
        steps += [
            [d, *kinds[i].tolist(), int(often[i]), int(first[i]), _round(parts[i]), _round(found.log_odds[d, first[i]])]
            for i in range(len(kinds))
        ]
    return steps


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
