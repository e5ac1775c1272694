"""CDAN: a discriminator that sees features together with the classes predicted from them (Long et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transpl._utils.errors import check_choice
from transpl.methods.dann import (
    DANN,
    DANNObjective,
    DANNSettings,
    flipped_losses,
    new_discriminator,
    reversed_losses,
)
from transpl.methods.joint import View, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import Backbone
from transpl.nn.losses import mean_entropy, reverse_gradient, row_entropies

DOMAIN_FORMS = ("published", "adatime")


@dataclass(frozen=True)
class CDANSettings(DANNSettings):
    """Settings of `CDAN`."""

    entropy_weight: float = setting(
        0.0,
        "weight of the term entropy, of target predictions; as published 0: there certain rows weigh more in the term "
        "domain, which makes predictions certain too",
    )
    domain_form: str = setting(
        "published",
        '"published" (predictions are probabilities, certain rows weigh more, the gradient is reversed), or "adatime" '
        "(predictions are raw logits, all rows weigh the same, the encoder learns flipped labels instead), to which "
        "its weights belong",
    )

    presets: ClassVar = {
        "adatime": preset_table(
            ("adapt_lr", "cross_entropy_weight", "domain_weight", "entropy_weight"),
            {
                "ucihar": (1e-3, 9.430, 9.546, 1.292),
                "hhar": (5e-4, 4.154, 1.931, 0.184),
                "wisdm": (1e-3, 6.984, 5.920, 0.837),
            },
            weighting="fixed",
            domain_form="adatime",
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("domain_form", self.domain_form, DOMAIN_FORMS)


class CDANObjective(DANNObjective):
    r"""The loss of `CDAN`: DANN with p (x) z in place of z, and the target's entropy.

    A = \sum_i w_i l_i / \sum_i w_i summed over both domains, l_i = -log D(R(p_i (x) z_i))_domain,
    w_i = 1 + exp(-H(p_i)). The gradient of the w_i in the numerator is reversed too, so predictions become certain.
    """

    settings: CDANSettings
    terms = ("domain", "entropy")

    def alignment(self, source: View, target: View) -> dict[str, Tensor]:
        published = self.settings.domain_form == "published"
        domain = self._published(source, target) if published else self._as_adatime(source, target)
        return {"domain": domain, "entropy": mean_entropy(target.logits)}

    def _published(self, source: View, target: View) -> Tensor:
        seen_s, seen_t = (outer(view.logits.softmax(dim=-1), view.z) for view in (source, target))
        losses = reversed_losses(self.discriminator, seen_s, seen_t, self.strength)
        of_domains = [
            _weighted_mean(rows, certainty(reverse_gradient(view.logits, self.strength)))
            for rows, view in zip(losses, (source, target), strict=True)
        ]
        return of_domains[0] + of_domains[1]

    def _as_adatime(self, source: View, target: View) -> Tensor:
        seen_s, seen_t = (outer(view.logits, view.z) for view in (source, target))
        return flipped_losses(self.discriminator, seen_s, seen_t).joint_mean


def outer(p: Tensor, z: Tensor) -> Tensor:
    """p (x) z: p (B, K), z (B, d) -> (B, K d), one block of d numbers per class."""
    return (p[:, :, None] * z[:, None, :]).flatten(1)


def certainty(logits: Tensor) -> Tensor:
    """w = 1 + exp(-H(p)), between 1 and 2: logits (B, K) -> (B,)."""
    return 1 + torch.exp(-row_entropies(logits))


def _weighted_mean(rows: Tensor, w: Tensor) -> Tensor:
    return (w * rows).sum() / w.detach().sum()


@register(
    "cdan",
    family="alignment",
    needs="source, target",
    reference="Long et al. 2018, Conditional adversarial domain adaptation",
)
class CDAN(DANN):
    """Fools a discriminator D that sees features together with predictions.

        L = w_c CE(x_s, y_s) + w_d CE(D(R(p (x) z)), domain) + w_e mean_t H(p_t)

    p (x) z is the outer product of the prediction and the features, R reverses gradients. With the default of
    `domain_form`, rows weigh 1 + exp(-H(p)) in the second term (the publication's CDAN+E).
    """

    Settings = CDANSettings
    settings: CDANSettings
    unlearnt = ("domain", "entropy")

    def objective(self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int) -> CDANObjective:
        discriminator = new_discriminator(self.seed, self.n_classes * self.settings.width)
        return CDANObjective(network, self.weighting(), self.settings, discriminator, total_steps)
