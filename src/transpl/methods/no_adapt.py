"""No Adapt: the source model as it is, the floor that every method is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transpl.methods.base import Method
from transpl.methods.registry import register
from transpl.methods.settings import SourceSettings
from transpl.methods.source_model import SourceModel
from transpl.nn import SourceLoss
from transpl.windows import Windows


@dataclass(frozen=True)
class NoAdaptSettings(SourceSettings):
    """codes : the source phase trains the codes too, as the shared source model does; False is cross entropy alone,
    the plain counterpart of the alignment methods
    """

    codes: bool = True


@register("no-adapt", family="reference", needs="source", reference="-")
class NoAdapt(Method):
    """The source classifier, unchanged."""

    Settings = NoAdaptSettings
    settings: NoAdaptSettings

    def source_for(self, model: SourceModel) -> SourceModel:
        return model.with_loss(SourceLoss(codes=self.settings.codes))

    def _adapt(self, target: Windows, prior: NDArray[np.float64] | None) -> None:
        self.classifier = self.source.network
