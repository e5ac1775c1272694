r"""The two halves of a transformer layer on the CPU, each as one node of the autograd graph.

Same mathematics as the plain layer in `transformer`; less memory traffic, which is what a step waits for:

* element-wise work is done in place on the fresh result of a matrix product;
* the factors 1 / (1 - p) of both dropouts are carried by the second weight matrix of a half, which is small;
* dropout multiplies by booleans (a byte each), not by a mask of floats;
* biases are added inside the matrix product (oneDNN), not in a pass of their own;
* the gradient of softmax needs \sum_j P_ij dP_ij = \sum_c M_ic dM_ic, M = P V: a sum over the head's width, not tokens.

In the names dX is the gradient with respect to X.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from transpl.nn.dropout import Masks, without_dropped, zero_dropped_

EPSILON = 1e-5  # of layer normalisation
_SAFE_EXPONENT = 60.0  # exp of scores in +-60, and sums of many, fit float32: no maximum has to be subtracted

_HAS_ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
_ONEDNN_LINEAR = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if _HAS_ONEDNN else None


class FeedForwardHalf(torch.autograd.Function):
    r"""y = LN(x + o(W_2 o(gelu(W_1 x + b_1)) + b_2)); o is dropout with the given masks; x (..., d)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        masks: Masks,
        recorded: bool,
        W1: Tensor,
        b1: Tensor,
        W2: Tensor,
        b2: Tensor,
        gain: Tensor,
        shift: Tensor,
    ) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        W2 = W2 * masks.scale**2
        before = linear(rows, W1, b1) if recorded else None
        hidden = linear_gelu(rows, W1, b1) if before is None else F.gelu(before)
        z = linear(zero_dropped_(hidden, masks.inner), W2, b2 * masks.scale)
        z = zero_dropped_(z, masks.outer).add_(rows)
        y, mean, rstd = torch.native_layer_norm(z, [z.shape[1]], gain, shift, EPSILON)
        if recorded:
            ctx.save_for_backward(rows, before, hidden, z, mean, rstd, W1, W2, gain, shift)
            ctx.masks = masks
        return y.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        rows, before, hidden, z, mean, rstd, W1, W2, gain, shift = ctx.saved_tensors
        masks: Masks = ctx.masks
        dz, dgain, dshift = _layer_norm_gradient(dy.reshape(z.shape), z, mean, rstd, gain, shift)
        dout = without_dropped(dz, masks.outer)
        dhidden = zero_dropped_(dout @ W2, masks.inner)
        dbefore = torch.ops.aten.gelu_backward.grad_input(dhidden, before, grad_input=dhidden)
        dx = (dbefore @ W1).add_(dz).view(dy.shape)
        dW2, db2 = (dout.t() @ hidden).mul_(masks.scale**2), _column_sums(dout).mul_(masks.scale)
        return dx, None, None, dbefore.t() @ rows, _column_sums(dbefore), dW2, db2, dgain, dshift


