r"""Parts of a lead in log odds, where channels are joined by the product, or codes and classifier are, or tempered.

    log y_a - log y_b = c (log v_a - log v_b) + c (log q'_a - log q'_b),

v by the codes, q' the classifier's opinion at its sharpness, c half the temper; without a classifier c is the temper
and q' has no part. By the product

    log v_a - log v_b = \sum_d share_d (\sum_t score_{d,t} + prior)

is a sum already. By the mean it is (v_a - v_b) times a slope, and v_a - v_b is shared out as in `probability_parts`.

A probability below 1e-12 counts as 1e-12; all parts then shrink alike. Where the codes rule a class out (v = 0), the
classifier has no say, and neither have transitions if it was the source or the prior that knew nothing of the class.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from transpl.explanation.odds import Odds
from transpl.explanation.probability_parts import Parts, probability_parts
from transpl.markov.joining import log_opinion

if TYPE_CHECKING:
    from transpl.explanation.explanation import Explanation

LEAST = 1e-12
CLASSIFIERS_SHARE = 0.5  # of the say, where it votes


def log_odds_parts(one: Explanation, a: int, b: int, odds: Odds) -> Parts:
    """Split log y_a - log y_b of an explanation of one window."""
    y, v = one.probabilities[0].tolist(), one.code_probabilities[0].tolist()
    margin = math.log(max(y[a], LEAST)) - math.log(max(y[b], LEAST))
    parts = _product_parts(one, odds) if one.vote == "product" else probability_parts(one, a, b, odds)
    if v[a] == 0 or v[b] == 0:
        return _of_codes_alone(one, parts, margin)
    c, opinion = _classifier(one, a, b)
    slope = _log_slope(v[a], v[b])
    kept = c * _kept(margin, c * (slope * (v[a] - v[b]) + opinion), min(y[a], y[b]))
    return _times(parts, kept if one.vote == "product" else kept * slope)._replace(classifier=kept * opinion)


def _product_parts(one: Explanation, odds: Odds) -> Parts:
    r"""share_d score_{d,t}, and share_d (\sum_t score_{d,t} + prior)."""
    with np.errstate(invalid="ignore"):  # a share of 0 times infinite odds
        transitions = one.shares[:, None] * odds.scores
        return Parts(transitions, transitions.sum(axis=1) + one.shares * odds.prior)


def _of_codes_alone(one: Explanation, parts: Parts, margin: float) -> Parts:
    """The whole margin in proportion to `parts`; by share and without transitions where these are infinite."""
    whole = float(parts.channels.sum())
    if whole != 0 and math.isfinite(whole):
        return _times(parts, margin / whole)
    return Parts(np.zeros_like(parts.transitions), one.shares * margin)


def _classifier(one: Explanation, a: int, b: int) -> tuple[float, float]:
    """Return c and log q'_a - log q'_b."""
    if one.opinions is None or one.classifier_sharpness is None:
        return one.temper, 0.0
    opinion = log_opinion(one.opinions, one.classifier_sharpness)[0]
    return CLASSIFIERS_SHARE * one.temper, float(opinion[a] - opinion[b])


def _log_slope(a: float, b: float) -> float:
    """Return (log a - log b) / (a - b), 1 / a in the limit; exact also where both are nearly the same."""
    r = (a - b) / b
    if abs(r) > 0.5:
        return (math.log(a) - math.log(b)) / (a - b)
    return (math.log1p(r) / r if r else 1.0) / b


def _kept(margin: float, whole: float, least_likely: float) -> float:
    """The part of the log odds that is left of them where a probability counts as `LEAST`."""
    if least_likely >= LEAST or whole == 0:
        return 1.0
    return min(max(margin / whole, 0.0), 1.0)


def _times(parts: Parts, factor: float) -> Parts:
    return Parts(factor * parts.transitions, factor * parts.channels)
