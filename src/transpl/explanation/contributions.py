r"""How much each transition, each channel and the prior moved the vote.

No part is estimated: transitions and prior add up to the channel, channels to the lead of a label over another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transpl.errors import wrong
from transpl.explanation.odds import odds_of
from transpl.explanation.probability_parts import probability_parts

if TYPE_CHECKING:
    from transpl.explanation.explanation import Explanation


@dataclass(frozen=True, eq=False)
class Contributions:
    """What spoke for `label` (above 0) and for `against` (below 0) in one window.

    log_odds : (D, N-1) of each transition, for `label` against `against`
    transitions : (D, N-1) its part of the margin
    prior : (D,) the part that is left: the prior's, and all of it where the source never showed one of both classes
    channels : (D,) transitions and prior of each channel
    margin : y_label - y_against, the sum of `channels`
    """

    label: Any
    against: Any
    log_odds: NDArray[np.float64]
    transitions: NDArray[np.float64]
    prior: NDArray[np.float64]
    channels: NDArray[np.float64]
    margin: float


def contributions_of(one: Explanation, label: Any = None, against: Any = None) -> Contributions:
    """Split the margin of an explanation of one window."""
    (a, b), labels = rivals(one, label, against), one.classes.tolist()
    odds = odds_of(one, a, b)
    parts = probability_parts(one, a, b, odds)
    return Contributions(
        labels[a],
        labels[b],
        odds.transitions,
        parts.transitions,
        parts.channels - parts.transitions.sum(axis=1),
        parts.channels,
        float(parts.channels.sum()),
    )


def rivals(one: Explanation, label: Any, against: Any) -> tuple[int, int]:
    """Positions of the label and of the class it is held against."""
    y = one.probabilities[0]
    if len(y) < 2:
        raise wrong(
            "against", expected="a second class", got="only one class", advice="Explain a model of two or more."
        )
    a = int(y.argmax()) if label is None else one.class_index("label", label)
    others = np.where(np.arange(len(y)) == a, -np.inf, y)
    b = int(others.argmax()) if against is None else one.class_index("against", against)
    if a == b:
        raise wrong("against", expected="another class than label", got=repr(against), advice="Choose another one.")
    return a, b
