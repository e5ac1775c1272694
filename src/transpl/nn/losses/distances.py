"""Squared Euclidean distances between rows."""

from __future__ import annotations

import torch
from torch import Tensor


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    r"""D_ij = ||a_i - b_j||^2; a (n, d), b (m, d) -> (n, m).

    Equal rows are exactly 0 apart and pull with gradient 0. (|a|^2 + |b|^2 - 2 a b would leave rounding errors
    there, and a bandwidth made of rounding errors turns them into a loss.)
    """
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
