"""RAINCOAT: optimal transport between features of time and frequency, then a correction (He et al. 2023)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.methods.joint import AlignmentObjective, JointMethod, JointSettings
from transpl.methods.method_settings import setting
from transpl.methods.raincoat_network import HEADS, RaincoatNetwork, Seen
from transpl.methods.registry import register
from transpl.nn import (
    Classifier,
    Network,
    Objective,
    Paired,
    Rows,
    SourceLoss,
    Weighting,
    class_and_code_losses,
    finalize,
    freeze,
    in_batches,
    labelled_rows,
    seeded_module,
    split_domains,
    window_rows,
)
from transpl.nn.losses import SINKHORN_GRADIENTS, sinkhorn
from transpl.windows import TargetInfo, Windows


@dataclass(frozen=True)
class RaincoatSettings(JointSettings):
    """Settings of Raincoat."""

    weighting: str = "fixed"
    sinkhorn_weight: float = setting(1.0, "weight of the term sinkhorn")
    reconstruction_weight: float = setting(
        1e-4,
        "of the summed L1 errors, in both phases; 0 leaves the second phase out",
    )
    modes: int = setting(64, "how many of the lowest frequencies are looked at, at most T // 2")
    cosine: bool = setting(True, "take the spectrum of cos(x), as the authors do, rather than of x")
    head: str = setting(
        "linear",
        '"linear", on the features of time and frequency; or "shared", the network\'s own, on those of time alone',
    )
    epsilon: float | None = setting(None, "blur of the transport; None is a twentieth of the mean cost")
    debiased: bool = setting(False, "take out of the transport's cost what each domain costs by itself")
    transport_gradient: str = setting(
        "unrolled",
        '"unrolled" through the iterations, or the "envelope" of the regularised cost',
    )

    presets: ClassVar = {
        "published": {
            name: {"adapt_lr": lr, "max_epochs": epochs, "batch_size": batch_size, "modes": modes}
            for name, lr, epochs, batch_size, modes in (
                ("ucihar", 5e-4, 50, 32, 64),
                ("wisdm", 1e-3, 50, 64, 64),
                ("hhar", 1e-3, 40, 32, 32),
            )
        }
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("modes", self.modes, least=1)
        check_choice("head", self.head, HEADS)
        check_choice("transport_gradient", self.transport_gradient, SINKHORN_GRADIENTS)
        for name in ("cosine", "debiased"):
            check_choice(name, getattr(self, name), (True, False))
        if self.epsilon is not None:
            check_positive("epsilon", self.epsilon)

    def options(self) -> dict[str, object]:
        """What decides the losses beside weights and their shapes."""
        names = ("cosine", "head", "epsilon", "debiased", "transport_gradient")
        return {name: getattr(self, name) for name in names}


class Sight(NamedTuple):
    """What is aligned of a batch: features, logits, and how well the decoder does."""

    z: Tensor  # (B, 2M + d)
    logits: Tensor  # (B, K)
    error: Tensor  # ()


class RaincoatObjective(AlignmentObjective[Sight]):
    r"""L = w_c CE(x_s, y_s) + w_s OT_\epsilon(z_s, z_t) + w_r (||\hat x_s - x_s||_1 + ||\hat x_t - x_t||_1).

    The L1 norms are sums over the batch; of several devices each sums over its own part.
    """

    terms = ("sinkhorn", "reconstruction")

    def __init__(self, model: RaincoatNetwork, weighting: Weighting, settings: RaincoatSettings) -> None:
        super().__init__(model, weighting, codes=settings.codes)
        self.settings = settings
        _, *unused = model.heads()
        freeze(*unused)

    @property
    def network(self) -> Network:
        return self.raincoat.network

    @property
    def raincoat(self) -> RaincoatNetwork:
        assert isinstance(self.model, RaincoatNetwork)
        return self.model

    def source_view(self, rows: Rows) -> tuple[Sight, dict[str, Tensor]]:
        of_network = class_and_code_losses(self.network, rows, SourceLoss(self.codes))
        view = _sight(self.raincoat(rows["x"], of_network.features), rows["x"])
        own = {"cross_entropy": F.cross_entropy(view.logits, rows["y"])}
        if self.codes:
            own["code"] = of_network.terms["code"]
            own["code_reconstruction"] = of_network.terms["reconstruction"]
        return view, own

    def target_view(self, rows: Rows) -> Sight:
        return _sight(self.raincoat(rows["x"]), rows["x"])

    def alignment(self, source: Sight, target: Sight) -> dict[str, Tensor]:
        settings = self.settings
        cost = sinkhorn(
            source.z,
            target.z,
            settings.epsilon,
            debiased=settings.debiased,
            gradient=settings.transport_gradient,
        )
        # Without its bias the cost can fall below 0, where learnt weights would have no bound.
        return {"sinkhorn": cost.clamp(min=0), "reconstruction": source.error + target.error}

    def identity(self) -> str:
        return repr((super().identity(), self.settings.options()))


class CorrectionObjective(Objective):
    r"""L = w_r (||\hat x_s - x_s||_1 + ||\hat x_t - x_t||_1) of encoders and decoder; the head does not move.

    Validation watches the source's cross entropy.
    """

    terms = ("reconstruction",)

    def __init__(self, model: RaincoatNetwork, settings: RaincoatSettings) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        without_gradient = [model.frequency.summary, model.frequency.norm, *model.network.code_modules()]
        freeze(*model.heads(), *without_gradient)

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        errors = [reconstruction_error(self.model(rows["x"]), rows["x"]) for rows in split_domains(batch)]
        error = errors[0] + errors[1]
        return {"loss": self.settings.reconstruction_weight * error, "reconstruction": error}

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.model.classify(batch["x"]), batch["y"])

    def identity(self) -> str:
        settings = self.settings
        network = self.model.network.settings
        return repr((type(self).__name__, network, settings.reconstruction_weight, settings.options()))


@register(
    "raincoat",
    family="alignment",
    needs="source, target",
    reference="He et al. 2023, Domain adaptation for time series under feature and label shifts",
)
class Raincoat(JointMethod):
    """Aligns features of time and frequency by optimal transport, then corrects them by reconstruction.

    Two trainings, "align" and "correct"; of their two models the one with the lower cross entropy on held-out source
    windows is kept.
    """

    Settings = RaincoatSettings
    settings: RaincoatSettings
    equal_length = True
    terms = RaincoatObjective.terms
    phase = "align"

    def objective(self, network: Network, prior: NDArray[np.float64] | None, total_steps: int) -> RaincoatObjective:
        _, C, T = self.source.source.windows.values.shape
        n_modes = min(self.settings.modes, T // 2)
        shape = (C, T, n_modes, self.settings.cosine, self.settings.head)
        model = seeded_module(self.seed + 1, RaincoatNetwork, network, *shape)
        return RaincoatObjective(model, self.weighting(), self.settings)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        super()._adapt(target, info)
        if self.settings.reconstruction_weight == 0:
            return
        aligned = self.classifier
        assert isinstance(aligned, RaincoatNetwork)
        corrected = self.corrected(copy.deepcopy(aligned), target)
        self.classifier = min(aligned, corrected, key=self.source_cross_entropy)

    def corrected(self, model: RaincoatNetwork, target: Windows) -> RaincoatNetwork:
        """The second phase, of a model that it changes."""
        data = Paired(labelled_rows(self.source.source), window_rows(target.in_memory()))
        self.train(CorrectionObjective(model, self.settings), data, self.settings.adapt_loop(), phase="correct")
        return finalize(model)

    def source_cross_entropy(self, classifier: Classifier) -> float:
        """The mean cross entropy of held-out source windows."""
        held_out = self.source.validation

        def log_probabilities(x: Tensor, lengths: Tensor | None) -> Tensor:
            return classifier.classify(x, lengths).double().log_softmax(dim=-1)

        with self.on_device(classifier):
            log_p = in_batches(classifier, held_out.windows, log_probabilities)
        return float(-log_p[np.arange(len(log_p)), held_out.y].mean())


def reconstruction_error(seen: Seen, x: Tensor) -> Tensor:
    r"""||\hat x - x||_1, summed over rows, channels and steps; x (B, C, T) -> ()."""
    return F.l1_loss(seen.reconstruction, x, reduction="sum")


def _sight(seen: Seen, x: Tensor) -> Sight:
    return Sight(seen.z, seen.logits, reconstruction_error(seen, x))
