"""The two references: no adaptation at all, and training on the target's labels."""

from __future__ import annotations

from dataclasses import dataclass

from transpl.methods.method_settings import SourceSettings, setting
from transpl.methods.network_method import NetworkMethod
from transpl.methods.registry import register
from transpl.methods.source_model import SourceModel
from transpl.nn import SourceLoss
from transpl.windows import TargetInfo, Windows


@dataclass(frozen=True)
class NoAdaptSettings(SourceSettings):
    """Settings of `NoAdapt`."""

    codes: bool = setting(
        True,
        "train the codes in the source phase too, as the shared source model does; False is cross entropy "
        "alone, the counterpart of the alignment methods without alignment",
    )


@register("no-adapt", family="reference", needs="source", reference="-")
class NoAdapt(NetworkMethod):
    """The source classifier, unchanged: the lower reference.

    L = CE(x_s, y_s) (+ L_code + L_rec)
    """

    Settings = NoAdaptSettings
    settings: NoAdaptSettings

    def source_for(self, model: SourceModel) -> SourceModel:
        return model.with_loss(SourceLoss(codes=self.settings.codes))

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        self.classifier = self.source.network


@register("target-only", family="reference", needs="target labels (an upper bound)", reference="-")
class TargetOnly(NoAdapt):
    """No Adapt with the target's own labelled windows as its source.

    It is the upper reference, which no adaptation can use: call `fit_source(target, held_out_target)` with the labelled
    target windows; `adapt` gets no labels.
    """

    uses_target_labels = True
