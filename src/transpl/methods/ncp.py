"""NCP: a target row has the class of the nearest source prototype (Wang and Breckon 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import softmax

from transpl._utils.errors import check_choice, check_int, invalid
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import (
    PseudoLabelMethod,
    PseudoLabelSettings,
    check_features,
    check_probabilities,
    unit_rows,
)
from transpl.methods.registry import register
from transpl.nn import AdaptationSettings, Backbone, features, floor_share
from transpl.windows import PseudoLabels, TargetInfo, Windows


@dataclass(frozen=True)
class NCPSettings(PseudoLabelSettings):
    """Settings of `NCP`."""

    centred: bool = setting(True, "subtract the mean feature of both domains before they are compared")
    rounds: int = setting(
        1,
        "1 labels once; R > 1 alternates labelling and training, and round i = 1..R-1 learns from the i / "
        "(R - 1) most confident rows of each class (`top_ratio` is then ignored). The publication uses 11",
    )

    def __post_init__(self) -> None:
        check_choice("centred", self.centred, (True, False))
        check_int("rounds", self.rounds, least=1)
        super().__post_init__()
        if self.rounds > 1 and self.relabel != "never":
            advice = "Rounds label the target again by themselves."
            raise invalid("relabel", expected="'never' with rounds above 1", got=repr(self.relabel), advice=advice)

    def adaptation(self) -> AdaptationSettings:
        adaptation = super().adaptation()
        return adaptation if self.rounds == 1 else replace(adaptation, top_ratio=1.0)


@register(
    "ncp",
    family="pseudo-labels",
    needs="source, target",
    reference="Wang and Breckon 2020, Unsupervised domain adaptation via structured prediction based selective "
    "pseudo-labeling",
)
class NCP(PseudoLabelMethod):
    """Label of the nearest class prototype of the source, by features u of unit length.

    p(k | x_i) = softmax_k(-||u_i - mu_k||), mu_k the direction of the mean of class k in the source
    """

    Settings = NCPSettings
    settings: NCPSettings

    def label(self, network: Backbone, target: Windows) -> PseudoLabels:
        source = self.source.source
        z_s, z_t = features(network, source.windows), features(network, target)
        mean = pooled_mean(z_s, z_t) if self.settings.centred else None
        p = self.probabilities(z_t, class_prototypes(z_s, source.y, source.n_classes, mean))
        return PseudoLabels.from_probabilities(check_probabilities(p))

    def probabilities(self, z: NDArray[np.float64], prototypes: Prototypes) -> NDArray[np.float64]:
        """p(k | x_i) of target features z (n, d), (n, K)."""
        return prototype_probabilities(z, prototypes)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        if self.settings.rounds == 1 or self.settings.target_weight == 0:
            super()._adapt(target, info)
        else:
            self._adapt_in_rounds(target)

    def _adapt_in_rounds(self, target: Windows) -> None:
        """Each round continues with the network and the labels of the round before."""
        network, rounds = self.source.network, self.settings.rounds
        labels = self.pseudo_label(target)
        self.label_record = {"initial": labels}
        for i in range(1, rounds):
            chosen = most_confident_per_class(labels.labels, labels.confidence, round_share(i, rounds))
            trusted = PseudoLabels(*(values[chosen] for values in labels))
            network, self.adapt_history[f"round {i}"] = self._finetuned(target[chosen], trusted, network)
            labels = self._label_with(network, target)
        self.classifier, self.label_record["final"] = network, labels


class Prototypes(NamedTuple):
    """One unit vector per class, and the mean that is subtracted from features before the comparison."""

    mu: NDArray[np.float64]  # (K, d), zeros where absent
    present: NDArray[np.bool_]  # (K,), False for a class without source rows
    mean: NDArray[np.float64]  # (d,), zeros if features are not centred


def class_prototypes(z: ArrayLike, y: ArrayLike, n_classes: int, mean: ArrayLike | None = None) -> Prototypes:
    r"""\mu_k = m_k / ||m_k||, m_k = \sum_{i: y_i = k} u_i, u the unit rows: the direction of the class mean.

    z : (n, d) features of the source; y : (n,) class indices
    mean : (d,), see `pooled_mean`; None does not centre
    """
    u, labels = unit_rows(z, mean), np.asarray(y)
    members = np.eye(n_classes)[labels]  # (n, K)
    m = members.T @ u
    centre = np.zeros(u.shape[1]) if mean is None else np.array(mean, np.float64)
    return Prototypes(unit_rows(m), np.bincount(labels, minlength=n_classes) > 0, centre)


def prototype_probabilities(z: ArrayLike, prototypes: Prototypes) -> NDArray[np.float64]:
    r"""p(k | x_i) = softmax_k(-||u_i - \mu_k||), the distance not squared.

    z : (n, d) features, centred and scaled to u here
    returns : (n, K); very flat, so for ranking only; an absent class is infinitely far away and gets exactly 0
    """
    distances = cdist(unit_rows(z, prototypes.mean), prototypes.mu)
    distances[:, ~prototypes.present] = np.inf
    return softmax(-distances, axis=1)


def pooled_mean(z_s: ArrayLike, z_t: ArrayLike) -> NDArray[np.float64]:
    r"""m = \sum_i z_i / (n_s + n_t) over the rows of both domains, (d,)."""
    return np.concatenate([check_features(z_s), check_features(z_t)]).mean(axis=0)


def most_confident_per_class(labels: ArrayLike, confidence: ArrayLike, share: float) -> NDArray[np.bool_]:
    r"""Of the n_k rows with label k, mark the max(floor(share n_k), 1) most confident; a share of 0 marks none.

    labels, confidence : (n,); rows of equal confidence are taken in their order
    returns : (n,)
    """
    y, c = np.asarray(labels), np.asarray(confidence, np.float64)
    chosen = np.zeros(len(y), np.bool_)
    for k in np.unique(y) if share > 0 else ():
        rows = np.flatnonzero(y == k)
        best = np.argsort(-c[rows], kind="stable")[: max(floor_share(share, len(rows)), 1)]
        chosen[rows[best]] = True
    return chosen


def round_share(i: int, rounds: int) -> float:
    """min(1, i / (rounds - 1)): the share that round i = 0..rounds-1 learns from; a single round keeps all."""
    return 1.0 if rounds == 1 else min(1.0, i / (rounds - 1))
