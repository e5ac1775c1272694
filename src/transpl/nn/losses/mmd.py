"""Maximum mean discrepancy with five Gaussian kernels (as in MMDA, Rahman et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from transpl.nn.losses.checks import nothing, same_width
from transpl.nn.losses.distances import squared_distances

N_KERNELS = 5
_LEAST_BANDWIDTH = 1e-12


def mmd(z_s: Tensor, z_t: Tensor, b0: Tensor | None = None) -> Tensor:
    r"""MMD^2 = mean K_ss + mean K_tt - 2 mean K_st, k(a, b) = \sum_{i=0}^4 exp(-||a - b||^2 / (b_0 2^i)).

    z_s (n_s, d), z_t (n_t, d) -> (); diagonals are part of the means, so it is never negative but for rounding
    b0 : the smallest bandwidth (); None takes a quarter of the mean squared distance between different rows of the
        pooled batch, as a constant (no gradient), at least 1e-12 in case all rows are equal

    A side without rows has no mean: the loss is then 0.
    """
    same_width("z_s", z_s, "z_t", z_t)
    n_s = len(z_s)
    if n_s == 0 or len(z_t) == 0:
        return nothing(z_s, z_t)
    pooled = torch.cat([z_s, z_t])  # (n, d)
    D = squared_distances(pooled, pooled)  # (n, n)
    k = _kernel(D, _bandwidth(D.detach()) if b0 is None else b0)
    return k[:n_s, :n_s].mean() + k[n_s:, n_s:].mean() - 2 * k[:n_s, n_s:].mean()


def _bandwidth(D: Tensor) -> Tensor:
    r"""b_0 = \sum_{i \ne j} D_ij / (4 n (n - 1)); the diagonal of D is 0."""
    n = len(D)
    return (D.sum() / (4 * n * (n - 1))).clamp(min=_LEAST_BANDWIDTH)


def _kernel(D: Tensor, b0: Tensor) -> Tensor:
    bandwidths = b0 * 2.0 ** torch.arange(N_KERNELS, device=D.device, dtype=D.dtype)
    return torch.exp(-D / bandwidths[:, None, None]).sum(dim=0)
