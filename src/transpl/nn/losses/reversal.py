"""Gradient reversal: what helps the domain discriminator hurts the encoder (Ganin et al. 2016)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from transpl._utils.errors import check_fraction


def reverse_gradient(z: Tensor, strength: float) -> Tensor:
    r"""R(z) = z, dR/dz = -\lambda I with \lambda = `strength`."""
    return _Reversal.apply(z, strength)  # type: ignore[no-untyped-call]


def reversal_strength(q: float) -> float:
    r"""\lambda(q) = 2 / (1 + exp(-10 q)) - 1, from 0 at the start (q = 0) to almost 1 at the end (q = 1)."""
    check_fraction("q", q, zero=True, one=True)
    return 2 / (1 + math.exp(-10 * q)) - 1


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return z.view_as(z)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.strength * gradients[0], None
