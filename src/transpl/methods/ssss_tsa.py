"""SSSS-TSA: features of every channel by itself are aligned, then attention selects channels (Ahad et al. 2025)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_positive
from transpl.methods.joint import AlignmentObjective, JointMethod, JointSettings, preset_table
from transpl.methods.method_settings import setting
from transpl.methods.registry import register
from transpl.nn import (
    Backbone,
    Classifier,
    Network,
    Rows,
    Weighting,
    freeze,
    isolated_rng,
    seeded_module,
    with_gradients,
)
from transpl.nn.losses import sinkhorn

_TEMPERATURES = {"ucihar": 10.0, "wisdm": 3.0, "hhar": 3.0}


@dataclass(frozen=True)
class SSSSTSASettings(JointSettings):
    """Settings of `SSSSTSA`."""

    weighting: str = "fixed"
    cross_entropy_weight: float = setting(1.613, "of the sum of the source's cross entropies")
    sinkhorn_weight: float = setting(1.857, "weight of the term sinkhorn, the sum of all transport costs")
    temperature: float = setting(3.0, "divides the scores of channels; a larger value makes their weights more alike")
    epsilon: float | None = setting(
        None,
        "blur of the transport; None is a twentieth of the mean cost, where it converges; the authors' is 1e-3",
    )

    presets: ClassVar = {
        "published": preset_table(
            ("temperature", "batch_size", "max_epochs"),
            {
                "ucihar": (_TEMPERATURES["ucihar"], 64, 150),
                "wisdm": (_TEMPERATURES["wisdm"], 128, 250),
                "hhar": (_TEMPERATURES["hhar"], 64, 300),
            },
            adapt_lr=1e-3,
            weight_decay=1e-4,
            keep="last",
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("temperature", self.temperature)
        if self.epsilon is not None:
            check_positive("epsilon", self.epsilon)

    @classmethod
    def preset(cls, name: str, dataset: str) -> Mapping[str, Any]:
        """As for every method; "cnn" has the published temperature."""
        values = super().preset(name, dataset)
        if name == "cnn" and dataset in _TEMPERATURES:
            return {**values, "temperature": _TEMPERATURES[dataset]}
        return values


class ChannelAttention(nn.Module):
    r"""a = softmax_c((Q f_c)^T (K f_c) / (\tau \sqrt{d})): weights of channels, not of pairs of them."""

    def __init__(self, width: int, temperature: float) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.temperature = temperature

    def forward(self, f: Tensor) -> Tensor:
        """f (B, C, d) -> a (B, C), rows sum to 1."""
        scores = (self.query(f) * self.key(f)).sum(dim=-1) / math.sqrt(f.shape[-1])
        return (scores / self.temperature).softmax(dim=-1)


class ChannelView(NamedTuple):
    """What is aligned of a batch."""

    f: Tensor  # (B, C, d), of length 1
    z: Tensor  # (B, C d), features of all channels, with their weights


class ChannelNetwork(Classifier):
    """f_c = e_c / ||e_c|| of the encoder of channel c; z = [a_1 f_1; ...; a_C f_C]; a linear head for z and each f_c.

    z passes no gradient to the encoders, so that a channel's features do not depend on what others contribute.

    encoders : one that encodes every channel by itself, for all; or one for each channel
    """

    def __init__(self, encoders: Sequence[Backbone], n_channels: int, temperature: float) -> None:
        super().__init__()
        d, K = encoders[0].settings.width, encoders[0].settings.n_classes
        self._encoders = nn.ModuleList(encoders)
        self.attention = ChannelAttention(d, temperature)
        self.channel_heads = nn.ModuleList(nn.Linear(d, K, bias=False) for _ in range(n_channels))
        self.head = nn.Linear(n_channels * d, K, bias=False)

    @property
    def encoders(self) -> list[Backbone]:
        return [encoder for encoder in self._encoders if isinstance(encoder, Backbone)]

    def view(self, x: Tensor, lengths: Tensor | None = None) -> ChannelView:
        """x (B, C, T)."""
        parts = x.chunk(len(self.encoders), dim=1)
        pairs = zip(self.encoders, parts, strict=True)
        return self.joined(torch.cat([encoder.encode(part, lengths).summary for encoder, part in pairs], dim=1))

    def joined(self, summary: Tensor) -> ChannelView:
        """The summaries of channels, (B, C, d)."""
        f = F.normalize(summary, dim=-1)
        fixed = f.detach()
        return ChannelView(f, (self.attention(fixed)[..., None] * fixed).flatten(1))

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, C, T) -> z (B, C d)."""
        return self.view(x, lengths).z

    def logits(self, z: Tensor) -> Tensor:
        """z (B, C d) -> class logits (B, K)."""
        return self.head(z)

    def all_logits(self, view: ChannelView) -> list[Tensor]:
        """Of z, then of every channel, each (B, K)."""
        return [self.head(view.z), *(head(f) for head, f in zip(self.channel_heads, view.f.unbind(dim=1), strict=True))]


