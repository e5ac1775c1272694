"""Softmax: the classifier's own predictions are its labels (Lee 2013)."""

from __future__ import annotations

from dataclasses import dataclass

from transpl._utils.errors import check_choice
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import PseudoLabelMethod, PseudoLabelSettings
from transpl.methods.registry import register
from transpl.nn import Backbone, class_probabilities
from transpl.windows import PseudoLabels, Windows

_START, _FULL = 0.1, 0.6  # of the run, between which the target's weight grows
_FULL_WEIGHT = 3.0


@dataclass(frozen=True)
class SoftmaxSettings(PseudoLabelSettings):
    """Settings of `Softmax`."""

    schedule: str = setting(
        "constant",
        'a "constant" target weight, or Lee\'s "ramp": 0 in the first tenth of the epochs, then growing to '
        '3 `target_weight` at six tenths; made for relabel="each epoch"',
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("schedule", self.schedule, ("constant", "ramp"))


@register(
    "softmax",
    family="pseudo-labels",
    needs="source, target",
    reference="Lee 2013, Pseudo-label: the simple and efficient semi-supervised learning method",
)
class Softmax(PseudoLabelMethod):
    """Label argmax_k p_k by the class head, confidence max_k p_k.

    L = CE(x_s, y_s) + alpha CE(x_t, argmax p_t) on the most confident target rows
    """

    Settings = SoftmaxSettings
    settings: SoftmaxSettings

    def label(self, network: Backbone, target: Windows) -> PseudoLabels:
        return PseudoLabels.from_probabilities(class_probabilities(network, target))

    def target_weight(self, epoch: int) -> float:
        alpha = super().target_weight(epoch)
        if self.settings.schedule == "constant":
            return alpha
        grown = (epoch / self.settings.max_epochs - _START) / (_FULL - _START)
        return _FULL_WEIGHT * alpha * min(max(grown, 0.0), 1.0)
