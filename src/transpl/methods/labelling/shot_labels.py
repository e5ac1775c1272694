"""SHOT's labels: the nearest of centroids that were refined once (Liang et al., 2020)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, softmax

from transpl._utils.errors import check_choice
from transpl.methods.labelling.centroids import cosine_distances, refined_centroids
from transpl.methods.labelling.checks import check_features, check_probabilities
from transpl.methods.labelling.prototypes import unit_rows
from transpl.windows import PseudoLabels

CONFIDENCE = ("distance", "entropy")
TEMPERATURE = 0.1


def shot_labels(g: ArrayLike, p: ArrayLike, confidence: str = "distance") -> PseudoLabels:
    r"""\hat y_i = argmin_k D_ik, D the cosine distance of [g_i, 1] to the refined centroids; q_i = softmax(-D_i / 0.1).

    g : (n, d) features; p : (n, K) of the head
    confidence : "distance" takes max_k q_ik, "entropy" takes 1 - H(p_i) / ln K
    returns : labels among argmax p, with probabilities q
    """
    check_choice("confidence", confidence, CONFIDENCE)
    unit = unit_rows(with_one(g))
    head = check_probabilities(p, len(unit))
    D = cosine_distances(unit, refined_centroids(unit, head))
    q = softmax(-D / TEMPERATURE, axis=1)
    return PseudoLabels(D.argmin(axis=1), q.max(axis=1) if confidence == "distance" else certainty(head), q)


def with_one(g: ArrayLike) -> NDArray[np.float64]:
    """Append a 1 to every row: (n, d) to (n, d + 1)."""
    features = check_features(g)
    return np.hstack([features, np.ones((len(features), 1))])


def certainty(p: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""1 - H(p_i) / ln K, H(p) = -\sum_k p_k ln p_k; (n,), all 1 for a single class."""
    K = p.shape[1]
    return 1.0 - entr(p).sum(axis=1) / np.log(max(K, 2))
