"""DANN: features from which no discriminator can tell the domain (Ganin et al. 2016).

The discriminator and its loss are shared by all adversarial methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from transpl.methods.joint import JointMethod, JointObjective, JointSettings, View, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import Backbone, Weighting, seeded_module
from transpl.nn.losses import reversal_strength, reverse_gradient

_TARGET, _SOURCE = 0, 1
_HIDDEN = 64


@dataclass(frozen=True)
class DANNSettings(JointSettings):
    """Settings of `DANN`."""

    weighting: str = setting(
        "fixed",
        '"fixed" with all weights 1, as published; "learnable" still leaves the adversary\'s weight fixed',
    )
    domain_weight: float = setting(1.0, "weight of the term domain")

    presets: ClassVar = {
        "adatime": preset_table(
            ("adapt_lr", "cross_entropy_weight", "domain_weight"),
            {"ucihar": (1e-3, 5.139, 2.944), "hhar": (5e-4, 2.038, 1.030), "wisdm": (5e-3, 5.272, 2.605)},
            weighting="fixed",
        )
    }


class Discriminator(nn.Sequential):
    """D: z (B, d) -> logits of target and source, (B, 2). No batch statistics, so one row is enough."""

    def __init__(self, d: int) -> None:
        super().__init__(
            nn.Linear(d, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 2)
        )


class DomainLosses(NamedTuple):
    """-log p(domain) of every row of both domains."""

    source: Tensor  # (n_s,)
    target: Tensor  # (n_t,)

    @property
    def sum_of_means(self) -> Tensor:
        """()."""
        return self.source.mean() + self.target.mean()

    @property
    def joint_mean(self) -> Tensor:
        """The mean over the rows of both domains, ()."""
        return torch.cat(self).mean()


def reversed_losses(discriminator: Discriminator, z_s: Tensor, z_t: Tensor, strength: float) -> DomainLosses:
    r"""-log D(R(z))_domain: D learns to tell the domains, z gets -\lambda times the gradient, \lambda = `strength`."""
    logits = discriminator(reverse_gradient(torch.cat([z_s, z_t]), strength))
    return _split(F.cross_entropy(logits, _domains(z_s, z_t), reduction="none"), len(z_s))


def flipped_losses(discriminator: Discriminator, z_s: Tensor, z_t: Tensor) -> DomainLosses:
    r"""-log D(z)_domain for D alone, plus -log D(z)_{other domain} for z alone.

    Unlike the reversed gradient, that of the flipped labels is large where D is right, so z is pulled hardest where
    the domains are easiest to tell apart (Shu et al. 2018).
    """
    z, domain = torch.cat([z_s, z_t]), _domains(z_s, z_t)
    fixed = {name: weight.detach() for name, weight in discriminator.named_parameters()}
    learnt = F.cross_entropy(discriminator(z.detach()), domain, reduction="none")
    confused = F.cross_entropy(functional_call(discriminator, fixed, (z,)), 1 - domain, reduction="none")
    return _split(learnt + confused, len(z_s))


def _domains(z_s: Tensor, z_t: Tensor) -> Tensor:
    """The true domain of each row, (n_s + n_t,)."""
    domain = torch.full((len(z_s) + len(z_t),), _TARGET, device=z_s.device)
    domain[: len(z_s)] = _SOURCE
    return domain


def _split(rows: Tensor, n_s: int) -> DomainLosses:
    return DomainLosses(rows[:n_s], rows[n_s:])


class DANNObjective(JointObjective):
    r"""The loss of `DANN`, \lambda = 2 / (1 + exp(-10 q)) - 1, q = step / (total_steps + 1)."""

    settings: DANNSettings
    terms: ClassVar[tuple[str, ...]] = ("domain",)

    def __init__(
        self,
        network: Backbone,
        weighting: Weighting,
        settings: DANNSettings,
        discriminator: Discriminator,
        total_steps: int,
    ) -> None:
        super().__init__(network, weighting, settings)
        self.discriminator, self.total_steps = discriminator, total_steps

    @property
    def strength(self) -> float:
        r"""\lambda at the current step."""
        return reversal_strength(int(self.step) / (self.total_steps + 1))

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        return {"domain": self.domain_losses(source, target).sum_of_means}

    def domain_losses(self, source: View, target: View) -> DomainLosses:
        """Of a discriminator that sees z."""
        return reversed_losses(self.discriminator, source.z, target.z, self.strength)

    def identity(self) -> str:
        return repr((super().identity(), self.total_steps))


@register(
    "dann",
    family="alignment",
    needs="source, target",
    reference="Ganin et al. 2016, Domain-adversarial training of neural networks",
)
class DANN(JointMethod):
    """Fools a domain discriminator D.

        L = w_c CE(x_s, y_s) + w_d (CE(D(R(z_s)), source) + CE(D(R(z_t)), target))

    R reverses gradients: D learns to tell the domains apart, and the features z learn to look alike.
    """

    Settings = DANNSettings
    settings: DANNSettings
    unlearnt: ClassVar[tuple[str, ...]] = ("domain",)

    def objective(self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int) -> DANNObjective:
        discriminator = new_discriminator(self.seed, self.settings.width)
        return DANNObjective(network, self.weighting(), self.settings, discriminator, total_steps)


def new_discriminator(seed: int, d: int) -> Discriminator:
    """A discriminator of inputs (B, d), with random weights that no other part of a method shares."""
    return seeded_module(seed + 1, Discriminator, d)
