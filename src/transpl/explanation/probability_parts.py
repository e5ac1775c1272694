r"""Parts of a lead in probability.

A channel gives label a rather than b the margin

    share_d (p_a - p_b) = share_d (p_a + p_b) tanh(o_d / 2),    o_d = \sum_t score_{d,t} + prior.

It is shared out among the terms of o_d in proportion to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl.explanation.odds import Odds

if TYPE_CHECKING:
    from transpl.explanation.explanation import Explanation


class Parts(NamedTuple):
    """Parts of a margin; what a channel has beside its transitions is the prior's.

    transitions : (D, N-1); channels : (D,)
    """

    transitions: NDArray[np.float64]
    channels: NDArray[np.float64]


def probability_parts(one: Explanation, a: int, b: int, odds: Odds) -> Parts:
    """Split y_a - y_b of an explanation of one window."""
    votes = one.votes[0]
    return shared_out(votes[:, a], votes[:, b], odds)


def shared_out(votes_a: NDArray[np.float64], votes_b: NDArray[np.float64], odds: Odds) -> Parts:
    """Split the difference of what channels add to a and to b, (D,) each: share_d p_a and share_d p_b."""
    with np.errstate(invalid="ignore"):  # infinite odds are the prior's part
        total = odds.scores.sum(axis=1) + odds.prior
        slopes = _slope(total, votes_a + votes_b)
        transitions = np.nan_to_num(odds.scores * slopes[:, None], nan=0.0)
    return Parts(transitions, votes_a - votes_b)


def _slope(total: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scale * tanh(total / 2) / total, and its limit scale / 2 at 0."""
    safe = np.where(total == 0, 1.0, total)
    return scale * np.where(total == 0, 0.5, np.tanh(safe / 2) / safe)
