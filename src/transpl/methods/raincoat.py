"""RAINCOAT: aligns features of time and frequency by optimal transport, then corrects them (He et al. 2023)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_int, check_positive
from transpl.methods.joint import AlignmentObjective, JointMethod, JointSettings, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import (
    Backbone,
    BatchNorm,
    Classifier,
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

HEADS = ("linear", "shared")
_TEMPERATURE = 0.1
_NO_PHASE = 1e-8  # the phase of a number this small is rounding error


@dataclass(frozen=True)
class RaincoatSettings(JointSettings):
    """Settings of `Raincoat`."""

    weighting: str = "fixed"
    sinkhorn_weight: float = setting(1.0, "weight of the term sinkhorn")
    reconstruction_weight: float = setting(1e-4, "of the summed L1 errors, in both phases; 0 skips the second phase")
    modes: int = setting(64, "how many of the lowest frequencies are used, at most T // 2")
    cosine: bool = setting(True, "use the spectrum of cos(x), as the authors do, instead of that of x")
    head: str = setting(
        "linear",
        '"linear", on the features of time and frequency; or "shared", the network\'s own, on those of time alone',
    )
    epsilon: float | None = setting(None, "blur of the transport; None is a twentieth of the mean cost")
    debiased: bool = setting(False, "subtract from the transport's cost the cost of each domain with itself")
    transport_gradient: str = setting(
        "unrolled",
        '"unrolled" through the iterations, or the "envelope" of the regularised cost',
    )

    presets: ClassVar = {
        "published": preset_table(
            ("adapt_lr", "max_epochs", "batch_size", "modes"),
            {"ucihar": (5e-4, 50, 32, 64), "wisdm": (1e-3, 50, 64, 64), "hhar": (1e-3, 40, 32, 32)},
        )
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


class FrequencyEncoder(nn.Module):
    r"""X_f = W_f rfft(u)_f for the M lowest f, u = cos(x) or x; e_F = ReLU(BN(conv([|X|; arg X]))).

    W_f is a complex matrix per frequency that mixes the channels, at first U[0, 1) / C^2 in both parts. It is stored
    as real numbers, which all optimisers and devices support.
    """

    def __init__(self, n_channels: int, n_modes: int, cosine: bool) -> None:
        super().__init__()
        self.n_modes, self.cosine = n_modes, cosine
        self.mixing = nn.Parameter(torch.rand(n_channels, n_channels, n_modes, 2) / n_channels**2)
        self.summary = nn.Conv1d(n_channels, 1, kernel_size=3, padding=1, bias=False)
        self.norm = BatchNorm(2 * n_modes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, C, T) -> e_F (B, 2M) and X (B, C, M), complex."""
        X = self.spectrum(x)
        polar = torch.cat([X.abs(), phase(X)], dim=-1)
        return F.relu(self.norm(self.summary(polar)[:, 0])), X

    def spectrum(self, x: Tensor) -> Tensor:
        """X_{b o f} = sum_i W_{i o f} rfft(u)_{b i f}; x (B, C, T) -> (B, C, M), complex."""
        u = torch.cos(x) if self.cosine else x
        lowest = torch.fft.rfft(u, norm="ortho")[..., : self.n_modes]
        return torch.einsum("bif,iof->bof", lowest, torch.view_as_complex(self.mixing))


class Decoder(nn.Module):
    r"""\hat x = BN(irfft(X)) + ReLU(BN(W^T e_T)): the low frequencies from X, the rest from the features of time."""

    def __init__(self, width: int, n_channels: int, length: int) -> None:
        super().__init__()
        self.length = length
        self.expand = nn.ConvTranspose1d(width, length, n_channels)
        self.norm_low, self.norm_high = BatchNorm(n_channels), BatchNorm(n_channels)

    def forward(self, e_T: Tensor, X: Tensor) -> Tensor:
        """e_T (B, d), X (B, C, M) -> (B, C, T)."""
        high = self.expand(e_T[:, :, None]).mT
        return self.norm_low(waves(X, self.length)) + F.relu(self.norm_high(high))


class RaincoatOutput(NamedTuple):
    """Output of the network for a batch."""

    z: Tensor  # (B, 2M + d), of length 1
    logits: Tensor  # (B, K)
    reconstruction: Tensor  # (B, C, T)


