"""The explorer: choose a window, see its signal, who voted for what and why. The page's script fills it.

All numbers are computed here; the script only draws them. A label is explained by voters: channels if channels vote;
witnesses, class shares and neighbours if a council decides. Their parts add up to the lead of the label.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.council import CouncilExplanation, witness_in_words
from transpl.markov import MAX_EXPLAINED, BaseExplanation, Explanation, windows_to_explain
from transpl.report.adaptation.saved_job import SavedJob
from transpl.report.html_parts import choice, script_data

POINTS = 512  # of a drawn signal; a page is hardly wider in pixels
ABSENT = 65535  # level of a step after the end of a shorter window
_DIGITS = 6
_ROOM = 6e6  # characters for all windows; plotly and the rest of the page take about as much
_FEWEST = 20  # windows in the page, however large they are
_STEPS = 5  # strongest ones shown for either class
_FEATURES = 5  # strongest ones shown for either class
_SAME = 5e-4  # probabilities are shown in tenths of a percent
_IMPOSSIBLE = 1e4  # replaces infinite log odds, which JSON does not have
_OTHER_VOTERS = ("how common the class is here", "known labels, its recording, neighbours in time")


def explorer_section(saved: SavedJob) -> list[str]:
    """Controls, empty places and the data; one line if the folder explains nothing."""
    title = '<section id="explorer" aria-labelledby="why"><h2 id="why">Why a window got its label</h2>'
    if saved.explanation is None or not len(saved.explanation):
        return [
            title,
            "<p>Single windows are not shown: this folder has no explanation.npz. transpl adapt and demo write it for "
            "a single target; for one of many targets, or for older results, run transpl adapt on that target.</p>",
            "</section>",
        ]
    data = explorer_data(saved)
    shown, all_windows = len(data["windows"]), len(saved.predictions)
    some = (
        f"This page has {shown:,} of {all_windows:,} windows: half are the ones to check first, the others spread over "
        "classes."
    )
    differ = ("agree", "witnesses disagree most first") if saved.is_council else ("odds", "vote and label differ first")
    return [
        title,
        "<noscript><p>The explorer needs scripts. predictions.csv has the labels.</p></noscript>",
        *([] if shown == all_windows else [f'<p class="notes">{some}</p>']),
        '<div class="controls" hidden>',
        '<span class="stepper"><button type="button" id="previous" aria-keyshortcuts="ArrowLeft">◀ Previous</button> '
        '<button type="button" id="next" aria-keyshortcuts="ArrowRight">Next ▶</button></span>',
        choice("window-list", "window", []),
        choice("window-order", "order", [("check", "to check first"), differ, ("number", "by number")]),
        '<label>go to number <input id="window-number" type="search" inputmode="numeric" size="6"></label>',
        "</div>",
        '<p id="window-status" role="status" class="notes"></p>',
        *_panel(is_council=saved.is_council),
        script_data("explorer-data", data),
        "</section>",
    ]


def _panel(*, is_council: bool) -> list[str]:
    """Empty places that the script fills."""
    voters = "What each witness adds" if is_council else "Which channels moved the vote"
    numbers = f"All numbers of this {'label' if is_council else 'vote'}"
    more_witnesses = '<button type="button" id="all-witnesses" hidden>Show the other witnesses</button>'
    codes = '<h4>What the codes say</h4><p class="notes" id="codes-words"></p>'
    linear = [
        '<div id="linear"><h4>What the numbers of the linear witness say</h4><p class="notes" id="linear-words"></p>',
        *_two_lists("features-for", "features-against"),
        "</div>",
    ]
    return [
        '<div id="window-panel" tabindex="-1" hidden>',
        '<h3 id="window-title"></h3><p id="window-sentence"></p>',
        f'<div class="columns {"of-council" if is_council else ""}">',
        '<div><h4>Probability of each class</h4><div id="window-classes"></div></div>',
        f'<div><h4>{voters}, largest effect first</h4><p class="notes" id="votes-words"></p>',
        '<div id="window-votes" tabindex="-1"></div>',
        more_witnesses if is_council else "",
        "</div></div>",
        '<h4>The signal, and the code of each piece</h4><p class="notes" id="signal-words"></p>',
        '<div id="window-signals" tabindex="-1"></div>',
        '<button type="button" id="all-signals" hidden>Show the other channels</button>',
        codes if is_council else "",
        *_two_lists("for", "against"),
        *(linear if is_council else []),
        '<div id="nearest"><h4>The most similar source windows</h4><ol id="window-nearest"></ol></div>',
        f'<details id="numbers"><summary>{numbers}</summary>'
        f'<div class="wide" tabindex="0" role="region" aria-label="{numbers}"></div></details>',
        "</div>",
    ]


def _two_lists(left: str, right: str) -> list[str]:
    return [
        f'<div class="columns"><div><h4 id="{left}-title"></h4><ol id="window-{left}"></ol></div>',
        f'<div><h4 id="{right}-title"></h4><ol id="window-{right}"></ol></div></div>',
    ]


def explorer_data(saved: SavedJob) -> dict[str, Any]:
    """As many windows as fit, and what is the same for all of them; probabilities have 6 digits."""
    assert saved.explanation is not None
    ranks = np.argsort(saved.check_order, kind="stable")
    order = np.argsort(ranks[saved.explanation.windows], kind="stable")
    rows = windows_to_explain(saved.explanation.answers, windows_that_fit(saved.explanation), order)
    explanation = saved.explanation[rows]
    origins = saved.origins(explanation.windows)
    truth = None if saved.truth is None else saved.truth[explanation.windows].tolist()
    return {
        "classes": [str(label) for label in explanation.classes],
        "channels": list(explanation.channel_names),
        "patchLength": explanation.patch_length,
        "signals": None if explanation.signals is None else pack_signals(explanation.signals),
        "undone": bool(saved.undone),
        **_common_data(explanation),
        "check": ranks[explanation.windows].tolist(),
        "truth": truth,
        "windows": [_window_data(explanation[i], origins[i]) for i in range(len(explanation))],
    }


def windows_that_fit(explanation: BaseExplanation) -> int:
    """How many windows the page has room for."""
    _, D, N = explanation.codes.shape
    K, T = len(explanation.classes), 0 if explanation.signals is None else explanation.signals.shape[-1]
    voters = len(explanation.seats) if isinstance(explanation, CouncilExplanation) else D
    characters = D * (2.7 * min(T, POINTS) + 2.2 * N + 10) + voters * (9 * K + 10) + 20 * K + 1000
    return int(np.clip(_ROOM / characters, _FEWEST, MAX_EXPLAINED))


def pack_signals(signals: NDArray[np.float32]) -> dict[str, Any]:
    """Every `stride`-th step of (n, D, T), in 65535 levels from `low` to `high` of each channel, as base64.

    value = low_d + level / 65534 (high_d - low_d); level 65535 is a step after the end of a shorter window.
    """
    stride = -(-signals.shape[-1] // POINTS)
    kept = signals[..., ::stride].astype(np.float64)
    known = np.isfinite(kept)
    low = np.where(known, kept, np.inf).min(axis=(0, 2))
    high = np.where(known, kept, -np.inf).max(axis=(0, 2))
    span = np.where(high > low, high - low, 1.0)[:, None]
    levels = np.where(known, np.round((np.where(known, kept, 0.0) - low[:, None]) / span * (ABSENT - 1)), ABSENT)
    return {
        "steps": signals.shape[-1],
        "stride": stride,
        "points": kept.shape[-1],
        "low": low.tolist(),
        "high": (low + span[:, 0]).tolist(),
        "data": base64.b64encode(levels.astype("<u2").tobytes()).decode(),
    }


def _common_data(explanation: BaseExplanation) -> dict[str, Any]:
    if isinstance(explanation, CouncilExplanation):
        return {
            "kind": "council",
            "voters": [*(", ".join(seat) for seat in explanation.seats), *_OTHER_VOTERS],
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


def _window_data(one: BaseExplanation, origin: str) -> dict[str, Any]:
    """An explanation of one window; short names, because there are hundreds."""
    decided = len(one.classes) > 1  # a single class has nothing to be compared with
    if isinstance(one, CouncilExplanation):
        alone, evidence = one.seat_answers[0], _council_evidence(one) if decided else {}
    else:
        assert isinstance(one, Explanation)
        alone, evidence = one.posteriors[0], _channel_evidence(one) if decided else {}
    nearest = []
    if one.nearest is not None:
        found = zip(one.nearest.rows[0], one.nearest.labels[0], one.nearest.distances[0], strict=True)
        nearest = [[int(row), one.class_index("label", label), _round(distance)] for row, label, distance in found]
    return {
        "row": int(one.windows[0]),
        "origin": origin,
        "sentence": one.sentence(0),
        "vote": _rounded(one.probabilities[0]),
        "answer": _rounded(one.answers[0]),
        "codes": one.codes[0].tolist(),
        "near": nearest,  # row, class and distance of source windows
        "says": _rounded(alone),  # what each voter says alone
        "label": 0,
        "against": None,
        **evidence,
    }


def _channel_evidence(one: Explanation) -> dict[str, Any]:
    found = one.contributions(0)
    return {
        "label": one.class_index("label", found.label),
        "against": one.class_index("against", found.against),
        "margin": _round(found.margin),
        "parts": _rounded(found.channels),
        **_strongest(steps_of(one.codes[0], found.transitions, found.log_odds)),
    }


def _council_evidence(one: CouncilExplanation) -> dict[str, Any]:
    found = one.contributions(0)
    log_odds = one.code_parts(0)
    codes = _finite(log_odds)
    return {
        "label": one.class_index("label", found.label),
        "against": one.class_index("against", found.against),
        "margin": _round(_finite(found.log_odds)),
        "parts": _rounded(_finite(np.append(found.witnesses, [found.bias, found.rest]))),
        "agree": int((one.votes[0] == one.probabilities[0].argmax()).sum()),
        "channelParts": _rounded(codes.sum(axis=1)),
        "codeMargin": _round(codes.sum()),
        **_strongest(steps_of(one.codes[0], codes, log_odds)),
        **_linear_evidence(one, found.label, found.against),
    }


def _linear_evidence(one: CouncilExplanation, label: Any, against: Any) -> dict[str, Any]:
    """The linear witness: its total log odds, and its strongest features as number, value and part."""
    linear = one.linear_parts(0, label, against)
    if linear is None or one.features is None:
        return {}
    parts, values = linear.features, one.features[0]
    ordered = [[f, _round(values[f]), _round(parts[f])] for f in np.argsort(-np.abs(parts), kind="stable").tolist()]
    return {
        "linearMargin": _round(_finite(parts.sum() + linear.bias)),
        "featuresFor": [feature for feature in ordered if parts[feature[0]] > 0][:_FEATURES],
        "featuresOther": [feature for feature in ordered if parts[feature[0]] < 0][:_FEATURES],
    }


def _strongest(steps: list[list[Any]]) -> dict[str, Any]:
    """The strongest steps for the label and for the other class."""
    part = 5  # place in a step
    ordered = sorted(steps, key=lambda step: -abs(step[part]))
    return {
        "for": [step for step in ordered if step[part] > 0][:_STEPS],
        "other": [step for step in ordered if step[part] < 0][:_STEPS],
    }


def steps_of(
    codes: NDArray[np.integer], contributions: NDArray[np.float64], log_odds: NDArray[np.float64]
) -> list[list[Any]]:
    """Each kind of step from code to code in a window (D, N): channel, both codes, how often, position of the first,
    total contribution, log odds (None if infinite)."""
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


def _finite(values: Any) -> Any:
    return np.clip(values, -_IMPOSSIBLE, _IMPOSSIBLE)


def _rounded(values: NDArray[np.float64]) -> list[Any]:
    return (np.round(values, _DIGITS) + 0.0).tolist()


def _round(value: float) -> float | None:
    return round(float(value), _DIGITS) + 0.0 if np.isfinite(value) else None
