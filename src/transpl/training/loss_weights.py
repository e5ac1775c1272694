"""Learnable weights of several losses (Kendall et al. 2018, in the form the TransPL authors use)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LearnableWeights(nn.Module):
    r"""L = \sum_i L_i / (2 s_i^2) + log(1 + s_i^2), s_i learnable and 1 at the start."""

    def __init__(self, n_losses: int) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.ones(n_losses))

    def forward(self, losses: Tensor) -> Tensor:
        """losses (n_losses,) -> ()."""
        squares = self.s.square()
        return (losses / (2 * squares) + torch.log1p(squares)).sum()
