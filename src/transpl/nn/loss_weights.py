"""Learnable weights of several losses (Kendall et al. 2018, in the form the TransPL authors use)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor, nn

LEAST_SQUARE = 1e-4


class LearnableWeights(nn.Module):
    r"""L = \sum_i L_i / (2 s_i^2) + log(1 + s_i^2), s_i learnable and 1 at the start, s_i^2 at least 1e-4.

    For losses L_i >= 0. A constant L_i draws s_i^2 to (L_i + \sqrt{L_i^2 + 8 L_i}) / 4.
    """

    def __init__(self, n_losses: int) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.ones(n_losses))

    def forward(self, losses: Tensor) -> Tensor:
        """losses (n_losses,) -> ()."""
        squares = _floored(self.s).square()
        return (losses / (2 * squares) + torch.log1p(squares)).sum()


class Weighting(nn.Module):
    r"""L = \sum_i w_i L_i, the w_i fixed or learnt as in `LearnableWeights`, by name."""

    def __init__(self, fixed: Mapping[str, float], learnt: Sequence[str] = ()) -> None:
        super().__init__()
        self.fixed, self.learnt = dict(fixed), tuple(learnt)
        # No empty parameter: several devices wait for a gradient of each.
        self.scales = LearnableWeights(len(self.learnt)) if self.learnt else None

    def forward(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Scalars by name -> their weighed sum, ()."""
        fixed = [weight * losses[name] for name, weight in self.fixed.items()]
        if self.scales is None:
            return reduce(torch.add, fixed)
        learnt = self.scales(torch.stack([losses[name] for name in self.learnt]))
        return reduce(torch.add, [*fixed, learnt])

    def extra_repr(self) -> str:
        return f"fixed={self.fixed}, learnt={self.learnt}"


def _floored(s: Tensor) -> Tensor:
    """Keep |s| at 0.01 or more, with the gradient that s has at the floor: even an s of 0 can grow again."""
    now = s.detach()
    floored = torch.copysign(now.abs().clamp(min=LEAST_SQUARE**0.5), now)
    return s + (floored - now)
