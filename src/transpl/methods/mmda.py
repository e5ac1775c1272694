"""MMDA: aligns means and covariances of the features, with certain target predictions (Rahman et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from transpl._utils.errors import check_choice
from transpl.methods.joint import JointMethod, JointObjective, JointSettings, View, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn.losses import CORAL_FORMS, coral, mean_entropy, mmd


@dataclass(frozen=True)
class MMDASettings(JointSettings):
    """Settings of `MMDA`."""

    ramp_epochs: int = 100  # at first the alignment terms would win before there are features to align
    mmd_weight: float = setting(1.0, "weight of the term mmd")
    coral_weight: float = setting(1.0, "weight of the term coral")
    entropy_weight: float = setting(1.0, "weight of the term entropy")
    coral_form: str = setting(
        "published",
        '"published" (covariances), or "adatime" (scatter matrices, to which its weights belong)',
    )
    compat: str = setting(
        "none",
        '"none", or "adatime" to repeat two slips of that benchmark: its MMD has no gradient and so trains '
        "nothing, and its entropy is that of softmax(z) instead of the predictions. The preset does not set "
        "it",
    )

    presets: ClassVar = {
        "adatime": preset_table(
            ("adapt_lr", "cross_entropy_weight", "mmd_weight", "coral_weight", "entropy_weight"),
            {
                "ucihar": (1e-3, 6.795, 3.964, 8.368, 1.383),
                "hhar": (5e-3, 0.189, 6.480, 5.904, 6.708),
                "wisdm": (5e-3, 6.654, 2.296, 5.254, 7.556),
            },
            weighting="fixed",
            coral_form="adatime",
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("coral_form", self.coral_form, CORAL_FORMS)
        check_choice("compat", self.compat, ("none", "adatime"))


class MMDAObjective(JointObjective):
    """The loss of `MMDA`."""

    settings: MMDASettings
    terms = ("mmd", "coral", "entropy")

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        as_adatime = self.settings.compat == "adatime"
        discrepancy = mmd(source.z, target.z)
        return {
            "mmd": discrepancy.detach() if as_adatime else discrepancy,
            "coral": coral(source.z, target.z, self.settings.coral_form),
            "entropy": mean_entropy(target.z if as_adatime else target.logits),
        }


@register(
    "mmda",
    family="alignment",
    needs="source, target",
    reference="Rahman et al. 2020, On minimum discrepancy estimation for deep domain adaptation",
)
class MMDA(JointMethod):
    """Aligns means and covariances of the features z, and makes target predictions p certain.

    L = w_c CE(x_s, y_s) + w_m MMD^2(z_s, z_t) + w_a CORAL(z_s, z_t) + w_e mean_t H(p_t)
    """

    Settings = MMDASettings
    objective_class = MMDAObjective
