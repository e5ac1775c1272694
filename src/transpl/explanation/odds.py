"""How much likelier one class is than another, by the transitions of one window and by the prior."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from transpl.explanation.explanation import Explanation


class Odds(NamedTuple):
    r"""Natural logarithms, for class a against class b; in all a channel says \sum_t score_{d,t} + prior.

    transitions : o_{d,t} = log p(s_{t+1} | s_t, a, d) - log p(s_{t+1} | s_t, b, d), (D, N-1)
    scores : o_{d,t} / L_d, (D, N-1)
    prior : (log p(a) - log p(b)) / \tau
    """

    transitions: NDArray[np.float64]
    scores: NDArray[np.float64]
    prior: float


def odds_of(one: Explanation, a: int, b: int) -> Odds:
    """Compare two classes in an explanation of one window; +-inf where one of them is impossible."""
    terms = one.transition_log_probabilities[0]
    transitions = difference(terms[..., a], terms[..., b])
    return Odds(transitions, transitions / one.divisors[0][:, None], _prior_odds(one, a, b))


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a - b, 0 where both are -inf: neither class is known, so nothing speaks for either."""
    unknown = np.isneginf(a) & np.isneginf(b)
    return np.where(unknown, 0.0, a) - np.where(unknown, 0.0, b)


def _prior_odds(one: Explanation, a: int, b: int) -> float:
    if one.prior is None:
        return 0.0
    with np.errstate(divide="ignore"):
        log_prior = np.log(one.prior) / one.prior_temperature
    return float(difference(log_prior[a], log_prior[b]))
