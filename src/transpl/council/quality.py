"""How good are the labels here? An estimate without labels, and confidence that agrees with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

Floats = NDArray[np.float64]

# Fitted by ridge regression on 113 development pairs of four data sets, each set weighing the same (docs/beyond.md).
_INTERCEPT = 2.402
_OWN_CONFIDENCE, _AGREEMENT, _BEST_VIEW = -1.975, 1.430, 0.761
_BELOW, _ABOVE = 1.2, 2.0  # in log odds
_EXTREME = 0.02  # nearer to 0 or 1, a share is told from neither


class Estimate(NamedTuple):
    """The share of this target's windows that are labelled rightly, judged without labels, and an interval."""

    accuracy: float
    low: float
    high: float


def estimate_accuracy(answers: Floats, views: Sequence[str], q: Floats) -> Estimate:
    r"""logit a = 2.402 - 1.975 logit c + 1.430 logit g + 0.761 logit v, of the labels argmax_k q (n, K).

    c : mean confidence of the seats in their own answers (S, n, K)
    g : how often two seats name the same class
    v : how often the seats of a view name the council's class, in the view where they do so most

    Seats that agree are likelier to be right, unless they are merely sure of themselves.
    """
    named, label = answers.argmax(axis=2), q.argmax(axis=1)
    S = len(named)
    same = np.array([(one == other).mean() for i, one in enumerate(named) for other in named[i + 1 :]])
    agrees = (named == label).mean(axis=1)
    best_view = max(agrees[[view == chosen for view in views]].mean() for chosen in set(views))
    signs = (answers.max(axis=2).mean(), same.mean() if S > 1 else best_view, best_view)
    weights = (_OWN_CONFIDENCE, _AGREEMENT, _BEST_VIEW)
    odds = _INTERCEPT + sum(w * logit(np.clip(x, _EXTREME, 1 - _EXTREME)) for w, x in zip(weights, signs, strict=True))
    low, high = float(expit(odds - _BELOW)), float(expit(odds + _ABOVE))
    return Estimate(float(expit(odds)), low if low > _EXTREME else 0.0, high if high < 1 - _EXTREME else 1.0)


def sharpness_for(log_scores: Floats, wanted: float) -> float:
    """The factor on log scores (n, K), at most 1, that makes the mean confidence `wanted`."""
    low, high = 1e-3, 1.0
    if _mean_confidence(log_scores, high) <= wanted:
        return high
    for _ in range(50):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _mean_confidence(log_scores, middle) < wanted else (low, middle)
    return low


def _mean_confidence(log_scores: Floats, sharpness: float) -> float:
    return float(softmax(sharpness * log_scores, axis=1).max(axis=1).mean())
