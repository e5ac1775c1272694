"""SP: clusters of the target, each given the class of one source prototype (Wang & Breckon, 2020)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from transpl.methods.labelling.checks import check_pair
from transpl.methods.labelling.prototypes import Prototypes, prototype_probabilities, unit_rows

LLOYD_STEPS = 100


def cluster_probabilities(z: ArrayLike, prototypes: Prototypes, matched: bool = True) -> NDArray[np.float64]:
    r"""p(k | x_i) = softmax_k(-||u_i - c_j||), j the cluster with \sigma(j) = k; (n, K).

    See `cluster_prototypes`.
    """
    return prototype_probabilities(z, cluster_prototypes(z, prototypes, matched))


def cluster_prototypes(z: ArrayLike, prototypes: Prototypes, matched: bool = True) -> Prototypes:
    r"""\mu'_{\sigma(j)} = c_j / ||c_j||, c_j the centres of k-means on target features, started at the prototypes.

    z : (n, d) features of the target
    matched : \sigma is the cheapest one-to-one matching (the publication); False keeps cluster k for class k (its code)

    There are as many clusters as classes in the source, so a class missing in the target still claims some rows.
    With fewer rows than that, there is nothing to cluster: the prototypes are returned as they are.
    """
    u = unit_rows(z, prototypes.mean)
    classes = np.flatnonzero(prototypes.present)
    if len(u) < len(classes):
        return prototypes
    mu = prototypes.mu[classes]
    c = unit_rows(lloyd(u, mu))
    sigma = match_clusters(c, mu) if matched else np.arange(len(classes))
    adapted = np.zeros_like(prototypes.mu)
    adapted[classes[sigma]] = c
    return prototypes._replace(mu=adapted)


def lloyd(u: NDArray[np.float64], centres: NDArray[np.float64], steps: int = LLOYD_STEPS) -> NDArray[np.float64]:
    r"""c_j = mean of the u_i nearest to c_j, repeated until no row moves, at most `steps` times.

    u : (n, d); centres : (J, d) to start from
    returns : (J, d); a cluster nobody is nearest to keeps its centre, for another seed would lose whose centre it was
    """
    c = np.array(centres, np.float64)
    nearest = np.full(len(u), -1)
    for _ in range(steps):
        before, nearest = nearest, cdist(u, c).argmin(axis=1)
        if np.array_equal(before, nearest):
            break
        for j in np.unique(nearest):
            c[j] = u[nearest == j].mean(axis=0)
    return c


def match_clusters(c: NDArray[np.float64], mu: NDArray[np.float64]) -> NDArray[np.int64]:
    r"""\sigma = argmin over permutations of \sum_j ||c_j - \mu_{\sigma(j)}||; c and mu (J, d), \sigma (J,)."""
    return linear_sum_assignment(cdist(c, mu))[1].astype(np.int64)


def stronger_of(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    r"""r_ik = max(p_ik, q_ik) / \sum_l max(p_il, q_il); all (n, K)."""
    larger = np.maximum(*check_pair(p, q))
    return larger / larger.sum(axis=1, keepdims=True)
