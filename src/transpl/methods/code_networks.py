"""Small networks that tell classes apart by sequences of coarse codes.

B windows, D channels, N patches, n_c codes, K classes. A code of -1 is no patch: windows of unequal length end in
them, and no network sees them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ENCODINGS = ("one-hot", "embedding")

_EMBEDDED = 16
_HIDDEN = 128


@dataclass(frozen=True)
class CodeShape:
    """What a network of codes takes and gives.

    encoding : of a code, "one-hot", or an "embedding" that is learnt, one for all channels as they share their codes
    """

    n_channels: int
    n_codes: int
    n_classes: int
    encoding: str = "one-hot"

    @property
    def n_features(self) -> int:
        """Of a patch, over all channels."""
        return self.n_channels * (self.n_codes if self.encoding == "one-hot" else _EMBEDDED)


class Encoded(NamedTuple):
    """Codes as numbers."""

    x: Tensor  # (B, N, features), zeros where there is no patch
    real: Tensor  # (B, N), true where there is one


class CodeNetwork(nn.Module):
    """Encoded codes -> `summary` of a window -> linear head.

    The head starts at zero: no class is ahead by its number.
    """

    def __init__(self, shape: CodeShape, width: int) -> None:
        super().__init__()
        self.shape = shape
        self.embed = (
            nn.Embedding(shape.n_codes + 1, _EMBEDDED, padding_idx=0) if shape.encoding == "embedding" else None
        )
        self.head = nn.Linear(width, shape.n_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, codes: Tensor) -> Tensor:
        """codes (B, D, N) -> class logits (B, K)."""
        return self.head(self.summary(self.encode(codes)))

    def encode(self, codes: Tensor) -> Encoded:
        """codes (B, D, N) -> one vector per patch."""
        from_one = codes.long() + 1
        x = self._one_hot(from_one) if self.embed is None else self.embed(from_one)  # (B, D, N, features)
        return Encoded(x.transpose(1, 2).flatten(2), codes[:, 0] >= 0)

    def _one_hot(self, from_one: Tensor) -> Tensor:
        return F.one_hot(from_one, self.shape.n_codes + 1)[..., 1:].float()

    @abstractmethod
    def summary(self, encoded: Encoded) -> Tensor:
        """One vector per window, (B, width)."""


class CodeCNN(CodeNetwork):
    """Two convolutions over three patches each, the mean over patches, dropout."""

    def __init__(self, shape: CodeShape) -> None:
        super().__init__(shape, _HIDDEN)
        self.first = _Convolution(shape.n_features, _HIDDEN // 2)
        self.second = _Convolution(_HIDDEN // 2, _HIDDEN)
        self.dropout = nn.Dropout(0.3)

    def summary(self, encoded: Encoded) -> Tensor:
        x, real = encoded
        h = self.second(self.first(x, real), real)
        return self.dropout(h.sum(dim=1) / real.sum(dim=1, keepdim=True))


class _Convolution(nn.Module):
    """Convolution, batch norm over the real patches, ReLU; (B, N, a) -> (B, N, b), zeros where there is no patch."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.convolve = nn.Conv1d(n_in, n_out, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm1d(n_out)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        h = self.convolve(x.transpose(1, 2)).transpose(1, 2)
        return h.new_zeros(h.shape).masked_scatter(real[..., None], F.relu(self._normalised(h[real])))

    def _normalised(self, patches: Tensor) -> Tensor:
        """(n, b) -> (n, b); a single patch has no spread, and is judged by those before it."""
        if len(patches) > 1:
            return self.norm(patches)
        norm = self.norm
        return F.batch_norm(patches, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)


class _Recurrent(CodeNetwork):
    """The state of one recurrent layer after the last patch."""

    layer: nn.RNNBase

    def summary(self, encoded: Encoded) -> Tensor:
        x, real = encoded
        states, _ = self.layer(x)  # (B, N, width)
        last = real.sum(dim=1) - 1  # real patches come first
        return states[torch.arange(len(x), device=x.device), last]


class CodeLSTM(_Recurrent):
    """One LSTM layer."""

    def __init__(self, shape: CodeShape) -> None:
        super().__init__(shape, _HIDDEN)
        self.layer = nn.LSTM(shape.n_features, _HIDDEN, batch_first=True)


class CodeGRU(_Recurrent):
    """One GRU layer."""

    def __init__(self, shape: CodeShape) -> None:
        super().__init__(shape, _HIDDEN)
        self.layer = nn.GRU(shape.n_features, _HIDDEN, batch_first=True)
