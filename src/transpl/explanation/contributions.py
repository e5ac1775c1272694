r"""How much each transition, each channel, the prior and the classifier moved the vote.

The lead of a label over another is a difference of probabilities where channels are joined by their mean
(`probability_parts`), and of log probabilities where a product or a power is involved (`log_odds_parts`). No part is
estimated: transitions and prior add up to the channel, channels and classifier to the lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transpl.errors import wrong
from transpl.explanation.log_odds_parts import log_odds_parts
from transpl.explanation.odds import odds_of
from transpl.explanation.probability_parts import probability_parts

if TYPE_CHECKING:
    from transpl.explanation.explanation import Explanation

PROBABILITY, LOG_ODDS = "probability", "log odds"


@dataclass(frozen=True, eq=False)
class Contributions:
    """What spoke for `label` (above 0) and for `against` (below 0) in one window.

    log_odds : (D, N-1) of each transition, for `label` against `against`
    transitions : (D, N-1) its part of the margin
    prior : (D,) the part that is left: the prior's, and all of it where the source never showed one of both classes
    channels : (D,) transitions and prior of each channel
    margin : y_label - y_against, or log y_label - log y_against; the sum of `channels` and `classifier`
    classifier : the part of the source network's own opinion; 0 where it does not vote
    scale : what all parts are parts of, a difference of "probability" or "log odds"

    For log odds a probability below 1e-12 counts as 1e-12.
    """

    label: Any
    against: Any
    log_odds: NDArray[np.float64]
    transitions: NDArray[np.float64]
    prior: NDArray[np.float64]
    channels: NDArray[np.float64]
    margin: float
    classifier: float = 0.0
    scale: str = PROBABILITY


def contributions_of(one: Explanation, label: Any = None, against: Any = None) -> Contributions:
    """Split the margin of an explanation of one window."""
    (a, b), labels, scale = rivals(one, label, against), one.classes.tolist(), scale_of(one)
    odds = odds_of(one, a, b)
    parts = (probability_parts if scale == PROBABILITY else log_odds_parts)(one, a, b, odds)
    return Contributions(
        labels[a],
        labels[b],
        odds.transitions,
        parts.transitions,
        parts.channels - parts.transitions.sum(axis=1),
        parts.channels,
        float(parts.channels.sum()) + parts.classifier,
        parts.classifier,
        scale,
    )


def scale_of(explanation: Explanation) -> str:
    """What the parts of its margins are parts of."""
    plain = explanation.vote == "mean" and explanation.classifier_sharpness is None and explanation.temper == 1
    return PROBABILITY if plain else LOG_ODDS


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
