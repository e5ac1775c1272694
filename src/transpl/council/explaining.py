"""What a council can say about its labels and its target, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.council.council import Council, Hearing
from transpl.council.witnesses.linear import Linear
from transpl.council.witnesses.statistics import statistic_names
from transpl.markov import Undone
from transpl.windows import Windows


def parts_of(council: Council, windows: Windows, hearing: Hearing, channel_names: Sequence[str]) -> dict[str, Any]:
    """The fields of a `CouncilExplanation` that tell who said what; `hearing` is of these windows."""
    return {
        "evidence": hearing.evidence,
        "bias": hearing.bias,
        "rest": hearing.rest,
        "seat_answers": hearing.answers,
        "seats": tuple(council.seat_names),
        "accuracies": np.array([standing.accuracy for standing in council.standings()]),
        **_linear(council, windows, channel_names),
    }


def undone_by(council: Council, channel_names: Sequence[str]) -> tuple[Undone, ...]:
    """What the target's sensors suffered and was undone, in the order in which it was."""
    search = council.shifts
    if search is None:
        return ()
    found = []
    for shift in search.shifts:
        score = next((c for c in search.candidates if c.shift == shift), None)
        margin, threshold = (None, None) if score is None else (score.margin, score.threshold)
        found.append(Undone(shift.sentence(channel_names), shift.kind, margin, threshold, shift.to_json()))
    return tuple(found)


def as_undone(council: Council, windows: Windows) -> Windows:
    """Windows of the target without what its sensors suffered."""
    if council.shifts is None or not council.shifts.shifts:
        return windows
    return Windows(council.shifts.undo(windows.in_memory().values), windows.lengths)


def _linear(council: Council, windows: Windows, channel_names: Sequence[str]) -> dict[str, Any]:
    """How the most reliable linear witness sees windows, and what it makes of that; nothing if there is none."""
    standings = council.standings()
    linear = [i for i, seat in enumerate(council.seats) if isinstance(seat.witness, Linear)]
    if not linear:
        return {}
    best = max(linear, key=lambda i: standings[i].accuracy)
    seat = council.seats[best]
    assert isinstance(seat.witness, Linear)
    rows = council.rows(best, windows)
    weights, bias = np.zeros((council.n_classes, rows.shape[1])), np.full(council.n_classes, -np.inf)
    weights[seat.witness.classes], bias[seat.witness.classes] = seat.witness.weights, seat.witness.bias
    return {
        "features": rows,
        "feature_weights": weights,
        "feature_bias": bias,
        "feature_names": tuple(statistic_names(channel_names)),
        "linear_view": seat.view,
    }


def signals_of(windows: Windows) -> NDArray[np.float32]:
    """The windows, NaN behind the end of shorter ones."""
    values = windows.in_memory().values
    if not windows.ragged:
        return values
    ended = np.arange(values.shape[2]) >= windows.lengths[:, None]
    return np.where(ended[:, None], np.float32(np.nan), values)
