"""SASA: aligns which patches attend to which, instead of the features themselves (Cai et al. 2021)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_choice, invalid
from transpl.methods.joint import AlignmentObjective, JointMethod, JointSettings, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import Backbone, Classifier, Encoded, Network, Rows, Weighting, seeded_module
from transpl.nn.losses import sparsemax

VARIANTS = ("full", "adatime")
FLOOR = 1e-6  # of a channel's structure gap, as published


@dataclass(frozen=True)
class SASASettings(JointSettings):
    """Settings of `SASA`.

    The published weights are fixed. A learnt one grows as its loss falls, to hundreds of times the cross entropy's
    at the floor of these losses.
    """

    weighting: str = "fixed"
    variant: str = setting(
        "full",
        '"full" aligns sparse associations; "adatime" is what AdaTime\'s code computes under this name: '
        "features of unit length, and the distance of their means",
    )
    intra_weight: float = setting(5.0, 'of the associations within channels ("full")')
    inter_weight: float = setting(5.0, 'of the associations between channels ("full")')
    mean_weight: float = setting(1.0, 'of the distance of the means ("adatime")')

    presets: ClassVar = {
        "adatime": preset_table(
            ("adapt_lr", "cross_entropy_weight", "mean_weight"),
            {"ucihar": (5e-3, 4.186, 7.394), "hhar": (1e-3, 4.131, 5.760), "wisdm": (5e-3, 9.899, 1.263)},
            variant="adatime",
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, VARIANTS)

    @classmethod
    def preset(cls, name: str, dataset: str) -> Mapping[str, Any]:
        """As for every method; "cnn" aligns as AdaTime does."""
        return {**super().preset(name, dataset), **({"variant": "adatime"} if name == "cnn" else {})}


class Readout(NamedTuple):
    """Features of an encoded batch."""

    z: Tensor  # (B, d), the features that are classified
    structures: dict[str, Tensor]  # each (B, D, S): S attention weights per channel that sum to 1


class Pooling(nn.Module, ABC):
    """Turns encoded windows into features."""

    @abstractmethod
    def forward(self, encoded: Encoded) -> Readout: ...


class SparseAssociations(Pooling):
    r"""z = mean_i W [Z_i; U_i] over channels i: Z_i combines the patches of a channel, U_i adds other channels.

    a_i = sparsemax_t(mean_s q_{i,s}^T k_{i,t} / \sqrt{d}),   Z_i = \sum_t a_{i,t} v_{i,t}
    b_i = sparsemax_{j,t}(cos(Z_i, h_{j,t})), j != i,         U_i = \sum_{j,t} b_{i,j,t} h_{j,t}

    h are the latents of patches t, and q, k, v linear in h, the same for all channels. The structures are "intra", a
    (B, D, N), and "inter", b (B, D, D N), which is 0 where j = i. A single channel has no others: b = 0, U = 0.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.join = nn.Linear(2 * width, width)
        for layer in (self.query, self.key, self.value, self.join):  # as the authors' layers start
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, encoded: Encoded) -> Readout:
        h = encoded.latents
        Z, a = self._within_channels(h)
        U, b = _between_channels(Z, h)
        # W is linear, so the cheaper order is to average over channels first.
        return Readout(self.join(torch.cat([Z, U], dim=-1).mean(dim=1)), {"intra": a, "inter": b})

    def _within_channels(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """h (B, D, N, d) -> Z (B, D, d), a (B, D, N)."""
        # q and v are linear and a sums to 1, so h is averaged first: one product per channel instead of one per patch.
        q = self.query(h.mean(dim=2))
        a = sparsemax(_dot(self.key(h), q) / math.sqrt(h.shape[-1]))
        return self.value(_mixed(a, h)), a


class UnitSummary(Pooling):
    r"""z = s / ||s||, s the network's own features, the mean of the summaries over channels; no structures."""

    def forward(self, encoded: Encoded) -> Readout:
        return Readout(F.normalize(encoded.summary.mean(dim=1), dim=-1), {})


class PooledClassifier(Classifier):
    """Encoder -> pooling -> head; encoder and head are those of the shared network."""

    def __init__(self, network: Backbone, pooling: Pooling) -> None:
        super().__init__()
        self.network, self.pooling = network, pooling

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T) -> z (B, d); windows must have one length."""
        if lengths is not None:
            raise invalid("lengths", expected="None", got="lengths", advice="SASA needs windows of one length.")
        return self.pooling(self.network.encode(x)).z

    def logits(self, z: Tensor) -> Tensor:
        """z (B, d) -> class logits (B, K)."""
        return self.network.head(z)


def _between_channels(Z: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Z (B, D, d), h (B, D, N, d) -> U (B, D, d), b (B, D, D N)."""
    _, D, N, _ = h.shape
    h = h.flatten(1, 2)  # (B, D N, d)
    cosine = F.normalize(Z, dim=-1) @ F.normalize(h, dim=-1).mT
    own = torch.eye(D, dtype=torch.bool, device=h.device).repeat_interleave(N, dim=1)
    b = sparsemax(cosine.masked_fill(own, -torch.inf))
    return b @ h, b


