"""DeepCORAL: second moments of both domains are brought together (Sun and Saenko 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from transpl._utils.errors import check_choice
from transpl.methods.joint import JointMethod, JointObjective, JointSettings, View
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import Network, Weighting
from transpl.nn.losses import CORAL_FORMS, coral


@dataclass(frozen=True)
class DeepCORALSettings(JointSettings):
    """Settings of DeepCORAL."""

    coral_weight: float = setting(1.0, "weight of the term coral")
    coral_form: str = setting(
        "published",
        '"published" (covariances), or "adatime" (scatter matrices, to which its weights belong)',
    )

    presets: ClassVar = {
        "adatime": {
            name: {
                "adapt_lr": lr,
                "weighting": "fixed",
                "cross_entropy_weight": w_c,
                "coral_weight": w_a,
                "coral_form": "adatime",
            }
            for name, lr, w_c, w_a in (
                ("ucihar", 5e-4, 0.101, 4.230),
                ("hhar", 5e-4, 0.439, 5.936),
                ("wisdm", 1e-3, 6.663, 6.488),
            )
        }
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("coral_form", self.coral_form, CORAL_FORMS)


class DeepCORALObjective(JointObjective):
    r"""L = w_c CE(x_s, y_s) + w_a ||Cov(z_s) - Cov(z_t)||_F^2 / (4 d^2)."""

    terms = ("coral",)

    def __init__(self, network: Network, weighting: Weighting, *, codes: bool, form: str) -> None:
        super().__init__(network, weighting, codes=codes)
        self.form = form

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        return {"coral": coral(source.z, target.z, self.form)}

    def identity(self) -> str:
        return repr((super().identity(), self.form))


@register(
    "deepcoral",
    family="alignment",
    needs="source, target",
    reference="Sun and Saenko 2016, Deep CORAL: correlation alignment for deep domain adaptation",
)
class DeepCORAL(JointMethod):
    """Aligns the covariances of the features."""

    Settings = DeepCORALSettings
    settings: DeepCORALSettings
    terms = DeepCORALObjective.terms

    def objective(self, network: Network, prior: NDArray[np.float64] | None, total_steps: int) -> DeepCORALObjective:
        settings = self.settings
        return DeepCORALObjective(network, self.weighting(), codes=settings.codes, form=settings.coral_form)
