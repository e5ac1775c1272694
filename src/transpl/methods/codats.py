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
from transpl.methods.joint import JointMethod, JointObjective, JointSettings, View, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import Network, Weighting, seeded_module
from transpl.nn.losses import proportion_divergence, reversal_strength, reverse_gradient

DOMAIN_FORMS = ("published", "adatime")
_TARGET, _SOURCE = 0, 1
_HIDDEN = 64


@dataclass(frozen=True)
class CoDATSSettings(JointSettings):
    """Settings of `CoDATS`."""

    weighting: str = setting(
        "fixed",
        '"fixed" with all weights 1, as published; "learnable" still leaves the adversary\'s weight fixed',
    )
    domain_weight: float = setting(1.0, "weight of the term domain")
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


class Discriminator(nn.Sequential):
    """D: z (B, d) -> logits of target and source, (B, 2). No batch statistics, so one row is enough."""

    def __init__(self, d: int) -> None:
        super().__init__(
            nn.Linear(d, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 2)
        )


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


class CoDATSObjective(JointObjective):
    r"""The loss of `CoDATS`, \lambda = 2 / (1 + exp(-10 q)) - 1, q = step / (total_steps + 1).

    proportions : the last term, or None where class proportions are not known
    """

    settings: CoDATSSettings
    terms = ("domain", "proportions")

    def __init__(
        self,
        network: Network,
        weighting: Weighting,
        settings: CoDATSSettings,
        discriminator: Discriminator,
        proportions: ProportionLoss | None,
        total_steps: int,
    ) -> None:
        super().__init__(network, weighting, settings)
        self.discriminator, self.proportions, self.total_steps = discriminator, proportions, total_steps

    @property
    def strength(self) -> float:
        r"""\lambda at the current step."""
        return reversal_strength(int(self.step) / (self.total_steps + 1))

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        terms = {"domain": self._domain_loss(source.z, target.z)}
        if self.proportions is not None:
            terms["proportions"] = self.proportions(target.logits)
        return terms

    def _domain_loss(self, z_s: Tensor, z_t: Tensor) -> Tensor:
        """z_s (n_s, d), z_t (n_t, d) -> ()."""
        logits = self.discriminator(reverse_gradient(torch.cat([z_s, z_t]), self.strength))
        domain = torch.full((len(logits),), _TARGET, device=logits.device)
        domain[: len(z_s)] = _SOURCE
        rows = F.cross_entropy(logits, domain, reduction="none")
        if self.settings.domain_form == "published":
            return rows.mean()
        return rows[: len(z_s)].mean() + rows[len(z_s) :].mean()

    def identity(self) -> str:
        return repr((super().identity(), self.total_steps, self.proportions is None))


@register(
    "codats",
    family="alignment",
    needs="source, target",
    reference="Wilson et al. 2020, Multi-source deep domain adaptation with weak supervision for "
    "time-series sensor data",
)
class CoDATS(JointMethod):
    """Fools a domain discriminator D; class proportions of the target are used if given.

        L = w_c CE(x_s, y_s) + w_d CE(D(R(z)), domain) + w_p KL(pi || p_t)

    R reverses gradients. The last term, of known proportions pi and the mean target prediction p_t, is optional.
    """

    Settings = CoDATSSettings
    settings: CoDATSSettings
    uses = frozenset({"prior"})
    unlearnt = ("domain",)

    def objective(self, network: Network, prior: NDArray[np.float64] | None, total_steps: int) -> CoDATSObjective:
        settings = self.settings
        return CoDATSObjective(
            network,
            self.weighting(("domain",) if prior is None else None),
            settings,
            seeded_module(self.seed + 1, Discriminator, settings.width),
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
