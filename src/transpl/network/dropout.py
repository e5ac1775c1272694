"""Dropout from random bytes: the same distribution as `nn.Dropout` (p to the nearest 1/256), drawn cheaply."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

_LEVELS = 256
_BYTES_PER_WORD = 8


class Dropout(nn.Module):
    r"""y = x * b / (1 - p), b ~ Bernoulli(1 - p).

    b is one random byte compared with a threshold. Drawing 64-bit words and reading them as bytes costs
    a small part of drawing one Bernoulli number per element.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.dropped_levels = min(round(p * _LEVELS), _LEVELS - 1)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.dropped_levels == 0:
            return x
        keep = _at_least(random_bytes(x.numel(), x.device), self.dropped_levels)
        scale = _LEVELS / (_LEVELS - self.dropped_levels)
        return x * keep.view(x.shape).to(x.dtype).mul_(scale)

    def extra_repr(self) -> str:
        return f"p={self.dropped_levels / _LEVELS:g}"


def random_bytes(n: int, device: torch.device) -> Tensor:
    """Return n uniform bytes from torch's generator."""
    words = torch.empty(-(-n // _BYTES_PER_WORD), dtype=torch.int64, device=device)
    lowest = torch.iinfo(torch.int64).min
    return words.random_(lowest, None).view(torch.uint8)[:n]


def _at_least(values: Tensor, threshold: int) -> Tensor:
    """Return 1 where a byte reaches the threshold, else 0, as bytes."""
    if values.device.type != "cpu":
        return (values >= threshold).view(torch.uint8)
    # On a CPU numpy compares bytes 20 times as fast as torch, and torch converts uint8 4 times as fast as bool.
    return torch.from_numpy((values.numpy() >= threshold).view(np.uint8))
