"""RAINCOAT's network: features of time and of frequency, a decoder from both, a class head (He et al. 2023)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl.nn import BatchNorm, Classifier, Network

HEADS = ("linear", "shared")
_TEMPERATURE = 0.1
_NO_PHASE = 1e-8  # a number this small points nowhere


class FrequencyEncoder(nn.Module):
    r"""X_f = W_f rfft(u)_f for the M lowest f, u = cos(x) or x; e_F = ReLU(BN(conv([|X|; arg X]))).

    W_f is a complex matrix per frequency that mixes the channels, at first U[0, 1) / C^2 in both parts. It is kept as
    real numbers: optimisers and devices all handle those.
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


class Seen(NamedTuple):
    """What the network makes of a batch."""

    z: Tensor  # (B, 2M + d), of length 1
    logits: Tensor  # (B, K)
    reconstruction: Tensor  # (B, C, T)


class RaincoatNetwork(Classifier):
    """e_T of the shared encoder beside e_F; z = [e_F; e_T] / ||[e_F; e_T]||; decoder and head.

    head : "linear", logits = W z / 0.1; or "shared", the network's own on e_T alone
    """

    def __init__(
        self, network: Network, n_channels: int, length: int, n_modes: int, cosine: bool = True, head: str = "linear"
    ) -> None:
        super().__init__()
        d, K = network.settings.width, network.settings.n_classes
        self.network = network
        self.frequency = FrequencyEncoder(n_channels, n_modes, cosine)
        self.decoder = Decoder(d, n_channels, length)
        self.head = nn.Linear(2 * n_modes + d, K, bias=False) if head == "linear" else None

    def forward(self, x: Tensor, e_T: Tensor | None = None) -> Seen:
        """x (B, C, T), e_T (B, d) if it is known."""
        e_T = self.network.features(x) if e_T is None else e_T
        e_F, X = self.frequency(x)
        z = _unit(e_F, e_T)
        return Seen(z, self.logits(e_T if self.head is None else z), self.decoder(e_T, X))

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, C, T) -> what the head sees: z (B, 2M + d), or e_T (B, d); needs windows of one length."""
        e_T = self.network.features(x)
        return e_T if self.head is None else _unit(self.frequency(x)[0], e_T)

    def logits(self, z: Tensor) -> Tensor:
        """What the head sees -> class logits (B, K)."""
        logits: Tensor = self.network.head(z) if self.head is None else self.head(z) / _TEMPERATURE
        return logits

    def heads(self) -> list[nn.Module]:
        """The modules that make logits; first the one in use."""
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
