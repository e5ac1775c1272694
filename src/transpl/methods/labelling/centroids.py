"""Centroids of what the head predicts, compared by cosine: the part that SHOT and T2PL share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl.methods.labelling.prototypes import unit_rows


class Centroids(NamedTuple):
    """One centroid per class."""

    c: NDArray[np.float64]  # (K, d)
    present: NDArray[np.bool_]  # (K,), False for a class that no row may get


def soft_centroids(g: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""c_k = \sum_i p_ik g_i / (\sum_i p_ik + 1e-8); g (n, d), p (n, K), c (K, d)."""
    return p.T @ g / (p.sum(axis=0)[:, None] + 1e-8)


def refined_centroids(
    g: NDArray[np.float64], p: NDArray[np.float64], predicted: NDArray[np.bool_] | None = None
) -> Centroids:
    r"""c^0 = centroids of p; \hat y_i = the nearest c^0_k among `predicted`; c = centroids of \hat y.

    g : (n, d) unit rows; p : (n, K)
    predicted : (K,) classes that may be given; None takes those in argmax p
    returns : centroids of which only classes that some \hat y_i names are present, for the others have no direction
    """
    K = p.shape[1]
    start = Centroids(soft_centroids(g, p), predicted_classes(p) if predicted is None else predicted)
    members = np.eye(K)[cosine_distances(g, start).argmin(axis=1)]
    return Centroids(soft_centroids(g, members), members.any(axis=0))


def cosine_distances(g: NDArray[np.float64], centroids: Centroids) -> NDArray[np.float64]:
    r"""D_ik = 1 - g_i . c_k / ||c_k||, g unit rows; (n, K), infinite for a class that is not present."""
    distances = 1.0 - g @ unit_rows(centroids.c).T
    distances[:, ~centroids.present] = np.inf
    return distances


def predicted_classes(p: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which classes are the most probable of some row, (K,)."""
    return np.bincount(p.argmax(axis=1), minlength=p.shape[1]) > 0