def _dot(h: Tensor, v: Tensor) -> Tensor:
    """h (B, D, N, d), v (B, D, d) -> h_t^T v, (B, D, N)."""
    return (h @ v[..., None])[..., 0]


def _mixed(a: Tensor, h: Tensor) -> Tensor:
    r"""a (B, D, N), h (B, D, N, d) -> \sum_t a_t h_t, (B, D, d)."""
    return (a[..., None, :] @ h)[..., 0, :]


class PooledObjective(AlignmentObjective[Readout]):
    """L = w_c CE(x_s, y_s) + an alignment of the readouts of both domains."""

    model: PooledClassifier

    def __init__(self, network: Backbone, pooling: Pooling, weighting: Weighting, settings: SASASettings) -> None:
        super().__init__(PooledClassifier(network, pooling), weighting, settings)

    @property
    def network(self) -> Backbone:
        return self.model.network

    def source_view(self, rows: Rows) -> tuple[Readout, dict[str, Tensor]]:
        code_losses = {}
        if self.settings.codes and isinstance(self.network, Network):
            output = self.network(rows["x"])
            encoded = output.encoded
            code_losses = {"code": output.code_loss, "reconstruction": output.reconstruction_loss}
        else:
            encoded = self.network.encode(rows["x"])
        readout = self.model.pooling(encoded)
        cross_entropy = F.cross_entropy(self.network.head(readout.z), rows["y"])
        return readout, {"cross_entropy": cross_entropy, **code_losses}

    def target_view(self, rows: Rows) -> Readout:
        return self.model.pooling(self.network.encode(rows["x"]))


class StructureObjective(PooledObjective):
    r"""L = CE(x_s, y_s) + c \sum_i ||E_s a_i - E_t a_i||^2 + c \sum_i ||E_s b_i - E_t b_i||^2 over channels i.

    a and b are the associations within and between channels, E_s and E_t the means over the rows of a batch.
    """

    terms = ("intra", "inter")

    def alignment(self, source: Readout, target: Readout) -> dict[str, Tensor]:
        return {name: structure_gap(source.structures[name], target.structures[name]) for name in self.terms}


class UnitMeanObjective(PooledObjective):
    r"""L = w_c CE(x_s, y_s) + w_d ||E_s z - E_t z||, z of unit length."""

    terms = ("mean",)

    def alignment(self, source: Readout, target: Readout) -> dict[str, Tensor]:
        return {"mean": torch.linalg.vector_norm(source.z.mean(dim=0) - target.z.mean(dim=0))}


def structure_gap(p_s: Tensor, p_t: Tensor) -> Tensor:
    r"""\sum_i max(||E_s p_i - E_t p_i||^2, 10^{-6}); p_s (n_s, D, S), p_t (n_t, D, S) -> ()."""
    return (p_s.mean(dim=0) - p_t.mean(dim=0)).square().sum(dim=-1).clamp(min=FLOOR).sum()


@register(
    "sasa",
    family="alignment",
    needs="source, target",
    reference="Cai et al. 2021, Time series domain adaptation via sparse associative structure alignment",
)
class SASA(JointMethod):
    """Aligns sparse associations of patches, within and between channels.

        L = CE(x_s, y_s) + c sum_i ||E_s a_i - E_t a_i||^2 + c sum_i ||E_s b_i - E_t b_i||^2

    a_i and b_i are the associations of channel i within itself and with other channels, E_s and E_t their means over
    the rows of a batch.
    """

    Settings = SASASettings
    settings: SASASettings
    equal_length = True  # the n-th patch of one domain is compared with the n-th of the other

    def objective(self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int) -> PooledObjective:
        make: type[PooledObjective] = UnitMeanObjective
        pooling: Pooling = UnitSummary()
        if self.settings.variant == "full":
            make, pooling = StructureObjective, seeded_module(self.seed + 1, SparseAssociations, self.settings.width)
        return make(network, pooling, self.weighting(make.terms), self.settings)
