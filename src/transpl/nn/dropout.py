"""Dropout from random bytes: the same distribution as `nn.Dropout` (p to the nearest 1/256), drawn cheaply."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

Keep = NDArray[np.bool_]

_LEVELS = 256
_BYTES_PER_WORD = 8
_LANES = 8192  # 64 KiB of state: stays in a processor's cache


class RandomBytes:
    r"""s ^= s << 13; s ^= s >> 7; s ^= s << 17 on many 64-bit words side by side (xorshift64), read as bytes.

    Seeded from torch's generator, so that `torch.manual_seed` decides every mask. As plain numpy operations on
    words in cache this costs a sixth of torch's own random bytes, and a Bernoulli number per element 60 times as much.
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


class Masks(NamedTuple):
    """What the two dropouts inside a half layer keep (None: everything), and the factor 1 / (1 - p) of each."""

    inner: Keep | None
    outer: Keep | None
    scale: float


NO_MASKS = Masks(None, None, 1.0)


class Dropout(nn.Module):
    r"""y = x * b / (1 - p), b ~ Bernoulli(1 - p); b is one random byte compared with a threshold."""

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
        if x.device.type == "cpu":
            keep = RandomBytes().keep(tuple(x.shape), self.dropped_levels)
            return _Kept.apply(x, keep, self.scale)  # type: ignore[no-untyped-call]
        kept = random_bytes(x.numel(), x.device) >= self.dropped_levels
        return x * kept.view(x.shape).to(x.dtype).mul_(self.scale)

    def masks(self, inner: tuple[int, ...], outer: tuple[int, ...]) -> Masks:
        """Draw masks of two shapes for a half layer on the CPU."""
        if not self.active:
            return NO_MASKS
        source = RandomBytes()
        return Masks(source.keep(inner, self.dropped_levels), source.keep(outer, self.dropped_levels), self.scale)

    def extra_repr(self) -> str:
        return f"p={self.dropped_levels / _LEVELS:g}"


def random_bytes(n: int, device: torch.device) -> Tensor:
    """Return n uniform bytes from the generator of a torch device."""
    words = torch.empty(-(-n // _BYTES_PER_WORD), dtype=torch.int64, device=device)
    lowest = torch.iinfo(torch.int64).min
    return words.random_(lowest, None).view(torch.uint8)[:n]


def zero_dropped_(x: Tensor, keep: Keep | None) -> Tensor:
    """x_i = 0 where keep_i is false, in place; numpy multiplies by booleans without a mask of floats."""
    if keep is not None:
        values = x.detach().numpy()
        np.multiply(values, keep, out=values)
    return x


def without_dropped(x: Tensor, keep: Keep | None) -> Tensor:
    """x_i * keep_i in new memory; x itself if all are kept."""
    return x if keep is None else torch.from_numpy(np.multiply(x.detach().numpy(), keep))


class _Kept(torch.autograd.Function):
    r"""y = s * b * x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, keep: Keep, scale: float) -> Tensor:
        ctx.keep, ctx.scale = keep, scale
        return zero_dropped_(x * scale, keep)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        return zero_dropped_(dy * ctx.scale, ctx.keep), None, None
