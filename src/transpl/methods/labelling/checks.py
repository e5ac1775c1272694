"""What the rules take: finite features, and probabilities whose rows sum to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import invalid

_ROUNDING = 1e-3  # float32, or half precision, off the network


def check_features(z: ArrayLike) -> NDArray[np.float64]:
    """Return `z` as finite float64 of shape (n, d) with n >= 1, or complain."""
    features = np.asarray(z, dtype=np.float64)
    if features.ndim != 2 or len(features) == 0:
        raise invalid(
            "features", expected="shape (n, d), n >= 1", got=features.shape, advice="Give one row per window."
        )
    if not np.isfinite(features).all():
        raise invalid(
            "features", expected="finite numbers", got="NaN or infinity", advice="Check the network's output."
        )
    return features


def check_probabilities(p: ArrayLike, n: int | None = None) -> NDArray[np.float64]:
    """Return `p` as float64 (n, K) whose rows sum to 1 exactly, not only up to rounding, or complain."""
    probabilities = np.asarray(p, dtype=np.float64)
    if probabilities.ndim != 2 or 0 in probabilities.shape or n not in (None, len(probabilities)):
        expected = f"shape ({'n' if n is None else n}, K)"
        raise invalid("probabilities", expected=expected, got=probabilities.shape, advice="Give one row per window.")
    total = probabilities.sum(axis=1, keepdims=True)
    if not ((probabilities >= 0).all() and (np.abs(total - 1) < _ROUNDING).all()):
        raise invalid("probabilities", expected="rows that sum to 1", got="others", advice="Apply a softmax to logits.")
    return probabilities / total


def check_pair(p: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two opinions on the same rows, both (n, K), or complain."""
    first, second = check_probabilities(p), check_probabilities(q)
    if first.shape != second.shape:
        expected = f"two of the shape {first.shape}"
        raise invalid("probabilities", expected=expected, got=second.shape, advice="Judge the same rows and classes.")
    return first, second
