"""MMDA: means, covariances and certainty of both domains are brought together (Rahman et al. 2020)."""

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
from transpl.nn.losses import CORAL_FORMS, coral, mean_entropy, mmd


@dataclass(frozen=True)
class MMDASettings(JointSettings):
    """Settings of MMDA."""

    ramp_epochs: int = 100  # from scratch the other terms would win before there is anything to align
    mmd_weight: float = setting(1.0, "weight of the term mmd")
    coral_weight: float = setting(1.0, "weight of the term coral")
    entropy_weight: float = setting(1.0, "weight of the term entropy")
    coral_form: str = setting(
        "published",
        '"published" (covariances), or "adatime" (scatter matrices, to which its weights belong)',
    )
    compat: str = setting(
        "none",
        '"none", or "adatime" to repeat two slips of that benchmark: its MMD is computed without a '
        "gradient and trains nothing, its entropy is that of softmax(z), not of the predictions. The "
        "preset does not ask for it",
    )

    presets: ClassVar = {
        "adatime": {
            name: {
                "adapt_lr": lr,
                "weighting": "fixed",
                "cross_entropy_weight": w_c,
                "mmd_weight": w_m,
                "coral_weight": w_a,
                "entropy_weight": w_e,
                "coral_form": "adatime",
            }
            for name, lr, w_c, w_m, w_a, w_e in (
                ("ucihar", 1e-3, 6.795, 3.964, 8.368, 1.383),
                ("hhar", 5e-3, 0.189, 6.480, 5.904, 6.708),
                ("wisdm", 5e-3, 6.654, 2.296, 5.254, 7.556),
            )
        }
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("coral_form", self.coral_form, CORAL_FORMS)
        check_choice("compat", self.compat, ("none", "adatime"))


class MMDAObjective(JointObjective):
    r"""L = w_c CE(x_s, y_s) + w_m MMD^2(z_s, z_t) + w_a CORAL(z_s, z_t) + w_e (1/n_t) \sum_t H(p_t)."""

    terms = ("mmd", "coral", "entropy")

    def __init__(self, network: Network, weighting: Weighting, *, codes: bool, coral_form: str, compat: str) -> None:
        super().__init__(network, weighting, codes=codes)
        self.coral_form = coral_form
        self.compat = compat

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        as_adatime = self.compat == "adatime"
        discrepancy = mmd(source.z, target.z)
        return {
            "mmd": discrepancy.detach() if as_adatime else discrepancy,
            "coral": coral(source.z, target.z, self.coral_form),
            "entropy": mean_entropy(target.z if as_adatime else target.logits),
        }

    def identity(self) -> str:
        return repr((super().identity(), self.coral_form, self.compat))


@register(
    "mmda",
    family="alignment",
    needs="source, target",
    reference="Rahman et al. 2020, On minimum discrepancy estimation for deep domain adaptation",
)
class MMDA(JointMethod):
    """Aligns means and covariances of the features, and makes target predictions certain."""

    Settings = MMDASettings
    settings: MMDASettings
    terms = MMDAObjective.terms

    def objective(self, network: Network, prior: NDArray[np.float64] | None, total_steps: int) -> MMDAObjective:
        settings = self.settings
        return MMDAObjective(
            network,
            self.weighting(),
            codes=settings.codes,
            coral_form=settings.coral_form,
            compat=settings.compat,
        )
