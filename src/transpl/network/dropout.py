"""Dropout from random bytes: the same distribution as `nn.Dropout` (p to the nearest 1/256), drawn cheaply."""

from __future__ import annotations

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
        self.dropped_levels = round(p * _LEVELS)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.dropped_levels == 0:
            return x
        keep = random_bytes(x.numel(), x.device) >= self.dropped_levels
        scale = _LEVELS / (_LEVELS - self.dropped_levels)
        return x * keep.view(x.shape).to(x.dtype).mul_(scale)

    def extra_repr(self) -> str:
        return f"p={self.dropped_levels / _LEVELS:g}"


def random_bytes(n: int, device: torch.device) -> Tensor:
    """Return n uniform bytes from torch's generator."""
    words = torch.empty(-(-n // _BYTES_PER_WORD), dtype=torch.int64, device=device)
    lowest = torch.iinfo(torch.int64).min
    return words.random_(lowest, None).view(torch.uint8)[:n]
