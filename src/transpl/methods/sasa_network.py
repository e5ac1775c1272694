"""SASA's classifiers: features read from the encoder in ways of their own, then the shared network's head."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import invalid
from transpl.nn import Classifier, Encoded, Network
from transpl.nn.losses import sparsemax


class Reading(NamedTuple):
    """What is read from an encoded batch."""

    z: Tensor  # (B, d), the features that are classified
    structures: dict[str, Tensor]  # each (B, D, S): where every channel looks, S weights that sum to 1


class Reader(nn.Module, ABC):
    """Encoded windows -> features."""

    @abstractmethod
    def forward(self, encoded: Encoded) -> Reading: ...


class SparseAssociations(Reader):
    r"""z = mean_i W [Z_i; U_i] over channels i: what patches of a channel say together, and what other channels add.

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

    def forward(self, encoded: Encoded) -> Reading:
        h = encoded.latents
        Z, a = self._within_channels(h)
        U, b = _between_channels(Z, h)
        # W is linear: the mean over channels comes first, as it is cheaper.
        return Reading(self.join(torch.cat([Z, U], dim=-1).mean(dim=1)), {"intra": a, "inter": b})

    def _within_channels(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """h (B, D, N, d) -> Z (B, D, d), a (B, D, N)."""
        # q and v are linear and a sums to 1, so means are taken of h: one product a channel, not one a patch.
        q = self.query(h.mean(dim=2))
        a = sparsemax(_dot(self.key(h), q) / math.sqrt(h.shape[-1]))
        return self.value(_mixed(a, h)), a


class UnitSummary(Reader):
    r"""z = s / ||s||, s the network's own features, the mean of the summaries over channels; no structures."""

    def forward(self, encoded: Encoded) -> Reading:
        return Reading(F.normalize(encoded.summary.mean(dim=1), dim=-1), {})


class ReadClassifier(Classifier):
    """Encoder -> reader -> head; encoder and head are those of the shared network."""

    def __init__(self, network: Network, reader: Reader) -> None:
        super().__init__()
        self.network, self.reader = network, reader

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T) -> what the reader reads, (B, d); windows are of one length."""
        if lengths is not None:
            raise invalid("lengths", expected="None", got="lengths", advice="SASA needs windows of one length.")
        return self.reader(self.network.encode(x)).z

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
