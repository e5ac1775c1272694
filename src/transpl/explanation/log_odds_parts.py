r"""Parts of a lead in log odds, where channels are joined by the product, or codes and classifier are, or tempered.

    log y_a - log y_b = c (log v_a - log v_b) + c (log q'_a - log q'_b),

v by the codes, q' the classifier's opinion at its sharpness, c half the temper; without a classifier c is the temper
and q' has no part. By the product

    log v_a - log v_b = \sum_d share_d (\sum_t score_{d,t} + prior)

is a sum already. By the mean it is (v_a - v_b) / max(v_a, v_b) times a slope, and that difference is shared out as in
`probability_parts`. All are made of logarithms, for v may be too small for a float where y is not.

A probability y below 1e-12 counts as 1e-12; all parts then shrink alike. Where a class is impossible (v = 0), the
classifier has no say, and neither have transitions, for it was the source or the prior that knew nothing of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from transpl.explanation.odds import Odds
from transpl.explanation.probability_parts import Parts, shared_out
from transpl.markov.joining import log_opinion, log_votes

if TYPE_CHECKING:
    from transpl.explanation.explanation import Explanation

LEAST = 1e-12
CLASSIFIERS_SHARE = 0.5  # of the say, where it votes


def log_odds_parts(one: Explanation, a: int, b: int, odds: Odds) -> Parts:
    """Split log y_a - log y_b of an explanation of one window."""
    y, log_v = one.probabilities[0].tolist(), one.log_code_probabilities[0].tolist()
    margin = math.log(max(y[a], LEAST)) - math.log(max(y[b], LEAST))
    if math.inf in (-log_v[a], -log_v[b]):
        return Parts(np.zeros_like(odds.scores), one.shares * margin)
    of_codes, (c, opinion) = log_v[a] - log_v[b], _classifier(one, a, b)
    parts = _product_parts(one, odds) if one.vote == "product" else _mean_parts(one, a, b, odds, of_codes)
    kept = c * _kept(margin, c * (of_codes + opinion), min(y[a], y[b]))
    return _times(parts, kept)._replace(classifier=kept * opinion)


def _product_parts(one: Explanation, odds: Odds) -> Parts:
    r"""share_d score_{d,t}, and share_d (\sum_t score_{d,t} + prior)."""
    transitions = one.shares[:, None] * odds.scores
    return Parts(transitions, transitions.sum(axis=1) + one.shares * odds.prior)


def _mean_parts(one: Explanation, a: int, b: int, odds: Odds, log_ratio: float) -> Parts:
    """log v_a - log v_b in proportion to what each channel adds to v_a - v_b."""
    votes, log_v = log_votes(one.log_posteriors, one.shares)[0], one.log_code_probabilities[0]
    larger = max(log_v[a], log_v[b])
    parts = shared_out(np.exp(votes[:, a] - larger), np.exp(votes[:, b] - larger), odds)
    return _times(parts, _log_slope(log_ratio))


def _classifier(one: Explanation, a: int, b: int) -> tuple[float, float]:
    """Return c and log q'_a - log q'_b."""
    if one.opinions is None or one.classifier_sharpness is None:
        return one.temper, 0.0
    opinion = log_opinion(one.opinions, one.classifier_sharpness)[0]
    return CLASSIFIERS_SHARE * one.temper, float(opinion[a] - opinion[b])


def _log_slope(log_ratio: float) -> float:
    """Return log (a / b) divided by (a - b) / max(a, b), 1 in the limit; exact also where both are nearly the same."""
    size = abs(log_ratio)
    return size / -math.expm1(-size) if size else 1.0


def _kept(margin: float, whole: float, least_likely: float) -> float:
    """The part of the log odds that is left of them where a probability counts as `LEAST`."""
    if least_likely >= LEAST or whole == 0:
        return 1.0
    return min(max(margin / whole, 0.0), 1.0)


def _times(parts: Parts, factor: float) -> Parts:
    return Parts(factor * parts.transitions, factor * parts.channels)
