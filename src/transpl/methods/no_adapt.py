"""No Adapt: the source model as it is, the floor that every method is measured against."""

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
    """Settings of NoAdapt."""

    codes: bool = setting(
        True,
        "the source phase trains the codes too, as the shared source model does; False is cross entropy "
        "alone, the plain counterpart of the alignment methods",
    )


@register("no-adapt", family="reference", needs="source", reference="-")
class NoAdapt(NetworkMethod):
    """The source classifier, unchanged."""

    Settings = NoAdaptSettings
    settings: NoAdaptSettings

    def source_for(self, model: SourceModel) -> SourceModel:
        return model.with_loss(SourceLoss(codes=self.settings.codes))

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        self.classifier = self.source.network
