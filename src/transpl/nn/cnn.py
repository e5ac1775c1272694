"""The CNN that most of the field's benchmarks use: three convolution blocks with batch normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_fraction, check_int
from transpl.nn.layers import BatchNorm
from transpl.nn.model import Backbone, Encoded

_INNER_WIDTHS = (64, 128)
_KERNELS = (5, 7, 7)


@dataclass(frozen=True)
class CNNSettings:
    """The shape of a `CNN`."""

    n_classes: int
    n_channels: int
    width: int = 128
    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_int("n_classes", self.n_classes, least=1)
        check_int("n_channels", self.n_channels, least=1)
        check_int("width", self.width, least=1)
        check_fraction("dropout", self.dropout, zero=True)

    def build(self) -> CNN:
        """A CNN of this shape with random weights."""
        return CNN(self)


class CNN(Backbone):
    """Three blocks of convolution, batch normalisation, ReLU and pooling; the mean over time; a linear head.

    It sees all channels together, at 64, 128 and `width` filters. Steps behind the end of a shorter window count for
    nothing.
    """

    settings: CNNSettings

    def __init__(self, settings: CNNSettings) -> None:
        super().__init__()
        self.settings = settings
        widths = (settings.n_channels, *_INNER_WIDTHS, settings.width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(i, o, k, padding=k // 2, bias=False), BatchNorm(o), nn.ReLU())
            for i, o, k in zip(widths, widths[1:], _KERNELS, strict=False)
        )
        self.head = nn.Sequential(nn.Linear(settings.width, settings.n_classes))

    def encode(self, x: Tensor, lengths: Tensor | None = None) -> Encoded:
        """x (B, D, T) -> summary (B, 1, d) and latents (B, 1, N, d) of all channels together."""
        inside = None if lengths is None else _inside(lengths, x)
        for i, block in enumerate(self.blocks):
            x = _pooled(block(x) if inside is None else block(x) * inside)
            inside = None if inside is None else _pooled(inside)
            if i == 0:
                x = F.dropout(x, self.settings.dropout, self.training)
        summary = x.mean(dim=2) if inside is None else (x * inside).sum(dim=2) / inside.sum(dim=2)
        return Encoded(summary[:, None], x.mT[:, None])


def _inside(lengths: Tensor, x: Tensor) -> Tensor:
    """(B, 1, T), 1 where a window has a sample."""
    return (torch.arange(x.shape[2], device=x.device) < lengths[:, None])[:, None].to(x.dtype)


def _pooled(x: Tensor) -> Tensor:
    return F.max_pool1d(x, 2, ceil_mode=True)


@contextmanager
def fresh_batch_norm(network: nn.Module) -> Iterator[None]:
    """Inside the block forward passes collect new batch-norm statistics, the plain mean over all batches.

    Weights stay as they are; the network is in eval mode after the block.
    """
    layers = [module for module in network.modules() if isinstance(module, BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    network.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
        layer.train()
    try:
        with torch.no_grad():
            yield
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        network.eval()
