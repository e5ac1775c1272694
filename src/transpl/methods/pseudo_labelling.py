"""Methods of two phases: the source model labels the target, then a copy of it is trained on the labels.

The second phase is TransPL's own, so that methods differ in their labels alone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transpl._utils.errors import check_choice, check_not_negative
from transpl.methods.method_settings import AdaptSettings, setting
from transpl.methods.network_method import NetworkMethod
from transpl.nn import AdaptationSettings, History, Network, adapt_network, label_tensor, labelled_rows, window_rows
from transpl.windows import PseudoLabels, TargetInfo, Windows


@dataclass(frozen=True)
class PseudoLabelSettings(AdaptSettings):
    """Settings of PseudoLabel."""

    top_ratio: float = setting(0.5, "the share of a batch's target rows, the most confident, that is learnt from")
    adapt_stopping: str = setting(
        "source",
        'validate adaptation on held-out "source" rows, or also on trusted pseudo-"labels"',
    )
    target_weight: float = setting(
        1.0,
        "of the cross entropy of target rows; with 0 there is nothing to learn, the source model stays",
    )
    codes: bool = setting(True, "go on training the codes, as TransPL does")
    relabel: str = setting(
        "never",
        '"never", or label the target anew before "each epoch" with the network as it then is',
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

    After `adapt`, `label_record` holds the labels of the target under "initial" and, where it was labelled anew,
    "final".
    """

    Settings = PseudoLabelSettings
    settings: PseudoLabelSettings

    @abstractmethod
    def label(self, network: Network, target: Windows) -> PseudoLabels:
        """Label windows with a network in the state it is in, on the device it is on."""

    def pseudo_label(self, target: Windows) -> PseudoLabels:
        """Label windows with the source model, in one shot."""
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
        self, target: Windows, labels: PseudoLabels, network: Network | None = None
    ) -> tuple[Network, History]:
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

    def _label_with(self, network: Network, target: Windows) -> PseudoLabels:
        with self.on_device(network):
            return self.label(network, target)


class MethodAsTeacher:
    """A method's part in the training of its own network."""

    def __init__(self, method: PseudoLabelMethod, target: Windows) -> None:
        self.method, self.target = method, target

    def weight(self, epoch: int) -> float:
        return self.method.target_weight(epoch)

    def labels(self, network: Network, epoch: int) -> tuple[Tensor, Tensor] | None:
        if self.method.settings.relabel == "never":
            return None
        return as_tensors(self.method.label(network, self.target))

    def __repr__(self) -> str:
        return repr((type(self.method).__name__, self.method.settings))

    def __deepcopy__(self, memo: object) -> MethodAsTeacher:
        # It holds no weights that move: copies of an objective share it, and the data with it.
        return self


def as_tensors(labels: PseudoLabels) -> tuple[Tensor, Tensor]:
    """Labels (n,) and confidence (n,) to train with."""
    return label_tensor(labels.labels), torch.from_numpy(labels.confidence.astype(np.float32))
