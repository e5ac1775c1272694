"""NCP: the nearest class prototype (Wang & Breckon, 2020)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import softmax

from transpl._utils.errors import invalid
from transpl.methods.labelling.checks import check_features
from transpl.methods.proportions import check_labels


class Prototypes(NamedTuple):
    """One unit vector per class, and what to subtract from features before they are compared with it."""

    mu: NDArray[np.float64]  # (K, d), zeros where absent
    present: NDArray[np.bool_]  # (K,), False for a class without source rows
    mean: NDArray[np.float64]  # (d,), zeros if features are not centred


def class_prototypes(z: ArrayLike, y: ArrayLike, n_classes: int, mean: ArrayLike | None = None) -> Prototypes:
    r"""\mu_k = m_k / ||m_k||, m_k = \sum_{i: y_i = k} u_i, u the unit rows: the direction of the class mean.

    z : (n, d) features of the source; y : (n,) class indices
    mean : (d,), see `pooled_mean`; None does not centre
    """
    u = unit_rows(z, mean)
    labels = check_labels(y, n_classes)
    if len(labels) != len(u):
        raise invalid("y", expected=f"{len(u)} labels", got=len(labels), advice="Give one per row of features.")
    members = np.eye(n_classes)[labels]  # (n, K)
    m = members.T @ u
    centre = np.zeros(u.shape[1]) if mean is None else np.array(mean, np.float64)
    return Prototypes(unit_rows(m), np.bincount(labels, minlength=n_classes) > 0, centre)


def prototype_probabilities(z: ArrayLike, prototypes: Prototypes) -> NDArray[np.float64]:
    r"""p(k | x_i) = softmax_k(-||u_i - \mu_k||), the distance not squared.

    z : (n, d) features, centred and scaled to u here
    returns : (n, K); very flat, so for ranking only; an absent class is infinitely far and gets exactly 0
    """
    distances = cdist(unit_rows(z, prototypes.mean), prototypes.mu)
    distances[:, ~prototypes.present] = np.inf
    return softmax(-distances, axis=1)


def unit_rows(z: ArrayLike, mean: ArrayLike | None = None) -> NDArray[np.float64]:
    r"""u_i = (z_i - m) / ||z_i - m||, (n, d); a row of zeros, which has no direction, stays."""
    centred = check_features(z) - (0.0 if mean is None else np.asarray(mean, np.float64))
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.where(lengths > 0, lengths, 1.0)


def pooled_mean(z_s: ArrayLike, z_t: ArrayLike) -> NDArray[np.float64]:
    r"""m = \sum_i z_i / (n_s + n_t) over the rows of both domains, (d,)."""
    return np.concatenate([check_features(z_s), check_features(z_t)]).mean(axis=0)
