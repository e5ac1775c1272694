"""The most confident rows of each predicted class, so that easy classes do not crowd out the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils import errors
from transpl.nn.rows import floor_share


def most_confident_per_class(labels: ArrayLike, confidence: ArrayLike, share: float) -> NDArray[np.bool_]:
    r"""Of the n_k rows with label k, mark the max(floor(share n_k), 1) most confident; a share of 0 marks none.

    labels, confidence : (n,); of equal confidence the first rows
    returns : (n,); a class that nobody has been given is no matter
    """
    errors.check_fraction("share", share, zero=True, one=True)
    y, c = np.asarray(labels), np.asarray(confidence, np.float64)
    if y.ndim != 1 or y.shape != c.shape:
        expected = f"one per label, shape {y.shape}"
        raise errors.invalid("confidence", expected=expected, got=c.shape, advice="Rank the rows that have labels.")
    chosen = np.zeros(len(y), np.bool_)
    for k in np.unique(y) if share > 0 else ():
        rows = np.flatnonzero(y == k)
        best = np.argsort(-c[rows], kind="stable")[: max(floor_share(share, len(rows)), 1)]
        chosen[rows[best]] = True
    return chosen


def round_share(i: int, rounds: int) -> float:
    """i / (rounds - 1): the share kept after round i = 0..rounds-1; a single round keeps all."""
    errors.check_int("rounds", rounds, least=1)
    errors.check_int("i", i, least=0)
    return 1.0 if rounds == 1 else min(1.0, i / (rounds - 1))
