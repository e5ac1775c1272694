"""What the explorer shows, computed here and only drawn by the page: plain data, small enough to mail.

A label is shown as moved by voters: by channels where channels vote, by witnesses, class shares and neighbours where a
council decides. Their parts add up to the lead of the label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.council import CouncilContributions, CouncilExplanation, witness_in_words
from transpl.markov import MAX_EXPLAINED, BaseExplanation, Explanation, windows_to_explain
from transpl.report.adaptation.saved import Saved
from transpl.report.adaptation.signals import POINTS, packed

_DIGITS = 6
_ROOM = 6e6  # characters for all windows; plotly and the rest of the page take about as much
_FEWEST = 20
_STEPS = 5  # on either side
_PART = 5  # place in a step
_FEATURES = 5  # on either side
_SAME = 5e-4  # probabilities are shown in tenths of a percent
_IMPOSSIBLE = 1e4  # log odds, in place of infinite ones, which JSON does not know
_OTHERS = ("how common the class is here", "known labels, its recording, neighbours in time")


def explorer_data(saved: Saved) -> dict[str, Any]:
    """All windows that fit, and what is the same for all of them; probabilities are rounded to 6 digits."""
    assert saved.explanation is not None
    explanation = saved.explanation
    explanation = explanation[windows_to_explain(explanation.answers, windows_that_fit(explanation))]
    origins = saved.origins(explanation.windows)
    return {
        "classes": [str(label) for label in explanation.classes],
        "channels": list(explanation.channel_names),
        "patchLength": explanation.patch_length,
        "signals": None if explanation.signals is None else packed(explanation.signals),
        "undone": bool(saved.undone),
        **_for_all(explanation),
        "windows": [_window(explanation[i], origins[i]) for i in range(len(explanation))],
    }


def windows_that_fit(explanation: BaseExplanation) -> int:
    """How many windows the page has room for."""
    _, D, N = explanation.codes.shape
    K, T = len(explanation.classes), 0 if explanation.signals is None else explanation.signals.shape[-1]
    voters = len(explanation.seats) if isinstance(explanation, CouncilExplanation) else D
    characters = D * (2.7 * min(T, POINTS) + 2.2 * N + 10) + voters * (9 * K + 10) + 20 * K + 1000
    return int(np.clip(_ROOM / characters, _FEWEST, MAX_EXPLAINED))


def _for_all(explanation: BaseExplanation) -> dict[str, Any]:
    if isinstance(explanation, CouncilExplanation):
        return {
            "kind": "council",
            "voters": [*(", ".join(seat) for seat in explanation.seats), *_OTHERS],
            "answersDiffer": not np.allclose(explanation.answers, explanation.probabilities, atol=_SAME),
            "accuracies": _rounded(explanation.accuracies),
            "features": [list(name) for name in explanation.feature_names],
            "linear": None if explanation.linear_view is None else witness_in_words("linear", explanation.linear_view),
        }
    assert isinstance(explanation, Explanation)
    return {
        "kind": "channels",
        "voters": list(explanation.channel_names),
        "weights": _rounded(explanation.weights),
        "shares": explanation.shares.tolist(),
        "mode": explanation.mode,
    }


def _window(one: BaseExplanation, origin: str) -> dict[str, Any]:
    """An explanation of one window; short names, because there are hundreds."""
    return {
        "row": int(one.windows[0]),
        "origin": origin,
        "sentence": one.sentence(0),
        "vote": _rounded(one.probabilities[0]),
        "answer": _rounded(one.answers[0]),
        "codes": one.codes[0].tolist(),
        "near": _nearest(one),
        **_evidence(one),
    }


def _evidence(one: BaseExplanation) -> dict[str, Any]:
    """What each voter says alone, label and runner-up, and what spoke for either; less if there is only one class."""
    rivals = len(one.classes) > 1
    if isinstance(one, CouncilExplanation):
        says, found = one.seat_answers[0], _of_council(one) if rivals else {}
    else:
        assert isinstance(one, Explanation)
        says, found = one.posteriors[0], _of_channels(one) if rivals else {}
    return {"label": 0, "against": None, "says": _rounded(says), **found}


def _of_channels(one: Explanation) -> dict[str, Any]:
    found = one.contributions(0)
    return {
        "label": one.class_index("label", found.label),
        "against": one.class_index("against", found.against),
        "margin": _round(found.margin),
        "parts": _rounded(found.channels),
        **_strongest(steps_of(one.codes[0], found.transitions, found.log_odds)),
    }


def _of_council(one: CouncilExplanation) -> dict[str, Any]:
    found = one.contributions(0)
    codes = _finite(one.code_parts(0))
    parts = _finite(np.append(found.witnesses, [found.bias, found.rest]))
    return {
        "label": one.class_index("label", found.label),
        "against": one.class_index("against", found.against),
        "margin": _round(_finite(np.array(found.log_odds)).item()),
        "parts": _rounded(parts),
        "agree": int((one.votes[0] == one.probabilities[0].argmax()).sum()),
        "channelParts": _rounded(codes.sum(axis=1)),
        "codeMargin": _round(codes.sum()),
        **_strongest(steps_of(one.codes[0], codes, one.code_parts(0))),
        **_features(one, found),
    }


def _features(one: CouncilExplanation, found: CouncilContributions) -> dict[str, Any]:
    """The linear witness: its log odds in all, and its strongest features as number, value and part."""
    linear = one.linear_parts(0, found.label, found.against)
    if linear is None or one.features is None:
        return {}
    parts, values = linear.features, one.features[0]
    strongest = np.argsort(-np.abs(parts), kind="stable")

    def named(chosen: NDArray[np.bool_]) -> list[list[Any]]:
        return [[int(f), _round(values[f]), _round(parts[f])] for f in strongest[chosen[strongest]][:_FEATURES]]

    return {
        "linearMargin": _round(_finite(parts.sum() + linear.bias).item()),
        "featuresFor": named(parts > 0),
        "featuresOther": named(parts < 0),
    }


def _strongest(steps: list[list[Any]]) -> dict[str, Any]:
    """The strongest steps for the label and for the other class."""
    ordered = sorted(steps, key=lambda step: -abs(step[_PART]))
    return {
        "for": [step for step in ordered if step[_PART] > 0][:_STEPS],
        "other": [step for step in ordered if step[_PART] < 0][:_STEPS],
    }


def steps_of(
    codes: NDArray[np.integer], contributions: NDArray[np.float64], log_odds: NDArray[np.float64]
) -> list[list[Any]]:
    """Each step from a code to the next that a window (D, N) has: channel, both codes, how often, position of the
    first, its contribution in all, its log-odds (null if infinite)."""
    steps = []
    for d, (before, after) in enumerate(zip(codes[:, :-1], codes[:, 1:], strict=True)):
        pairs = np.stack([before, after], axis=1)[after >= 0]
        kinds, first, kind = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        parts = np.bincount(kind.ravel(), contributions[d, : len(pairs)], len(kinds))
        often = np.bincount(kind.ravel(), minlength=len(kinds))
        steps += [
            [d, *kinds[i].tolist(), int(often[i]), int(first[i]), _round(parts[i]), _round(log_odds[d, first[i]])]
            for i in range(len(kinds))
        ]
    return steps


def _nearest(one: BaseExplanation) -> list[list[Any]]:
    """Row, class and distance of source windows."""
    if one.nearest is None:
        return []
    found = zip(one.nearest.rows[0], one.nearest.labels[0], one.nearest.distances[0], strict=True)
    return [[int(row), one.class_index("label", label), _round(distance)] for row, label, distance in found]


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(values, -_IMPOSSIBLE, _IMPOSSIBLE)


def _rounded(values: NDArray[np.float64]) -> list[Any]:
    return (np.round(values, _DIGITS) + 0.0).tolist()


def _round(value: float) -> float | None:
    return round(float(value), _DIGITS) + 0.0 if np.isfinite(value) else None
