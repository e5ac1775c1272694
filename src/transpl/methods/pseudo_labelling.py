"""Methods of two phases: the source model labels the target, then a copy of it is fine-tuned on the labels.

The fine-tuning is that of TransPL, so the methods differ only in how they label. What several labelling rules share is
here too: unit rows, centroids, checks. Features are (n, d), probabilities (n, K) with rows that sum to 1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from transpl._utils.errors import check_choice, check_not_negative, invalid
from transpl.methods.method_settings import AdaptSettings, setting
from transpl.methods.network_method import NetworkMethod
from transpl.nn import AdaptationSettings, Backbone, History, adapt_network, label_tensor, labelled_rows, window_rows
from transpl.windows import PseudoLabels, TargetInfo, Windows

_ROUNDING = 1e-3  # of probabilities that a network computed in float32 or half precision


@dataclass(frozen=True)
class PseudoLabelSettings(AdaptSettings):
    """Settings of `PseudoLabelMethod`."""

    top_ratio: float = setting(0.5, "the share of a batch's target rows, the most confident, that is learnt from")
    adapt_stopping: str = setting(
        "source",
        'validate adaptation on held-out "source" rows, or also on trusted pseudo-"labels"',
    )
    target_weight: float = setting(1.0, "of the cross entropy of target rows; 0 keeps the source model")
    codes: bool = setting(True, "continue to train the codes, as TransPL does")
    relabel: str = setting(
        "never",
        '"never", or label the target again before "each epoch", with the current network',
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative("target_weight", self.target_weight)
        check_choice("relabel", self.relabel, ("never", "each epoch"))
        self.adaptation()

    def adaptation(self) -> AdaptationSettings:
        return AdaptationSettings(self.top_ratio, self.adapt_stopping, self.codes)


class PseudoLabelMethod(NetworkMethod):
    """Labels by the source model, then fine-tuning. Subclasses write `label`.

    After `adapt`, `label_record` holds the first labels of the target as "initial" and, if it was labelled again, the
    last ones as "final".
    """

    Settings = PseudoLabelSettings
    settings: PseudoLabelSettings

    @abstractmethod
    def label(self, network: Backbone, target: Windows) -> PseudoLabels:
        """Label windows with a network in its current state, on its current device."""

    def pseudo_label(self, target: Windows) -> PseudoLabels:
        """Label windows with the source model."""
        self.check_target(target)
        return self._label_with(self.source.network, target)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        labels = self.pseudo_label(target)
        self.label_record = {"initial": labels}
        if self.settings.target_weight == 0:
            self.classifier = self.source.network
            return
        self.classifier, self.adapt_history["adapt"] = self._finetuned(target, labels)
        if self.settings.relabel != "never":
            self.label_record["final"] = self._label_with(self.classifier, target)

    def target_weight(self, epoch: int) -> float:
        """The weight of the target's cross entropy in an epoch."""
        return self.settings.target_weight

    def _finetuned(
        self, target: Windows, labels: PseudoLabels, network: Backbone | None = None
    ) -> tuple[Backbone, History]:
        """A copy of `network`, or of the source's, trained on source rows and labelled target rows."""
        y, confidence = as_tensors(labels)
        settings, model = self.settings, self.source
        return adapt_network(
            model.network if network is None else network,
            labelled_rows(model.source),
            {**window_rows(target.in_memory()), "y": y, "confidence": confidence},
            labelled_rows(model.validation),
            settings.adaptation(),
            settings.adapt_loop(),
            self.execution,
            seed=self.seed,
            teacher=MethodAsTeacher(self, target),
        )

    def _label_with(self, network: Backbone, target: Windows) -> PseudoLabels:
        with self.on_device(network):
            return self.label(network, target)


class MethodAsTeacher:
    """Lets a method set weight and labels while its network is trained."""

    def __init__(self, method: PseudoLabelMethod, target: Windows) -> None:
        self.method, self.target = method, target

    def weight(self, epoch: int) -> float:
        return self.method.target_weight(epoch)

    def labels(self, network: Backbone, epoch: int) -> tuple[Tensor, Tensor] | None:
        if self.method.settings.relabel == "never":
            return None
        return as_tensors(self.method.label(network, self.target))

    def __repr__(self) -> str:
        return repr((type(self.method).__name__, self.method.settings))

    def __deepcopy__(self, memo: object) -> MethodAsTeacher:
        # It holds no weights that are trained, so copies of an objective can share it and its data.
        return self


def as_tensors(labels: PseudoLabels) -> tuple[Tensor, Tensor]:
    """Labels (n,) and confidence (n,) as tensors for training."""
    return label_tensor(labels.labels), torch.from_numpy(labels.confidence.astype(np.float32))


def check_features(z: ArrayLike) -> NDArray[np.float64]:
    """Return features `z` as finite float64 of shape (n, d), n >= 1."""
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
    """Return probabilities `p` as float64 (n, K), with rows scaled to sum to 1 without the rounding of float32."""
    probabilities = np.asarray(p, dtype=np.float64)
    if probabilities.ndim != 2 or 0 in probabilities.shape or n not in (None, len(probabilities)):
        expected = f"shape ({'n' if n is None else n}, K)"
        raise invalid("probabilities", expected=expected, got=probabilities.shape, advice="Give one row per window.")
    total = probabilities.sum(axis=1, keepdims=True)
    if not ((probabilities >= 0).all() and (np.abs(total - 1) < _ROUNDING).all()):
        raise invalid("probabilities", expected="rows that sum to 1", got="others", advice="Apply a softmax to logits.")
    return probabilities / total


def unit_rows(z: ArrayLike, mean: ArrayLike | None = None) -> NDArray[np.float64]:
    r"""u_i = (z_i - m) / ||z_i - m||, (n, d); a row of zeros stays zero."""
    centred = check_features(z) - (0.0 if mean is None else np.asarray(mean, np.float64))
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.where(lengths > 0, lengths, 1.0)


class Centroids(NamedTuple):
    """One centroid per class."""

    c: NDArray[np.float64]  # (K, d)
    present: NDArray[np.bool_]  # (K,), False for a class that no row can get


def soft_centroids(g: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""c_k = \sum_i p_ik g_i / (\sum_i p_ik + 1e-8); g (n, d), p (n, K), c (K, d)."""
    return p.T @ g / (p.sum(axis=0)[:, None] + 1e-8)


def refined_centroids(
    g: NDArray[np.float64], p: NDArray[np.float64], predicted: NDArray[np.bool_] | None = None
) -> Centroids:
    r"""c^0 = centroids of p; \hat y_i = the nearest c^0_k among `predicted`; c = centroids of \hat y.

    g : (n, d) unit rows; p : (n, K)
    predicted : (K,) classes that a row can get; None for those in argmax p
    returns : only the classes of some \hat y_i are present, the other centroids have no direction
    """
    K = p.shape[1]
    start = Centroids(soft_centroids(g, p), predicted_classes(p) if predicted is None else predicted)
    members = np.eye(K)[cosine_distances(g, start).argmin(axis=1)]
    return Centroids(soft_centroids(g, members), members.any(axis=0))


def cosine_distances(g: NDArray[np.float64], centroids: Centroids) -> NDArray[np.float64]:
    r"""D_ik = 1 - g_i . c_k / ||c_k||, g unit rows; (n, K), infinite for an absent class."""
    distances = 1.0 - g @ unit_rows(centroids.c).T
    distances[:, ~centroids.present] = np.inf
    return distances


def predicted_classes(p: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The classes that are the most probable one of some row, (K,)."""
    return np.bincount(p.argmax(axis=1), minlength=p.shape[1]) > 0
