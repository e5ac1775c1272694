"""NCP: a target row has the class of the nearest source prototype (Wang and Breckon 2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, check_int, invalid
from transpl.methods.labelling import (
    Prototypes,
    class_prototypes,
    most_confident_per_class,
    most_probable,
    pooled_mean,
    prototype_probabilities,
    round_share,
)
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import PseudoLabelMethod, PseudoLabelSettings
from transpl.methods.registry import register
from transpl.nn import AdaptationSettings, Network, features
from transpl.windows import PseudoLabels, TargetInfo, Windows


@dataclass(frozen=True)
class NCPSettings(PseudoLabelSettings):
    """Settings of NCP."""

    centred: bool = setting(True, "subtract the mean feature of both domains before they are compared")
    rounds: int = setting(
        1,
        "1 labels once; R > 1 labels and trains in turn, and learns from the i / (R - 1) most confident "
        "of each class in round i = 1..R-1 (in round 0 from none); then `top_ratio` plays no part. "
        "Published are 11",
    )

    def __post_init__(self) -> None:
        check_choice("centred", self.centred, (True, False))
        check_int("rounds", self.rounds, least=1)
        super().__post_init__()
        if self.rounds > 1 and self.relabel != "never":
            advice = "Rounds label anew by themselves."
            raise invalid("relabel", expected="'never' with rounds above 1", got=repr(self.relabel), advice=advice)

    def adaptation(self) -> AdaptationSettings:
        whole = super().adaptation()
        return whole if self.rounds == 1 else replace(whole, top_ratio=1.0)


@register(
    "ncp",
    family="pseudo-labels",
    needs="source, target",
    reference="Wang and Breckon 2020, Unsupervised domain adaptation via structured prediction based selective "
    "pseudo-labeling",
)
class NCP(PseudoLabelMethod):
    """Label of the nearest class prototype of the source."""

    Settings = NCPSettings
    settings: NCPSettings

    def label(self, network: Network, target: Windows) -> PseudoLabels:
        source = self.source.source
        z_s, z_t = features(network, source.windows), features(network, target)
        mean = pooled_mean(z_s, z_t) if self.settings.centred else None
        return most_probable(self.probabilities(z_t, class_prototypes(z_s, source.y, source.n_classes, mean)))

    def probabilities(self, z: NDArray[np.float64], prototypes: Prototypes) -> NDArray[np.float64]:
        """p(k | x_i) of target features z (n, d), (n, K)."""
        return prototype_probabilities(z, prototypes)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        if self.settings.rounds == 1 or self.settings.target_weight == 0:
            super()._adapt(target, info)
        else:
            self._adapt_in_rounds(target)

    def _adapt_in_rounds(self, target: Windows) -> None:
        """Each round goes on from the network that the last one left, with its labels."""
        network, rounds = self.source.network, self.settings.rounds
        labels = self.pseudo_label(target)
        self.label_record = {"initial": labels}
        for i in range(1, rounds):
            chosen = most_confident_per_class(labels.labels, labels.confidence, round_share(i, rounds))
            trusted = PseudoLabels(*(values[chosen] for values in labels))
            network, self.adapt_history[f"round {i}"] = self._finetuned(target[chosen], trusted, network)
            labels = self._label_with(network, target)
        self.classifier, self.label_record["final"] = network, labels
