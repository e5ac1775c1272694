r"""How much each transition, each channel and the prior moved the vote of the channels.

A channel gives label a rather than b the margin

    share_d (p_a - p_b) = share_d (p_a + p_b) tanh(o_d / 2),    o_d = \sum_t score_{d,t} + prior.

It is shared out among the terms of o_d in proportion to them. No part is estimated: transitions and prior add up to the
channel, channels to the lead of a label over another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from transpl.markov.explanation.explanation import Explanation


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


class Odds(NamedTuple):
    r"""Natural logarithms, for class a against class b; in all a channel says \sum_t score_{d,t} + prior.

    transitions : o_{d,t} = log p(s_{t+1} | s_t, a, d) - log p(s_{t+1} | s_t, b, d), (D, N-1)
    scores : o_{d,t} / L_d, (D, N-1)
    prior : (log p(a) - log p(b)) / \tau
    """

    transitions: NDArray[np.float64]
    scores: NDArray[np.float64]
    prior: float


class Parts(NamedTuple):
    """Parts of a margin; what a channel has beside its transitions is the prior's.

    transitions : (D, N-1); channels : (D,)
    """

    transitions: NDArray[np.float64]
    channels: NDArray[np.float64]


def contributions_of(one: Explanation, label: Any = None, against: Any = None) -> Contributions:
    """Split the margin of an explanation of one window."""
    (a, b), labels, votes = one.rivals(label, against), one.classes.tolist(), one.votes[0]
    odds = _odds_of(one, a, b)
    parts = shared_out(votes[:, a], votes[:, b], odds)
    return Contributions(
        labels[a],
        labels[b],
        odds.transitions,
        parts.transitions,
        parts.channels - parts.transitions.sum(axis=1),
        parts.channels,
        float(parts.channels.sum()),
    )


def shared_out(votes_a: NDArray[np.float64], votes_b: NDArray[np.float64], odds: Odds) -> Parts:
    """Split the difference of what channels add to a and to b, (D,) each: share_d p_a and share_d p_b."""
    with np.errstate(invalid="ignore"):  # infinite odds are the prior's part
        total = odds.scores.sum(axis=1) + odds.prior
        slopes = _slope(total, votes_a + votes_b)
        transitions = np.nan_to_num(odds.scores * slopes[:, None], nan=0.0)
    return Parts(transitions, votes_a - votes_b)


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a - b, 0 where both are -inf: neither class is known, so nothing speaks for either."""
    unknown = np.isneginf(a) & np.isneginf(b)
    return np.where(unknown, 0.0, a) - np.where(unknown, 0.0, b)


def _odds_of(one: Explanation, a: int, b: int) -> Odds:
    """Compare two classes in an explanation of one window; +-inf where one of them is impossible."""
    terms = one.transition_log_probabilities[0]
    transitions = difference(terms[..., a], terms[..., b])
    return Odds(transitions, transitions / one.divisors[0][:, None], _prior_odds(one, a, b))


def _prior_odds(one: Explanation, a: int, b: int) -> float:
    if one.prior is None:
        return 0.0
    with np.errstate(divide="ignore"):
        log_prior = np.log(one.prior) / one.prior_temperature
    return float(difference(log_prior[a], log_prior[b]))


def _slope(total: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scale * tanh(total / 2) / total, and its limit scale / 2 at 0."""
    safe = np.where(total == 0, 1.0, total)
    return scale * np.where(total == 0, 0.5, np.tanh(safe / 2) / safe)
