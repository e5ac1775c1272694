"""A small post-norm transformer for many short sequences: S sequences of L tokens of width d."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl.nn.dropout import Dropout
from transpl.nn.halves import EPSILON, AttentionHalf, FeedForwardHalf


class Transformer(nn.Module):
    """Layers one after the other; (S, L, d) -> (S, L, d). Knows no positions: see `sinusoids`."""

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
        self.norm_attention = nn.LayerNorm(width, EPSILON)
        self.norm_feedforward = nn.LayerNorm(width, EPSILON)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, attention_bias: Tensor | None = None) -> Tensor:
        by_halves = x.device.type == "cpu"
        return self.in_halves(x, attention_bias) if by_halves else self.plain(x, attention_bias)  # (S, L, d)

    def plain(self, x: Tensor, attention_bias: Tensor | None = None) -> Tensor:
        """The layer as its equation reads, for any device."""
        x = self.norm_attention(x + self.dropout(self.attention(x, attention_bias)))
        hidden = self.dropout(F.gelu(self.expand(x)))
        return self.norm_feedforward(x + self.dropout(self.contract(hidden)))

    def in_halves(self, x: Tensor, attention_bias: Tensor | None = None) -> Tensor:
        """The same, for the CPU: see `halves`."""
        S, L, d = x.shape
        attention, n_heads, recorded = self.attention, self.attention.n_heads, torch.is_grad_enabled()
        x = AttentionHalf.apply(  # type: ignore[no-untyped-call]
            x,
            self.dropout.masks((S * n_heads, L, L), (S * L, d)),
            n_heads,
            attention_bias,
            *_parameters(attention.project_in, attention.project_out, self.norm_attention),
        )
        masks = self.dropout.masks((S * L, self.expand.out_features), (S * L, d))
        weights = _parameters(self.expand, self.contract, self.norm_feedforward)
        return FeedForwardHalf.apply(x, masks, recorded, *weights)  # type: ignore[no-untyped-call]


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
    """(S, L) true for real tokens -> (S, 1, 1, L): 0 for those, minus infinity for padding."""
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
