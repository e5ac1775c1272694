"""Sparsemax: softmax's sparse sibling (Martins & Astudillo 2016)."""

from __future__ import annotations

import torch
from torch import Tensor


def sparsemax(z: Tensor, dim: int = -1) -> Tensor:
    r"""p = max(z - \tau, 0), \tau = (\sum_{i \in S} z_i - 1) / |S|: the point of the simplex nearest to z.

    S are the k largest z, k = max{j : 1 + j z_(j) > \sum_{r <= j} z_(r)}, z_(1) >= z_(2) >= ...

    z (..., K, ...) -> the same shape, sums to 1 along `dim`. An entry of -inf (masked) gets 0 and gradient 0; where
    every entry is masked, all get 0.
    """
    masked = z == -torch.inf
    top = z.detach().amax(dim, keepdim=True)
    # p does not change with a shift of z, nor with anything lower than 1 below the largest, so z is made harmless.
    z = (z - top.masked_fill(top == -torch.inf, 0.0)).clamp(min=-2.0)
    S = _support(z.detach(), dim)
    tau = ((z * S).sum(dim, keepdim=True) - 1) / S.sum(dim, keepdim=True)
    # Outside S by mask, not by the clamp alone: at a tie with tau rounding must not let a gradient through.
    return (z - tau).clamp(min=0.0).masked_fill(masked | ~S, 0.0)


def _support(z: Tensor, dim: int) -> Tensor:
    """Mark the entries of S; ties are in or out together."""
    descending = z.sort(dim, descending=True).values.movedim(dim, -1)
    j = torch.arange(1, descending.shape[-1] + 1, device=z.device)
    inside = 1 + j * descending > descending.cumsum(-1)  # a prefix: true up to j = k
    k = inside.sum(-1, keepdim=True)
    return z >= descending.gather(-1, k - 1).movedim(-1, dim)
