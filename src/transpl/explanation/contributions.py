r"""How much each transition moved the vote.

A channel gives label a rather than b the margin

    share_d (p_a - p_b) = share_d (p_a + p_b) tanh(o_d / 2),    o_d = (1 / L) \sum_t o_{d,t} + prior,

where o_{d,t} = log p(s_{t+1} | s_t, a, d) - log p(s_{t+1} | s_t, b, d). The margin is shared out among the terms of o_d
in proportion to them. No part is estimated: transitions and prior add up to the channel, channels to y_a - y_b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transpl.errors import wrong

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
    terms, p = one.transition_log_probabilities[0], one.posteriors[0]
    log_odds = _difference(terms[..., a], terms[..., b])
    parts = log_odds / one.divisors[0][:, None]
    with np.errstate(invalid="ignore"):  # infinite odds are the prior's part
        total = parts.sum(axis=1) + _prior_odds(one, a, b)
        transitions = np.nan_to_num(parts * _slope(total, one.shares * (p[:, a] + p[:, b]))[:, None], nan=0.0)
    channels = one.shares * (p[:, a] - p[:, b])
    prior = channels - transitions.sum(axis=1)
    return Contributions(labels[a], labels[b], log_odds, transitions, prior, channels, float(channels.sum()))


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


def _difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a - b, 0 where both are -inf: neither class is known, so nothing speaks for either."""
    unknown = np.isneginf(a) & np.isneginf(b)
    return np.where(unknown, 0.0, a) - np.where(unknown, 0.0, b)


def _prior_odds(one: Explanation, a: int, b: int) -> NDArray[np.float64]:
    if one.prior is None:
        return np.zeros(())
    with np.errstate(divide="ignore"):
        log_prior = np.log(one.prior) / one.prior_temperature
    return _difference(log_prior[a], log_prior[b])


def _slope(total: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scale * tanh(total / 2) / total, and its limit scale / 2 at 0."""
    safe = np.where(total == 0, 1.0, total)
    return scale * np.where(total == 0, 0.5, np.tanh(safe / 2) / safe)