class RaincoatNetwork(Classifier):
    """e_T of the shared encoder beside e_F; z = [e_F; e_T] / ||[e_F; e_T]||; decoder and head.

    head : "linear", logits = W z / 0.1; or "shared", the network's own on e_T alone
    """

    def __init__(
        self, network: Backbone, n_channels: int, length: int, n_modes: int, cosine: bool = True, head: str = "linear"
    ) -> None:
        super().__init__()
        d, K = network.settings.width, network.settings.n_classes
        self.network = network
        self.frequency = FrequencyEncoder(n_channels, n_modes, cosine)
        self.decoder = Decoder(d, n_channels, length)
        self.head = nn.Linear(2 * n_modes + d, K, bias=False) if head == "linear" else None

    def forward(self, x: Tensor, e_T: Tensor | None = None) -> RaincoatOutput:
        """x (B, C, T), and e_T (B, d) if it is already computed."""
        e_T = self.network.features(x) if e_T is None else e_T
        e_F, X = self.frequency(x)
        z = _unit(e_F, e_T)
        return RaincoatOutput(z, self.logits(e_T if self.head is None else z), self.decoder(e_T, X))

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, C, T) -> input of the head: z (B, 2M + d), or e_T (B, d); windows must have one length."""
        e_T = self.network.features(x)
        return e_T if self.head is None else _unit(self.frequency(x)[0], e_T)

    def logits(self, z: Tensor) -> Tensor:
        """Input of the head -> class logits (B, K)."""
        logits: Tensor = self.network.head(z) if self.head is None else self.head(z) / _TEMPERATURE
        return logits

    def heads(self) -> list[nn.Module]:
        """The heads, the one in use first."""
        return [self.network.head] if self.head is None else [self.head, self.network.head]


def _unit(e_F: Tensor, e_T: Tensor) -> Tensor:
    """[e_F; e_T] / ||[e_F; e_T]||; (B, 2M) and (B, d) -> (B, 2M + d)."""
    return F.normalize(torch.cat([e_F, e_T], dim=1))


def phase(X: Tensor) -> Tensor:
    """arg X, and 0 without a gradient where X is 0 up to rounding; X complex."""
    return torch.where(X.abs() < _NO_PHASE, 1, X).angle()


def waves(X: Tensor, length: int) -> Tensor:
    """irfft of the lowest M frequencies, the others 0; X (..., M), complex -> (..., T)."""
    return torch.fft.irfft(X, n=length, norm="ortho")


class RaincoatView(NamedTuple):
    """Features and logits of a batch, and the error of its reconstruction."""

    z: Tensor  # (B, 2M + d)
    logits: Tensor  # (B, K)
    error: Tensor  # ()


class RaincoatObjective(AlignmentObjective[RaincoatView]):
    """The first loss of `Raincoat`. The L1 norms are sums over the batch; each of several devices sums its own part."""

    model: RaincoatNetwork
    settings: RaincoatSettings
    terms = ("sinkhorn", "reconstruction")

    def __init__(self, model: RaincoatNetwork, weighting: Weighting, settings: RaincoatSettings) -> None:
        super().__init__(model, weighting, settings)
        _, *unused = model.heads()
        freeze(*unused)

    @property
    def network(self) -> Backbone:
        return self.model.network

    def source_view(self, rows: Rows) -> tuple[RaincoatView, dict[str, Tensor]]:
        losses = class_and_code_losses(self.network, rows, SourceLoss(self.settings.codes))
        view = _view(self.model(rows["x"], losses.features), rows["x"])
        terms = {"cross_entropy": F.cross_entropy(view.logits, rows["y"])}
        if self.settings.codes:
            terms |= {"code": losses.terms["code"], "code_reconstruction": losses.terms["reconstruction"]}
        return view, terms

    def target_view(self, rows: Rows) -> RaincoatView:
        return _view(self.model(rows["x"]), rows["x"])

    def alignment(self, source: RaincoatView, target: RaincoatView) -> dict[str, Tensor]:
        settings = self.settings
        cost = sinkhorn(
            source.z,
            target.z,
            settings.epsilon,
            debiased=settings.debiased,
            gradient=settings.transport_gradient,
        )
        # The debiased cost can fall below 0, where a learnt weight would grow without bound.
        return {"sinkhorn": cost.clamp(min=0), "reconstruction": source.error + target.error}


class CorrectionObjective(Objective):
    """The second loss of `Raincoat`, with a frozen head; validation watches the source's cross entropy."""

    terms = ("reconstruction",)

    def __init__(self, model: RaincoatNetwork, settings: RaincoatSettings) -> None:
        super().__init__()
        self.model, self.settings = model, settings
        freeze(*model.heads(), model.frequency.summary, model.frequency.norm, *model.network.code_modules())

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        errors = [summed_l1_error(self.model(rows["x"]), rows["x"]) for rows in split_domains(batch)]
        error = errors[0] + errors[1]
        return {"loss": self.settings.reconstruction_weight * error, "reconstruction": error}

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.model.classify(batch["x"]), batch["y"])

    def identity(self) -> str:
        return repr((type(self).__name__, self.model.network.settings, self.settings))


@register(
    "raincoat",
    family="alignment",
    needs="source, target",
    reference="He et al. 2023, Domain adaptation for time series under feature and label shifts",
)
class Raincoat(JointMethod):
    """Aligns features of time and frequency by optimal transport, then corrects them by reconstruction.

        align:   L = w_c CE(x_s, y_s) + w_s OT(z_s, z_t) + w_r (||x'_s - x_s||_1 + ||x'_t - x_t||_1)
        correct: L = w_r (||x'_s - x_s||_1 + ||x'_t - x_t||_1)

    z are the features and x' the reconstructions of windows x. Of the models after the two trainings, the one with the
    lower cross entropy on held-out source windows is kept.
    """

    Settings = RaincoatSettings
    settings: RaincoatSettings
    equal_length = True
    phase = "align"

    def objective(self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int) -> RaincoatObjective:
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
        """Train the given model in the second phase."""
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


def summed_l1_error(output: RaincoatOutput, x: Tensor) -> Tensor:
    r"""||\hat x - x||_1, summed over rows, channels and steps; x (B, C, T) -> ()."""
    return F.l1_loss(output.reconstruction, x, reduction="sum")


def _view(output: RaincoatOutput, x: Tensor) -> RaincoatView:
    return RaincoatView(output.z, output.logits, summed_l1_error(output, x))
