"""CoDATS: features from which no discriminator can tell the domain; CoDATS-WS also uses known class proportions
(Wilson et al. 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_fraction
from transpl.methods.dann import DANN, DANNObjective, DANNSettings, Discriminator, new_discriminator
from transpl.methods.joint import View, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import Backbone, Weighting
from transpl.nn.losses import proportion_divergence

DOMAIN_FORMS = ("published", "adatime")


@dataclass(frozen=True)
class CoDATSSettings(DANNSettings):
    """Settings of `CoDATS`."""

    domain_form: str = setting(
        "published",
        '"published" (one mean over the rows of both domains), or "adatime" (the sum of a mean per domain, '
        "twice as much for equal batches, to which its weights belong)",
    )
    proportions_weight: float = setting(
        1.0,
        r"of KL(\pi || \bar p), without effect unless the target's class proportions are known",
    )
    proportions_memory: float = setting(
        0.5,
        r"the share of older predictions that \bar p keeps at each step, 0 for the batch alone; with batches "
        r"of 32 the default makes it a mean over 64 rows, the fewest that the authors advise",
    )

    presets: ClassVar = {
        "adatime": preset_table(
            ("adapt_lr", "cross_entropy_weight", "domain_weight"),
            {"ucihar": (1e-3, 6.335, 3.275), "hhar": (5e-4, 7.700, 9.314), "wisdm": (1e-3, 5.861, 4.575)},
            weighting="fixed",
            domain_form="adatime",
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("domain_form", self.domain_form, DOMAIN_FORMS)
        check_fraction("proportions_memory", self.proportions_memory, zero=True)


class ProportionLoss(nn.Module):
    r"""KL(\pi || \bar p), \bar p = P / N, P <- \mu P + \sum_i p_i, N <- \mu N + n over the target rows of each batch.

    Only the batch's own p_i carry a gradient. Evaluation does not change P and N.

    pi : known class proportions (K,)
    """

    def __init__(self, pi: NDArray[np.float64], memory: float) -> None:
        super().__init__()
        self.memory = memory
        self.pi: Tensor
        self.P: Tensor
        self.N: Tensor
        self.register_buffer("pi", torch.tensor(pi, dtype=torch.float32))
        self.register_buffer("P", torch.zeros(len(pi)))
        self.register_buffer("N", torch.zeros(()))

    def forward(self, logits: Tensor) -> Tensor:
        """logits (n, K) -> ()."""
        P = self.memory * self.P + F.softmax(logits, dim=-1).sum(dim=0)
        N = self.memory * self.N + len(logits)
        if self.training:
            self.P.copy_(P.detach())
            self.N.copy_(N)
        return proportion_divergence(self.pi, P / N)


class CoDATSObjective(DANNObjective):
    """The loss of `CoDATS`, with the reversed gradient of `DANNObjective`.

    proportions : the last term, or None where class proportions are not known
    """

    settings: CoDATSSettings
    terms = ("domain", "proportions")

    def __init__(
        self,
        network: Backbone,
        weighting: Weighting,
        settings: CoDATSSettings,
        discriminator: Discriminator,
        proportions: ProportionLoss | None,
        total_steps: int,
    ) -> None:
        super().__init__(network, weighting, settings, discriminator, total_steps)
        self.proportions = proportions

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        rows = self.domain_losses(source, target)
        terms = {"domain": rows.joint_mean if self.settings.domain_form == "published" else rows.sum_of_means}
        if self.proportions is not None:
            terms["proportions"] = self.proportions(target.logits)
        return terms

    def identity(self) -> str:
        return repr((super().identity(), self.proportions is None))


@register(
    "codats",
    family="alignment",
    needs="source, target",
    reference="Wilson et al. 2020, Multi-source deep domain adaptation with weak supervision for "
    "time-series sensor data",
)
class CoDATS(DANN):
    """Fools a domain discriminator D; class proportions of the target are used if given.

        L = w_c CE(x_s, y_s) + w_d CE(D(R(z)), domain) + w_p KL(pi || p_t)

    R reverses gradients. The last term, of known proportions pi and the mean target prediction p_t, is optional.
    """

    Settings = CoDATSSettings
    settings: CoDATSSettings
    uses = frozenset({"prior"})

    def objective(self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int) -> CoDATSObjective:
        settings = self.settings
        return CoDATSObjective(
            network,
            self.weighting(("domain",) if prior is None else None),
            settings,
            new_discriminator(self.seed, settings.width),
            None if prior is None else ProportionLoss(prior, settings.proportions_memory),
            total_steps,
        )


@register(
    "codats-ws",
    family="alignment",
    needs="source, target, class proportions of the target",
    reference="Wilson et al. 2020, with weak supervision",
)
class CoDATSWS(CoDATS):
    """CoDATS with target predictions that also follow the target's known class proportions."""

    requires = frozenset({"prior"})
