"""Layers of the networks: batch normalisation, dropout, and a small post-norm transformer.

The transformer takes many short sequences: S sequences of L tokens of width d.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl.nn._cpu_kernels import (
    LAYER_NORM_EPSILON,
    NO_MASKS,
    FusedAttention,
    FusedFeedForward,
    MaskedScale,
    Masks,
    RandomBytes,
    cpu_kernels_enabled,
)

_LEVELS = 256  # of a random byte
_BYTES_PER_WORD = 8


class BatchNorm(nn.BatchNorm1d):
    r"""y = (x - \mu) / \sqrt{v + \epsilon} * \gamma + \beta; \mu and v of the batch in training, else running ones.

    One value per channel has no variance: a training batch of a single row (1, C) is normalised by the running
    statistics, and does not change them.
    """

    def forward(self, x: Tensor) -> Tensor:
        """x (B, C) or (B, C, T) -> the same shape."""
        if not self.training or x.numel() > self.num_features:
            return super().forward(x)
        mean, variance = self.running_mean, self.running_var
        assert mean is not None
        assert variance is not None
        # Copies: the next batch of the same step may move the statistics, which this batch's gradient still needs.
        return F.batch_norm(x, mean.clone(), variance.clone(), self.weight, self.bias, eps=self.eps)


class Dropout(nn.Module):
    r"""y = x * b / (1 - p), b ~ Bernoulli(1 - p).

    b is a random byte compared with a threshold: p is rounded to a multiple of 1/256, and drawing is cheap.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.dropped_levels = min(round(p * _LEVELS), _LEVELS - 1)

    @property
    def active(self) -> bool:
        return self.training and self.dropped_levels > 0

    @property
    def scale(self) -> float:
        return _LEVELS / (_LEVELS - self.dropped_levels)

    def forward(self, x: Tensor) -> Tensor:
        if not self.active:
            return x
        if _on_cpu_kernels(x):
            keep = RandomBytes().keep(tuple(x.shape), self.dropped_levels)
            return MaskedScale.apply(x, keep, self.scale)  # type: ignore[no-untyped-call]
        kept = random_bytes(x.numel(), x.device) >= self.dropped_levels
        return x * kept.view(x.shape).to(x.dtype).mul_(self.scale)

    def masks(self, inner: tuple[int, ...], outer: tuple[int, ...]) -> Masks:
        """Draw the two masks of half a layer, for the CPU kernels."""
        if not self.active:
            return NO_MASKS
        source = RandomBytes()
        return Masks(source.keep(inner, self.dropped_levels), source.keep(outer, self.dropped_levels), self.scale)

    def extra_repr(self) -> str:
        return f"p={self.dropped_levels / _LEVELS:g}"


def random_bytes(n: int, device: torch.device) -> Tensor:
    """Draw n uniform bytes from the generator of a torch device."""
    words = torch.empty(-(-n // _BYTES_PER_WORD), dtype=torch.int64, device=device)
    lowest = torch.iinfo(torch.int64).min
    return words.random_(lowest, None).view(torch.uint8)[:n]


def _on_cpu_kernels(x: Tensor) -> bool:
    return x.device.type == "cpu" and cpu_kernels_enabled()


class Transformer(nn.Module):
    """A stack of layers, (S, L, d) -> (S, L, d). Positions are for the caller to add: see `sinusoids`."""

    def __init__(self, width: int, n_layers: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, n_heads, dropout) for _ in range(n_layers))

    def forward(self, x: Tensor, attention_bias: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, attention_bias)
        return x  # (S, L, d)


class Layer(nn.Module):
    """x = LN(x + Attention(x)); x = LN(x + FF(x)), FF = Linear(d, 4d) -> GELU -> Linear(4d, d)."""

    def __init__(self, width: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, n_heads, dropout)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.norm_attention = nn.LayerNorm(width, LAYER_NORM_EPSILON)
        self.norm_feedforward = nn.LayerNorm(width, LAYER_NORM_EPSILON)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, attention_bias: Tensor | None = None) -> Tensor:
        compute = self.fused_forward if _on_cpu_kernels(x) else self.plain_forward
        return compute(x, attention_bias)  # (S, L, d)

    def plain_forward(self, x: Tensor, attention_bias: Tensor | None = None) -> Tensor:
        """The layer as its equations read, on any device."""
        x = self.norm_attention(x + self.dropout(self.attention(x, attention_bias)))
        hidden = self.dropout(F.gelu(self.expand(x)))
        return self.norm_feedforward(x + self.dropout(self.contract(hidden)))

    def fused_forward(self, x: Tensor, attention_bias: Tensor | None = None) -> Tensor:
        """The same by two CPU kernels, see `_cpu_kernels`."""
        S, L, d = x.shape
        attention, n_heads, recorded = self.attention, self.attention.n_heads, torch.is_grad_enabled()
        x = FusedAttention.apply(  # type: ignore[no-untyped-call]
            x,
            self.dropout.masks((S * n_heads, L, L), (S * L, d)),
            n_heads,
            attention_bias,
            *_parameters(attention.project_in, attention.project_out, self.norm_attention),
        )
        masks = self.dropout.masks((S * L, self.expand.out_features), (S * L, d))
        weights = _parameters(self.expand, self.contract, self.norm_feedforward)
        return FusedFeedForward.apply(x, masks, recorded, *weights)  # type: ignore[no-untyped-call]


class Attention(nn.Module):
    r"""softmax(Q K^T / \sqrt{d_h} + bias) V for every head."""

    def __init__(self, width: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)
        self.dropout = Dropout(dropout)
        nn.init.xavier_uniform_(self.project_in.weight)
        nn.init.zeros_(self.project_in.bias)
        nn.init.zeros_(self.project_out.bias)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        S, L, d = x.shape
        heads = self.project_in(x).view(S, L, 3, self.n_heads, d // self.n_heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (S, heads, L, d_h)
        scores = (q / math.sqrt(d // self.n_heads)) @ k.transpose(-1, -2)
        if bias is not None:
            scores = scores + bias
        mixed = self.dropout(scores.softmax(dim=-1)) @ v
        return self.project_out(mixed.transpose(1, 2).reshape(S, L, d))  # (S, L, d)


def _parameters(*modules: nn.Linear | nn.LayerNorm) -> list[Tensor]:
    return [tensor for module in modules for tensor in (module.weight, module.bias)]


def attention_bias(mask: Tensor) -> Tensor:
    """(S, L), true for real tokens -> (S, 1, 1, L): 0 for real tokens, minus infinity for padding."""
    return torch.zeros(mask.shape, dtype=torch.float32, device=mask.device).masked_fill(~mask, -torch.inf)[
        :, None, None, :
    ]


@lru_cache(maxsize=32)
def sinusoids(length: int, width: int) -> Tensor:
    r"""P_{t, 2i} = sin(t / 10000^{2i/d}), P_{t, 2i+1} = cos(t / 10000^{2i/d}); (L, d)."""
    t = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.exp(-math.log(10_000.0) * torch.arange(0, width, 2, dtype=torch.float64) / width)
    table = torch.stack([torch.sin(t * rate), torch.cos(t * rate)], dim=-1).reshape(length, -1)
    return table[:, :width].float()