class SSSSTSAObjective(AlignmentObjective[ChannelView]):
    """The loss of `SSSSTSA`."""

    model: ChannelNetwork
    settings: SSSSTSASettings
    terms = ("sinkhorn",)

    def __init__(self, model: ChannelNetwork, weighting: Weighting, settings: SSSSTSASettings) -> None:
        super().__init__(model, weighting, settings)
        freeze(*(encoder.head for encoder in model.encoders))

    @property
    def network(self) -> Backbone:
        return self.model.encoders[0]

    def source_view(self, rows: Rows) -> tuple[ChannelView, dict[str, Tensor]]:
        code_losses = {}
        if self.settings.codes and isinstance(self.network, Network):
            output = self.network(rows["x"], rows.get("lengths"))
            code_losses = {"code": output.code_loss, "reconstruction": output.reconstruction_loss}
            view = self.model.joined(output.encoded.summary)
        else:
            view = self.target_view(rows)
        losses = (F.cross_entropy(logits, rows["y"]) for logits in self.model.all_logits(view))
        return view, {"cross_entropy": reduce(torch.add, losses), **code_losses}

    def target_view(self, rows: Rows) -> ChannelView:
        return self.model.view(rows["x"], rows.get("lengths"))

    def alignment(self, source: ChannelView, target: ChannelView) -> dict[str, Tensor]:
        pairs = [(source.z, target.z), *zip(source.f.unbind(dim=1), target.f.unbind(dim=1), strict=True)]
        # Several transports per step: the gradient of the regularised cost needs no way back through the iterations.
        costs = (sinkhorn(s, t, self.settings.epsilon, gradient="envelope") for s, t in pairs)
        return {"sinkhorn": reduce(torch.add, costs)}


@register(
    "ssss-tsa",
    family="alignment",
    needs="source, target",
    reference="Ahad et al. 2025, Time series domain adaptation via channel-selective representation alignment",
)
class SSSSTSA(JointMethod):
    """Aligns every channel by itself by optimal transport; attention weighs the channels for the class.

        L = w_c (CE(h(z_s), y_s) + sum_c CE(h_c(f_c,s), y_s)) + w_s (OT(z_s, z_t) + sum_c OT(f_c,s, f_c,t))
        z = [a_1 f_1; ...; a_C f_C],  a = softmax_c((Q f_c)^T (K f_c) / (tau sqrt(d)))

    f_c are features of channel c, of unit length, and h and h_c linear. z passes no gradient to the features. On the
    CNN every channel has an encoder of its own, as published; the patch-transformer encodes all channels with shared
    weights. The authors stop the transport after a few iterations; here it converges, with a larger blur.
    """

    Settings = SSSSTSASettings
    settings: SSSSTSASettings

    def objective(self, network: Backbone, prior: NDArray[np.float64] | None, total_steps: int) -> SSSSTSAObjective:
        n_channels = self.n_channels
        encoders = [network] if isinstance(network, Network) else self._channel_encoders()
        model = seeded_module(self.seed + 1, ChannelNetwork, encoders, n_channels, self.settings.temperature)
        return SSSSTSAObjective(model, self.weighting(), self.settings)

    def _channel_encoders(self) -> list[Backbone]:
        """A backbone of one channel for every channel."""
        shape = self.settings.backbone_shape(self.n_classes, n_channels=1)
        with isolated_rng(), with_gradients():
            torch.manual_seed(self.seed)
            return [shape.build() for _ in range(self.n_channels)]
