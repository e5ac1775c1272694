"""Learnable weights of several losses (Kendall et al. 2018, in the form the TransPL authors use)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

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


class Weighting(nn.Module):
    r"""L = \sum_i w_i L_i, the w_i fixed or learnt as in `LearnableWeights`, by name."""

    def __init__(self, fixed: Mapping[str, float], learnt: Sequence[str] = ()) -> None:
        super().__init__()
        self.fixed, self.learnt = dict(fixed), tuple(learnt)
        self.scales = LearnableWeights(len(self.learnt))

    def forward(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Scalars by name -> their weighed sum, ()."""
        fixed = [weight * losses[name] for name, weight in self.fixed.items()]
        learnt = [self.scales(torch.stack([losses[name] for name in self.learnt]))] if self.learnt else []
        return reduce(torch.add, fixed + learnt)

    def extra_repr(self) -> str:
        return f"fixed={self.fixed}, learnt={self.learnt}"
