"""T2PL: trusted rows make centroids, rows near these teach a nearest-neighbour vote (RaTP; Liu et al., 2023)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_int
from transpl.methods.labelling.centroids import Centroids, cosine_distances, predicted_classes, refined_centroids
from transpl.methods.labelling.checks import check_probabilities
from transpl.methods.labelling.neighbour_votes import neighbour_votes
from transpl.methods.labelling.prototypes import unit_rows
from transpl.windows import PseudoLabels

TIE_BREAK = 0.01  # of a vote: below 1, so it never outvotes a neighbour; large enough to survive float32


def t2pl_labels(g: ArrayLike, p: ArrayLike, alpha: int = 20, beta: int = 2) -> PseudoLabels:
    r"""\hat y_i = argmax_k q_ik, q_ik = (v_ik + \delta p_ik) / (k_nn + \delta), v the votes of the k_nn neighbours.

    1. Trusted rows: per class, the n_fit rows of largest p_ik; a row may be trusted by several classes.
    2. Centroids of the trusted rows, refined once, among the classes in argmax p.
    3. Fitting set: per centroid, the n_fit of all rows nearest by cosine; a row may be in it with two labels.
    4. The k_nn nearest of the fitting set vote; of equally near ones those nearer to their own centroid.

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
    return _decide(neighbour_votes(u, u[rows], labels, k_nn, K), head, k_nn)


def fitting_size(n: int, n_classes: int, beta: int = 2) -> int:
    r"""n_fit = max(floor(n / (K \beta)), 1)."""
    check_int("beta", beta, least=1)
    return max(n // (n_classes * beta), 1)


def neighbours(n: int, n_classes: int, alpha: int = 20) -> int:
    r"""k_nn = max(floor(n / (K \alpha)), 1)."""
    check_int("alpha", alpha, least=1)
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


def _decide(v: NDArray[np.float64], p: NDArray[np.float64], k_nn: int) -> PseudoLabels:
    delta = TIE_BREAK
    q = (v + delta * p) / (k_nn + delta)
    confidence = (v.max(axis=1) + delta * p.max(axis=1)) / (k_nn + delta)
    return PseudoLabels(q.argmax(axis=1), confidence, q)
