"""Residual vector quantisation by cosine: a small coarse codebook, then a larger fine one (paper, section 3.1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

RESIDUALS = ("normalised", "raw")
_KMEANS_ITERATIONS = 50
_SMALLEST_LENGTH = 1e-12


class Quantized(NamedTuple):
    """Vectors (..., d) after quantisation."""

    vectors: Tensor  # (..., d): code vectors, with the straight-through gradient
    codes: Tensor  # (...): index of the nearest code
    loss: Tensor  # (): codebook loss + commitment
    residual: Tensor  # (..., d): l2(v) - sg[l2(e_c)]


class Codebook(nn.Module):
    r"""c = argmax_c cos(v, e_c);  L = |sg[l2(v)] - l2(e_c)|^2 + \beta |sg[l2(e_c)] - l2(v)|^2 (mean over elements)."""

    def __init__(self, n_codes: int, width: int, commitment: float = 0.25) -> None:
        super().__init__()
        self.vectors = nn.Parameter(F.normalize(torch.randn(n_codes, width), dim=-1))
        self.commitment = commitment

    @property
    def n_codes(self) -> int:
        return self.vectors.shape[0]

    def nearest(self, v: Tensor) -> Tensor:
        """Return the index of the most similar code: (..., d) -> (...)."""
        return (v @ F.normalize(self.vectors, dim=-1).T).argmax(dim=-1)

    def forward(self, v: Tensor) -> Quantized:
        """Quantise v (..., d)."""
        e = F.normalize(self.vectors, dim=-1)
        return Quantized(*_NearestCode.apply(v, e, self.commitment))  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def start_from(self, points: Tensor, seed: int) -> None:
        """Place the codes at the k-means centres of `points` (n, d); fewer points than codes is fine."""
        centres = _kmeans(points.double().cpu().numpy(), self.n_codes, seed)
        self.vectors.copy_(F.normalize(torch.from_numpy(centres), dim=-1))


class _NearestCode(torch.autograd.Function):
    r"""u = v / |v|; c = argmax_c u e_c; (e_c, c, L, u - e_c) for unit codes e, with L of `Codebook`.

    Straight through: u gets the gradient of the returned vectors unchanged. This is one node of the graph instead of
    dozens for normalisation and two squared errors, each a pass over all latents.
    """

    @staticmethod
    def forward(ctx: Any, v: Tensor, e: Tensor, commitment: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        length = torch.linalg.vector_norm(v, dim=-1, keepdim=True).clamp_min_(_SMALLEST_LENGTH)
        u = v / length
        codes = (u @ e.T).argmax(dim=-1)
        q = e[codes]
        residual = u - q
        loss = (1 + commitment) * torch.linalg.vector_norm(residual).square() / residual.numel()
        ctx.save_for_backward(u, length, e, codes, residual)
        ctx.commitment = commitment
        ctx.mark_non_differentiable(codes)
        ctx.set_materialize_grads(False)
        return q, codes, loss, residual

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dq: Tensor | None, _: None, dloss: Tensor | None, dresidual: Tensor | None
    ) -> tuple[Tensor, Tensor | None, None]:
        u, length, e, codes, residual = ctx.saved_tensors
        per_element = (residual.new_zeros(()) if dloss is None else dloss) * (2 / residual.numel())
        du = residual * (ctx.commitment * per_element)
        for gradient in (dq, dresidual):
            if gradient is not None:
                du += gradient
        # u is a unit vector: only the part of du that is orthogonal to it changes v.
        along = (u * du).sum(dim=-1, keepdim=True)
        dv = du.addcmul_(u, along, value=-1).div_(length)
        chosen = F.one_hot(codes.flatten(), len(e)).to(e)
        return dv, chosen.T @ residual.reshape(-1, e.shape[1]) * -per_element, None


class ResidualQuantizer(nn.Module):
    r"""q = l2(e_c) + l2(e_f): c nearest to l2(z), f nearest to the residual.

    residual : "normalised" is l2(z) - l2(e_c) (the paper's print), "raw" is z - l2(e_c) (the authors' code)
    n_fine : 0 for no fine book; then q = l2(e_c)
    """

    def __init__(
        self, n_coarse: int, n_fine: int, width: int, commitment: float = 0.25, residual: str = "normalised"
    ) -> None:
        super().__init__()
        self.minuend = residual
        self.coarse = Codebook(n_coarse, width, commitment)
        self.fine = Codebook(n_fine, width, commitment) if n_fine else None

    def forward(self, z: Tensor) -> tuple[Quantized, Quantized | None]:
        """Quantise latents z (..., d); returns the coarse and, if there is a fine book, the fine result."""
        coarse = self.coarse(z)
        if self.fine is None:
            return coarse, None
        return coarse, self.fine(coarse.residual if self.minuend == "normalised" else z - coarse.vectors.detach())

    def residual(self, z: Tensor, codes: Tensor) -> Tensor:
        """l2(z) - sg[l2(e_c)], or z - sg[l2(e_c)]; z (..., d) and coarse codes (...) -> (..., d)."""
        e = F.normalize(self.coarse.vectors, dim=-1)[codes]
        return (F.normalize(z, dim=-1) if self.minuend == "normalised" else z) - e.detach()

    @torch.no_grad()
    def start_from(self, z: Tensor, seed: int) -> None:
        """Start both books by k-means: coarse on l2(z), fine on the residuals."""
        self.coarse.start_from(F.normalize(z, dim=-1), seed)
        if self.fine is not None:
            self.fine.start_from(F.normalize(self.residual(z, self.coarse.nearest(z)), dim=-1), seed)


def perplexity(codes: Tensor, n_codes: int) -> Tensor:
    r"""exp(-\sum_c p_c log p_c) of a batch's codes, (...) -> (); -1 (no patch) is left out."""
    counts = torch.bincount(codes.flatten() + 1, minlength=n_codes + 1)[1:]
    return torch.special.entr(counts / counts.sum().clamp(min=1)).sum().exp()


def _kmeans(points: NDArray[np.float64], k: int, seed: int) -> NDArray[np.float64]:
    distinct = np.unique(points.round(12), axis=0)
    if len(distinct) > k:
        model = KMeans(k, n_init=1, max_iter=_KMEANS_ITERATIONS, random_state=seed)
        return np.asarray(model.fit(points).cluster_centers_, dtype=np.float64)
    # Too few points: each is a centre; the other centres are random directions that training can use.
    random = np.random.RandomState(seed).normal(size=(k - len(distinct), points.shape[1]))
    return np.concatenate([distinct, random])
