"""T2PL: neighbours vote among rows near trusted centroids (RaTP; Liu et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from transpl._utils.errors import check_int
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import (
    Centroids,
    PseudoLabelMethod,
    PseudoLabelSettings,
    check_probabilities,
    cosine_distances,
    predicted_classes,
    refined_centroids,
    unit_rows,
)
from transpl.methods.registry import register
from transpl.nn import Backbone, head_outputs
from transpl.windows import PseudoLabels, Windows

TIE_BREAK = 0.01  # of a vote: below 1, so that it never outvotes a neighbour; large enough to survive float32
_DISTANCES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class T2PLSettings(PseudoLabelSettings):
    """Settings of `T2PL`."""

    alpha: int = setting(20, r"n / (K \alpha) neighbours vote")
    beta: int = setting(2, r"n / (K \beta) rows per class are trusted, and as many vote")
    top_ratio: float = setting(0.5, "1 learns from all rows, as published; the default is that of the other methods")
    relabel: str = "each epoch"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("alpha", self.alpha, least=1)
        check_int("beta", self.beta, least=1)


@register(
    "t2pl",
    family="pseudo-labels",
    needs="source, target",
    reference="Liu et al. 2023, Deja vu: continual model generalization for unseen domains (RaTP)",
)
class T2PL(PseudoLabelMethod):
    """Vote of the nearest neighbours among rows near the centroids of the most certain ones.

        y_i = argmax_k v_ik + 0.01 p_ik, v_ik the votes for class k among the neighbours of row i

    Only the labels are used; the publication's augmentation and contrastive training are left out.
    """

    Settings = T2PLSettings
    settings: T2PLSettings

    def label(self, network: Backbone, target: Windows) -> PseudoLabels:
        seen = head_outputs(network, target)
        return t2pl_labels(seen.hidden, seen.probabilities, self.settings.alpha, self.settings.beta)


def t2pl_labels(g: ArrayLike, p: ArrayLike, alpha: int = 20, beta: int = 2) -> PseudoLabels:
    r"""\hat y_i = argmax_k q_ik, q_ik = (v_ik + \delta p_ik) / (k_nn + \delta), v the votes of the k_nn neighbours.

    1. Trusted rows: per class, the n_fit rows of largest p_ik; a row may be trusted by several classes.
    2. Centroids of the trusted rows, refined once, among the classes in argmax p.
    3. Fitting set: per centroid, the n_fit of all rows nearest by cosine; a row may be in it with two labels.
    4. The k_nn nearest of the fitting set vote; of equally near rows, those nearer to their own centroid.

    g : (n, d) features; p : (n, K) of the head
    returns : confidence (max_k v_ik + \delta max_k p_ik) / (k_nn + \delta) and probabilities q. With \delta = 0.01 this
        is the share of agreeing neighbours; equal shares are ranked, and equal votes decided, by p.
    """
    u = unit_rows(g)
    head = check_probabilities(p, len(u))
    n, K = head.shape
    n_fit = fitting_size(n, K, beta)
    trusted = trusted_rows(head, n_fit)
    centroids = refined_centroids(u[trusted], head[trusted], predicted_classes(head))
    rows, labels = fitting_set(u, centroids, n_fit)
    k_nn = min(neighbours(n, K, alpha), len(rows))
    v, delta = neighbour_votes(u, u[rows], labels, k_nn, K), TIE_BREAK
    q = (v + delta * head) / (k_nn + delta)
    confidence = (v.max(axis=1) + delta * head.max(axis=1)) / (k_nn + delta)
    return PseudoLabels(q.argmax(axis=1), confidence, q)


def fitting_size(n: int, n_classes: int, beta: int = 2) -> int:
    r"""n_fit = max(floor(n / (K \beta)), 1)."""
    return max(n // (n_classes * beta), 1)


def neighbours(n: int, n_classes: int, alpha: int = 20) -> int:
    r"""k_nn = max(floor(n / (K \alpha)), 1)."""
    return max(n // (n_classes * alpha), 1)


def trusted_rows(p: NDArray[np.float64], n_fit: int) -> NDArray[np.int64]:
    """Indices of the `n_fit` rows of largest p_ik for each class k, (K * n_fit,); of equal ones the first."""
    return np.argsort(-p, axis=0, kind="stable")[:n_fit].T.ravel()


def fitting_set(
    u: NDArray[np.float64], centroids: Centroids, n_fit: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and classes of the `n_fit` rows nearest to each present centroid, both (m,), nearest to its own first."""
    D = cosine_distances(u, centroids)
    classes = np.flatnonzero(centroids.present)
    rows = np.argsort(D[:, classes], axis=0, kind="stable")[:n_fit].ravel()
    labels = np.tile(classes, len(rows) // len(classes))
    order = np.argsort(D[rows, labels], kind="stable")
    return rows[order], labels[order]


def neighbour_votes(
    u: NDArray[np.float64], fitting: NDArray[np.float64], labels: NDArray[np.int64], k: int, n_classes: int
) -> NDArray[np.float64]:
    r"""v_ic = number of rows of class c among the k rows of `fitting` nearest to u_i.

    u : (n, d); fitting : (m, d), k <= m; labels : (m,)
    returns : (n, n_classes), rows sum to k; of equally near rows the earlier ones in `fitting` vote
    """
    ballots = np.eye(n_classes)[labels]
    v = np.empty((len(u), n_classes))
    at_once = max(1, _DISTANCES_AT_ONCE // len(fitting))
    for first in range(0, len(u), at_once):
        rows = slice(first, first + at_once)
        v[rows] = nearest(cdist(u[rows], fitting), k) @ ballots
    return v


def nearest(distances: NDArray[np.float64], k: int) -> NDArray[np.bool_]:
    """Mark the k smallest entries of each row, of equal ones the first; (n, m)."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    nearer, tied = distances < kth, distances == kth
    room = k - nearer.sum(axis=1, keepdims=True)
    return nearer | (tied & (tied.cumsum(axis=1) <= room))
