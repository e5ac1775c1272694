"""Windows into non-overlapping patches, each channel on its own."""

from __future__ import annotations

import torch
from torch import Tensor


def to_patches(x: Tensor, patch_length: int) -> Tensor:
    """X (B, D, T) -> (B, D, N, m) with N = floor(T / m); the tail that fills no patch is dropped."""
    B, D, T = x.shape
    N = T // patch_length
    return x[..., : N * patch_length].reshape(B, D, N, patch_length)


def patch_mask(lengths: Tensor, patch_length: int, n_patches: int) -> Tensor:
    """(B,) real lengths -> (B, N), true where a patch lies wholly inside its window."""
    whole = torch.div(lengths, patch_length, rounding_mode="floor")
    return torch.arange(n_patches, device=lengths.device) < whole[:, None]
