r"""Faster versions of the transformer layer and of dropout for the CPU; `use_cpu_kernels(False)` turns them off.

Each half of a layer is one node of the autograd graph. The mathematics is that of `Layer.plain_forward`; there is less
memory traffic, which is what a training step waits for:

* element-wise work is done in place on the fresh result of a matrix product;
* the factors 1 / (1 - p) of both dropouts are multiplied into the second weight matrix of a half, which is small;
* dropout multiplies by booleans (a byte each) instead of floats, made from random bytes that numpy draws in cache;
* biases are added inside the matrix product (oneDNN) instead of in a pass of their own;
* the gradient of softmax needs \sum_j P_ij dP_ij = \sum_c M_ic dM_ic, M = P V: a sum over the head's width, not tokens.

In the names dX is the gradient with respect to X.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

Keep = NDArray[np.bool_]

LAYER_NORM_EPSILON = 1e-5
_SAFE_EXPONENT = 60.0  # exp of scores in +-60, and sums of many, fit float32: no maximum has to be subtracted
_LANES = 8192  # 64 KiB of state fit a processor's cache

_HAS_ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
_ONEDNN_LINEAR = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if _HAS_ONEDNN else None

_enabled: ContextVar[bool] = ContextVar("cpu_kernels", default=True)


@contextmanager
def use_cpu_kernels(enabled: bool) -> Iterator[None]:
    """Inside the block, compute on the CPU with this module's kernels, or (`False`) with plain torch as on a GPU.

    Both compute the same layers. Only the random numbers of dropout are drawn differently, so a training with plain
    torch ends with slightly different weights.

    Examples
    --------
    >>> from transpl.nn import use_cpu_kernels
    >>> with use_cpu_kernels(False):
    ...     pass  # train, predict
    """
    token = _enabled.set(enabled)
    try:
        yield
    finally:
        _enabled.reset(token)


def cpu_kernels_enabled() -> bool:
    """Whether the kernels are on, as they are by default."""
    return _enabled.get()


class Masks(NamedTuple):
    """What the two dropouts of a half layer keep (None: everything), and the factor 1 / (1 - p) of each."""

    inner: Keep | None
    outer: Keep | None
    scale: float


NO_MASKS = Masks(None, None, 1.0)


class RandomBytes:
    r"""s ^= s << 13; s ^= s >> 7; s ^= s << 17 on many 64-bit words side by side (xorshift64), read as bytes.

    Seeded from torch's generator, so that `torch.manual_seed` decides every mask. As plain numpy operations on
    words in cache this costs a sixth of torch's own random bytes, and a Bernoulli number per element costs 60 times
    as much.
    """

    def __init__(self) -> None:
        seed = int(torch.empty((), dtype=torch.int64).random_())
        self._state = np.random.SFC64(seed).random_raw(_LANES)
        self._shifted = np.empty_like(self._state)

    def keep(self, shape: tuple[int, ...], dropped_levels: int) -> Keep:
        """Independent booleans, true with probability 1 - dropped_levels / 256."""
        n = math.prod(shape)
        keep = np.empty(n, np.bool_)
        block = self._state.view(np.uint8)
        for first in range(0, n, len(block)):
            self._advance()
            part = keep[first : first + len(block)]
            np.greater_equal(block[: len(part)], dropped_levels, out=part)
        return keep.reshape(shape)

    def _advance(self) -> None:
        s, t = self._state, self._shifted
        np.bitwise_xor(s, np.left_shift(s, 13, out=t), out=s)
        np.bitwise_xor(s, np.right_shift(s, 7, out=t), out=s)
        np.bitwise_xor(s, np.left_shift(s, 17, out=t), out=s)


def zero_dropped_(x: Tensor, keep: Keep | None) -> Tensor:
    """x_i = 0 where keep_i is false, in place; numpy multiplies by booleans without a mask of floats."""
    if keep is not None:
        values = x.detach().numpy()
        np.multiply(values, keep, out=values)
    return x


def without_dropped(x: Tensor, keep: Keep | None) -> Tensor:
    """x_i * keep_i in new memory; x itself if everything is kept."""
    return x if keep is None else torch.from_numpy(np.multiply(x.detach().numpy(), keep))


class MaskedScale(torch.autograd.Function):
    r"""y = s * b * x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Keep, scale: float) -> Tensor:
        ctx.keep, ctx.scale = keep, scale
        return zero_dropped_(x * scale, keep)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        return zero_dropped_(dy * ctx.scale, ctx.keep), None, None


class FusedFeedForward(torch.autograd.Function):
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
        y, mean, rstd = torch.native_layer_norm(z, [z.shape[1]], gain, shift, LAYER_NORM_EPSILON)
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


class FusedAttention(torch.autograd.Function):
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
        y, mean, rstd = torch.native_layer_norm(z, [d], gain, shift, LAYER_NORM_EPSILON)
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

    torch's softmax is slow on rows as short as 17; it is used where exp(s_ij) could overflow.
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
    """Permute the leading axes of x (..., e) into contiguous memory; a row of e numbers moves as one item."""
    values = x.contiguous().numpy()
    items = values.view(np.dtype((np.void, values.itemsize * values.shape[-1])))[..., 0]
    moved = np.ascontiguousarray(items.transpose(axes))
    return torch.from_numpy(moved[..., None].view(values.dtype))


def _scale_queries(weight: Tensor, d_head: int) -> Tensor:
    return _scale_queries_(weight.clone(), d_head)


def _scale_queries_(weight: Tensor, d_head: int) -> Tensor:
    r"""Divide the query third of the weights by \sqrt{d_h}, in place, so that scores need no scaling."""
    weight[: len(weight) // 3] /= math.sqrt(d_head)
    return weight


def _column_sums(x: Tensor) -> Tensor:
    return torch.mv(x.t(), x.new_ones(len(x)))
