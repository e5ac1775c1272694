"""DeepCORAL: aligns the covariances of the features (Sun and Saenko 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transpl._utils.errors import check_choice
from transpl.methods.joint import JointMethod, JointObjective, JointSettings, View, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn.losses import CORAL_FORMS, coral


@dataclass(frozen=True)
class DeepCORALSettings(JointSettings):
    """Settings of `DeepCORAL`."""

    coral_weight: float = setting(1.0, "weight of the term coral")
    coral_form: str = setting(
        "published",
        '"published" (covariances), or "adatime" (scatter matrices, to which its weights belong)',
    )

    presets: ClassVar = {
        "adatime": preset_table(
            ("adapt_lr", "cross_entropy_weight", "coral_weight"),
            {"ucihar": (5e-4, 0.101, 4.230), "hhar": (5e-4, 0.439, 5.936), "wisdm": (1e-3, 6.663, 6.488)},
            weighting="fixed",
            coral_form="adatime",
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("coral_form", self.coral_form, CORAL_FORMS)


class DeepCORALObjective(JointObjective):
    """The loss of `DeepCORAL`."""

    settings: DeepCORALSettings
    terms = ("coral",)

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        return {"coral": coral(source.z, target.z, self.settings.coral_form)}


@register(
    "deepcoral",
    family="alignment",
    needs="source, target",
    reference="Sun and Saenko 2016, Deep CORAL: correlation alignment for deep domain adaptation",
)
class DeepCORAL(JointMethod):
    """Aligns the covariances of source and target features z of width d.

    L = w_c CE(x_s, y_s) + w_a ||Cov(z_s) - Cov(z_t)||_F^2 / (4 d^2)
    """

    Settings = DeepCORALSettings
    objective_class = DeepCORALObjective