class AttentionHalf(torch.autograd.Function):
    r"""y = LN(x + o(W_o M + b_o)), M_h = o(softmax(Q_h K_h^T / \sqrt{d_h} + bias)) V_h; x (S, L, d).

    W_in, b_in : Q, K and V of all heads, (3 d, d) and (3 d,)
    bias : added to the scores, (S, 1, 1, L); or None
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        masks: Masks,
        n_heads: int,
        bias: Tensor | None,
        W_in: Tensor,
        b_in: Tensor,
        W_out: Tensor,
        b_out: Tensor,
        gain: Tensor,
        shift: Tensor,
    ) -> Tensor:
        S, L, d = x.shape
        rows = x.reshape(-1, d)
        W_in, b_in = _scale_queries(W_in, d // n_heads), _scale_queries(b_in, d // n_heads)
        W_out = W_out * masks.scale**2
        qkv = _split_heads(linear(rows, W_in, b_in).view(S, L, 3, n_heads, -1))
        scores = torch.bmm(qkv[0], qkv[1].mT)
        if bias is not None:
            scores.view(S, n_heads, L, L).add_(bias)
        P = softmax_(scores)
        kept = without_dropped(P, masks.inner)
        mixed = _merge_heads(torch.bmm(kept, qkv[2]), S)
        z = zero_dropped_(linear(mixed, W_out, b_out * masks.scale), masks.outer).add_(rows)
        y, mean, rstd = torch.native_layer_norm(z, [d], gain, shift, EPSILON)
        ctx.save_for_backward(rows, qkv, P, kept, mixed, z, mean, rstd, W_in, W_out, gain, shift)
        ctx.masks, ctx.n_heads = masks, n_heads
        return y.view(S, L, d)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        rows, qkv, P, kept, mixed, z, mean, rstd, W_in, W_out, gain, shift = ctx.saved_tensors
        masks: Masks = ctx.masks
        S, d_head = dy.shape[0], dy.shape[2] // ctx.n_heads
        dz, dgain, dshift = _layer_norm_gradient(dy.reshape(z.shape), z, mean, rstd, gain, shift)
        dout = without_dropped(dz, masks.outer)
        dmixed = dout @ W_out
        dqkv = _attention_gradient(dmixed, mixed, qkv, P, kept, masks, S)
        dprojected = _join_heads(dqkv, S)
        dx = (dprojected @ W_in).add_(dz).view(dy.shape)
        dW_in = _scale_queries_(dprojected.t() @ rows, d_head)
        db_in = _scale_queries_(_column_sums(dprojected), d_head)
        dW_out, db_out = (dout.t() @ mixed).mul_(masks.scale**2), _column_sums(dout).mul_(masks.scale)
        return dx, None, None, None, dW_in, db_in, dW_out, db_out, dgain, dshift


def linear(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """x W^T + b; x (n, in)."""
    if _ONEDNN_LINEAR is None or x.dtype != torch.float32:
        return F.linear(x, W, b)
    result: Tensor = _ONEDNN_LINEAR(x, W, b, "none", [], "")
    return result


def linear_gelu(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """gelu(x W^T + b) in one pass; x (n, in)."""
    if _ONEDNN_LINEAR is None or x.dtype != torch.float32:
        return F.gelu(F.linear(x, W, b))
    result: Tensor = _ONEDNN_LINEAR(x, W, b, "gelu", [], "none")
    return result


def softmax_(scores: Tensor) -> Tensor:
    r"""exp(s_ij) / \sum_j exp(s_ij), in place; scores contiguous (..., L).

    torch's softmax is slow on rows as short as 17. It is kept for scores whose exponentials would not fit.
    """
    lowest, highest = torch.aminmax(scores)
    if not (lowest > -_SAFE_EXPONENT and highest < _SAFE_EXPONENT):
        return torch.softmax(scores, dim=-1, out=scores)
    rows = scores.exp_().view(-1, scores.shape[-1])
    rows.div_(torch.mv(rows, rows.new_ones(rows.shape[1]))[:, None])
    return scores


def _attention_gradient(
    dmixed: Tensor, mixed: Tensor, qkv: Tensor, P: Tensor, kept: Tensor, masks: Masks, S: int
) -> Tensor:
    r"""dV = o(P)^T dM; dS = P * (o(dM V^T) - \sum_c M_c dM_c); dQ = dS K; dK = dS^T Q; M is `mixed`."""
    (q, k, v), dqkv = qkv, torch.empty_like(qkv)
    n_heads, d_head = len(q) // S, q.shape[2]
    dmixed_heads = _by_head(dmixed, S, n_heads)
    through_softmax = torch.mv((dmixed * mixed).view(-1, d_head), dmixed.new_ones(d_head))
    torch.bmm(kept.mT, dmixed_heads, out=dqkv[2])
    dscores = zero_dropped_(torch.bmm(dmixed_heads, v.mT), masks.inner)
    dscores.sub_(_by_head(through_softmax.view(len(dmixed), -1), S, n_heads)).mul_(P)
    torch.bmm(dscores, k, out=dqkv[0])
    torch.bmm(dscores.mT, q, out=dqkv[1])
    return dqkv


def _layer_norm_gradient(
    dy: Tensor, z: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    gradient: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.native_layer_norm_backward(
        dy, z, [z.shape[1]], mean, rstd, gain, shift, [True, True, True]
    )
    return gradient


def _split_heads(projected: Tensor) -> Tensor:
    """(S, L, 3, heads, d_h) -> (3, S * heads, L, d_h)."""
    return _transposed(projected, (2, 0, 3, 1)).flatten(1, 2)


def _join_heads(x: Tensor, S: int) -> Tensor:
    """(3, S * heads, L, d_h) -> (S * L, 3 * heads * d_h)."""
    _, _, L, d_head = x.shape
    return _transposed(x.view(3, S, -1, L, d_head), (1, 3, 0, 2)).view(S * L, -1)


def _by_head(x: Tensor, S: int, n_heads: int) -> Tensor:
    """(S * L, heads * e) -> (S * heads, L, e)."""
    return _transposed(x.view(S, len(x) // S, n_heads, -1), (0, 2, 1)).flatten(0, 1)


def _merge_heads(x: Tensor, S: int) -> Tensor:
    """(S * heads, L, d_h) -> (S * L, heads * d_h)."""
    _, L, d_head = x.shape
    return _transposed(x.view(S, -1, L, d_head), (0, 2, 1)).view(S * L, -1)


def _transposed(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """x (..., e) with its leading axes in another order, contiguous; rows of e numbers are moved as one item each."""
    values = x.contiguous().numpy()
    items = values.view(np.dtype((np.void, values.itemsize * values.shape[-1])))[..., 0]
    moved = np.ascontiguousarray(items.transpose(axes))
    return torch.from_numpy(moved[..., None].view(values.dtype))


def _scale_queries(weight: Tensor, d_head: int) -> Tensor:
    return _scale_queries_(weight.clone(), d_head)


def _scale_queries_(weight: Tensor, d_head: int) -> Tensor:
    r"""Divide the third that makes queries by \sqrt{d_h}; the scores are then scaled for free."""
    weight[: len(weight) // 3] /= math.sqrt(d_head)
    return weight


def _column_sums(x: Tensor) -> Tensor:
    return torch.mv(x.t(), x.new_ones(len(x)))
