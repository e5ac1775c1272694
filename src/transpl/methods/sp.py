"""SP: clusters the target and gives each cluster the class of one source prototype (Wang and Breckon 2020)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from transpl._utils.errors import check_choice
from transpl.methods.method_settings import setting
from transpl.methods.ncp import NCP, NCPSettings, Prototypes, prototype_probabilities
from transpl.methods.pseudo_labelling import check_probabilities, unit_rows
from transpl.methods.registry import register

COMBINE = ("sp", "ncp+sp")
LLOYD_STEPS = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SPSettings(NCPSettings):
    """Settings of `SP`."""

    matched: bool = setting(
        True,
        "match clusters and classes one to one, as published; else a cluster keeps the class it started from",
    )
    combine: str = setting("sp", '"sp" alone, or "ncp+sp", the larger probability of both')

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("matched", self.matched, (True, False))
        check_choice("combine", self.combine, COMBINE)


@register(
    "sp",
    family="pseudo-labels",
    needs="source, target",
    reference="Wang and Breckon 2020, Unsupervised domain adaptation via structured prediction based selective "
    "pseudo-labeling",
)
class SP(NCP):
    """Label of the target's nearest cluster, clusters matched to the source's prototypes.

        p(k | x_i) = softmax_k(-||u_i - c_j||), j the cluster that is matched to class k

    There are as many clusters as classes in the source. If the target lacks a class, the rows of its cluster get a
    wrong label; a class whose cluster has no rows is logged.
    """

    Settings = SPSettings
    settings: SPSettings

    def probabilities(self, z: NDArray[np.float64], prototypes: Prototypes) -> NDArray[np.float64]:
        p = cluster_probabilities(z, prototypes, self.settings.matched)
        if self.settings.combine == "ncp+sp":
            p = stronger_of(prototype_probabilities(z, prototypes), p)
        unused = np.flatnonzero(prototypes.present & ~np.isin(np.arange(p.shape[1]), p.argmax(axis=1)))
        if unused.size:
            _log.info("SP: no target row gets class %s; the target may lack it.", ", ".join(map(str, unused)))
        return p


def cluster_probabilities(z: ArrayLike, prototypes: Prototypes, matched: bool = True) -> NDArray[np.float64]:
    r"""p(k | x_i) = softmax_k(-||u_i - c_j||), j the cluster with \sigma(j) = k; (n, K).

    See `cluster_prototypes`.
    """
    return prototype_probabilities(z, cluster_prototypes(z, prototypes, matched))


def cluster_prototypes(z: ArrayLike, prototypes: Prototypes, matched: bool = True) -> Prototypes:
    r"""\mu'_{\sigma(j)} = c_j / ||c_j||, c_j the centres of k-means on target features, started at the prototypes.

    z : (n, d) features of the target
    matched : \sigma is the cheapest one-to-one matching (the publication); False keeps cluster k for class k (its code)

    There are as many clusters as classes in the source, so a class that the target lacks still gets some rows. With
    fewer rows than classes the prototypes are returned unchanged.
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
    returns : (J, d); an empty cluster keeps its centre, so that it still belongs to the class it started from
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
    larger = np.maximum(check_probabilities(p), check_probabilities(q))
    return larger / larger.sum(axis=1, keepdims=True)
