"""DIRT-T: class boundaries away from the windows of both domains (VADA), then refined on the target alone
(Shu et al. 2018).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_fraction, check_int, check_not_negative, check_positive
from transpl.methods.dann import DANNSettings, Discriminator, flipped_losses, new_discriminator
from transpl.methods.joint import AlignmentObjective, JointMethod, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import (
    Backbone,
    LoopSettings,
    Objective,
    Rows,
    SourceLoss,
    Weighting,
    class_and_code_losses,
    class_probabilities,
    count,
    finalize,
    freeze,
    window_rows,
)
from transpl.nn.losses import divergence_from, mean_entropy, virtual_adversarial_loss
from transpl.windows import TargetInfo, Windows

_WARM_UP = 10  # steps


@dataclass(frozen=True)
class DIRTTSettings(DANNSettings):
    """Settings of `DIRTT`."""

    weighting: str = setting("fixed", '"fixed" as published; "learnable" leaves all but the cross entropy fixed')
    domain_weight: float = setting(1e-2, "weight of the term domain")
    entropy_weight: float = setting(1e-2, "weight of the entropy of target predictions, in both phases")
    source_vat_weight: float = setting(1.0, "weight of the virtual adversarial term of source windows")
    target_vat_weight: float = setting(1e-2, "weight of the virtual adversarial term of target windows, in both phases")
    radius: float = setting(3.5, "length of a virtual adversarial change of a window")
    ema_decay: float = setting(
        0.998,
        "the share of its old value that the average of the weights keeps at each step; the average answers. 0 is no "
        "average, and the last weights answer",
    )
    teacher_weight: float = setting(
        1e-2, "of the refinement's distance to its teacher; 0 skips the refinement, which leaves VADA"
    )
    refine_epochs: int = setting(
        32, "the length of the refinement, as no validation says when to stop; at most `max_epochs`"
    )
    teacher_epochs: int = setting(2, "epochs after which the student becomes the teacher")

    presets: ClassVar = {
        "adatime": preset_table(
            (
                *("adapt_lr", "cross_entropy_weight", "domain_weight"),
                *("entropy_weight", "source_vat_weight", "target_vat_weight"),
            ),
            {
                "ucihar": (5e-3, 9.679, 1.901, 1.207, 7.710, 7.710),
                "hhar": (1e-3, 7.730, 6.632, 1.330, 6.912, 6.912),
                "wisdm": (5e-3, 9.625, 7.775, 1.694, 4.645, 4.645),
            },
            weighting="fixed",
            teacher_weight=0.0,  # AdaTime calls VADA "DIRT", and does not answer with its average
            ema_decay=0.0,
        )
    }

    def __post_init__(self) -> None:
        check_int("refine_epochs", self.refine_epochs, least=1)
        check_int("teacher_epochs", self.teacher_epochs, least=1)
        super().__post_init__()
        check_not_negative("teacher_weight", self.teacher_weight)
        check_positive("radius", self.radius)
        check_fraction("ema_decay", self.ema_decay, zero=True)

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of the first phase."""
        return VADAObjective.terms

    def refine_loop(self) -> LoopSettings:
        epochs = min(self.refine_epochs, self.max_epochs)
        return self.loop(self.adapt_lr, self.adapt_patience, max_epochs=epochs, keep="last")


class AveragedNetwork(nn.Module):
    r"""\bar\theta <- \mu_t \bar\theta + (1 - \mu_t) \theta; of weights and running statistics.

    warm_up : \mu_t = min(\mu, (1 + t) / (10 + t)) after t steps, so that a short training can forget the random weights
        that it started from; else \mu_t = \mu
    """

    def __init__(self, network: Backbone, decay: float, warm_up: bool) -> None:
        super().__init__()
        self.network, self.decay, self.warm_up = copy.deepcopy(network), decay, warm_up
        self.t: Tensor
        self.register_buffer("t", torch.zeros((), dtype=torch.int64))
        freeze(self.network)

    @torch.no_grad()
    def update(self, network: Backbone) -> None:
        t = int(self.t)
        mu = min(self.decay, (1 + t) / (_WARM_UP + t)) if self.warm_up else self.decay
        newest = network.state_dict()
        for name, average in self.network.state_dict().items():
            if average.is_floating_point():
                average.lerp_(newest[name], 1 - mu)
            else:
                average.copy_(newest[name])
        self.t += 1


