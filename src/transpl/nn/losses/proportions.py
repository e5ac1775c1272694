"""Weak supervision by known class proportions (CoDATS-WS, Wilson et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from transpl._utils.errors import invalid

_LEAST_PROPORTION = 1e-7


def proportion_divergence(pi: Tensor, p_bar: Tensor) -> Tensor:
    r"""KL(\pi || \bar p) = \sum_k \pi_k log(\pi_k / \bar p_k), a class with \pi_k = 0 contributes 0.

    pi (K,) known proportions of the target, p_bar (K,) mean prediction over target rows, clipped below at 1e-7 -> ()
    """
    if pi.ndim != 1:
        raise invalid("pi", expected="shape (classes,)", got=tuple(pi.shape), advice="Give one proportion per class.")
    if p_bar.shape != pi.shape:
        expected = f"shape {tuple(pi.shape)}, as pi has"
        raise invalid("p_bar", expected=expected, got=tuple(p_bar.shape), advice="Average predictions over the rows.")
    return (torch.xlogy(pi, pi) - torch.xlogy(pi, p_bar.clamp(min=_LEAST_PROPORTION))).sum()