@contextmanager
def still_statistics(network: nn.Module) -> Iterator[None]:
    """Normalise by the batch without moving the running statistics, so that changed windows leave no trace in them."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 0.0
    try:
        yield
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum


def virtual_adversarial(network: Backbone, rows: Rows, logits: Tensor, radius: float) -> Tensor:
    """The `virtual_adversarial_loss` of a batch whose logits are known; ()."""
    with still_statistics(network):
        return virtual_adversarial_loss(lambda x: network.classify(x, rows.get("lengths")), rows["x"], logits, radius)


class VADAView(NamedTuple):
    """Features and logits of a batch, and its windows."""

    z: Tensor  # (B, d)
    logits: Tensor  # (B, K)
    rows: Rows


class VADAObjective(AlignmentObjective[VADAView]):
    """The first loss of `DIRTT`. Validation watches the network that answers: the average, if there is one."""

    model: Backbone
    settings: DIRTTSettings
    terms = ("domain", "entropy", "source_vat", "target_vat")

    def __init__(
        self, network: Backbone, weighting: Weighting, settings: DIRTTSettings, discriminator: Discriminator
    ) -> None:
        super().__init__(network, weighting, settings)
        self.discriminator = discriminator
        self.average = AveragedNetwork(network, settings.ema_decay, warm_up=True) if settings.ema_decay else None

    @property
    def network(self) -> Backbone:
        return self.model

    @property
    def answering(self) -> Backbone:
        return self.model if self.average is None else self.average.network

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        losses = super().forward(batch)
        if self.training and self.average is not None:
            self.average.update(self.model)
        return losses

    def source_view(self, rows: Rows) -> tuple[VADAView, dict[str, Tensor]]:
        losses = class_and_code_losses(self.network, rows, SourceLoss(self.settings.codes))
        return VADAView(losses.features, losses.logits, rows), losses.terms

    def target_view(self, rows: Rows) -> VADAView:
        z = self.network.features(rows["x"], rows.get("lengths"))
        return VADAView(z, self.network.head(z), rows)

    def alignment(self, source: VADAView, target: VADAView) -> dict[str, Tensor]:
        radius = self.settings.radius
        return {
            "domain": flipped_losses(self.discriminator, source.z, target.z).joint_mean,
            "entropy": mean_entropy(target.logits),
            "source_vat": virtual_adversarial(self.network, source.rows, source.logits, radius),
            "target_vat": virtual_adversarial(self.network, target.rows, target.logits, radius),
        }

    def risk(self, batch: Rows) -> Tensor:
        return class_and_code_losses(self.answering, batch, SourceLoss(self.settings.codes)).total()


class RefinementObjective(Objective):
    r"""The second loss of `DIRTT`, on target rows that are numbered by `row`.

    The teacher is the average of the student's weights, as it was at the start of the current `teacher_epochs`; of it
    only \log p of the target's windows is kept. Validation watches the source for the record: it does not tell how
    well the target is learnt.
    """

    terms = ("entropy", "target_vat", "teacher")

    def __init__(self, network: Backbone, settings: DIRTTSettings, target: Windows) -> None:
        super().__init__()
        self.network, self.settings, self.target = network, settings, target
        self.average = AveragedNetwork(network, settings.ema_decay, warm_up=False) if settings.ema_decay else None
        self.teacher: Tensor
        self.register_buffer("teacher", torch.zeros(len(target), network.settings.n_classes))
        freeze(*network.code_modules())

    @property
    def answering(self) -> Backbone:
        return self.network if self.average is None else self.average.network

    def start_epoch(self, epoch: int) -> None:
        """Let the student become the teacher when it is time."""
        if epoch % self.settings.teacher_epochs == 0:
            p = class_probabilities(self.answering, self.target)
            self.teacher = torch.from_numpy(p.astype(np.float32)).to(self.teacher.device)

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        settings = self.settings
        logits = self.network.classify(batch["x"], batch.get("lengths"))
        terms = {
            "entropy": mean_entropy(logits),
            "target_vat": virtual_adversarial(self.network, batch, logits, settings.radius),
            "teacher": divergence_from(self.teacher[batch["row"]], logits),
        }
        if self.training and self.average is not None:
            self.average.update(self.network)
        loss = reduce(torch.add, (settings.weight(name) * term for name, term in terms.items()))
        return {"loss": loss, **terms}

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.answering.classify(batch["x"], batch.get("lengths")), batch["y"])

    def identity(self) -> str:
        return repr((type(self).__name__, self.network.settings, self.settings))


@register(
    "dirt-t",
    family="alignment",
    needs="source, target",
    reference="Shu et al. 2018, A DIRT-T approach to unsupervised domain adaptation",
)
class DIRTT(JointMethod):
    """VADA, which keeps class boundaries away from windows of both domains, then a refinement on the target alone.

        joint:  L = w_c CE(x_s, y_s) + w_d A(z_s, z_t) + w_e mean_t H(p_t) + w_s V(x_s) + w_t V(x_t)
        refine: L = w_e mean_t H(p_t) + w_t V(x_t) + w_k mean_t KL(teacher(x_t) || p_t)

    A is the loss of a domain discriminator, whose labels are flipped for the encoder. V(x) = mean KL(p(x) || p(x + r))
    for the small change r of a window that changes its prediction most. The teacher is an earlier state of the network.
    """

    Settings = DIRTTSettings
    settings: DIRTTSettings
    unlearnt = VADAObjective.terms

    def objective(self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int) -> VADAObjective:
        discriminator = new_discriminator(self.seed, self.settings.width)
        return VADAObjective(network, self.weighting(), self.settings, discriminator)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        super()._adapt(target, info)
        if self.settings.teacher_weight > 0:
            assert isinstance(self.classifier, Backbone)
            self.classifier = self._refined(self.classifier, target)

    def _refined(self, network: Backbone, target: Windows) -> Backbone:
        """Train the network further, on the target alone."""
        rows = window_rows(target.in_memory())
        rows["row"] = torch.arange(count(rows))
        objective = RefinementObjective(network, self.settings, target)
        self.train(objective, rows, self.settings.refine_loop(), phase="refine")
        return finalize(objective.answering)
