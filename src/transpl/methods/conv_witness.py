"""A small convolutional network as a witness of the council; needs PyTorch."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl.council.witnesses.witness import Arrays, Floats, ViewedWindows, Witness, register, with_all_classes
from transpl.nn import BatchNorm, cpu_threads, isolated_rng, shuffled_batches, with_gradients

WIDTHS = (64, 128, 128)
KERNELS = (5, 7, 7)
EPOCHS = 40
LEARNING_RATE = 1e-3
BATCH = 32
DROPOUT = 0.5
_MOST_FOR_STATISTICS = 1024  # windows of the target
_AT_ONCE = 256


class ConvNet(nn.Module):
    """Three blocks of convolution, batch normalisation, ReLU and pooling; mean over time; a linear layer."""

    def __init__(self, n_channels: int, n_classes: int) -> None:
        super().__init__()
        ends = zip((n_channels, *WIDTHS), WIDTHS, KERNELS, strict=False)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(i, o, k, padding=k // 2, bias=False), BatchNorm(o), nn.ReLU()) for i, o, k in ends
        )
        self.head = nn.Linear(WIDTHS[-1], n_classes)

    def forward(self, x: Tensor, inside: Tensor) -> Tensor:
        """x (B, D, T), inside (B, 1, T) 1 where a window has a sample -> class logits (B, K)."""
        for i, block in enumerate(self.blocks):
            x = F.max_pool1d(block(x) * inside, 2, ceil_mode=True)
            inside = F.max_pool1d(inside, 2, ceil_mode=True)
            if i == 0:
                x = F.dropout(x, DROPOUT, self.training)
        return self.head((x * inside).sum(dim=2) / inside.sum(dim=2))


@register
class Conv(Witness):
    """A small CNN. In every view but "recorded" its batch-norm statistics are those of the unlabelled target."""

    name = "conv"
    per_column = False

    def rows(self, viewed: ViewedWindows) -> NDArray:
        """Windows (n, D + 1, T); the last channel is 1 where a window has a sample."""
        inside = np.arange(viewed.values.shape[2]) < viewed.lengths[:, None]
        return np.concatenate([viewed.values, inside[:, None]], axis=1, dtype=np.float32)

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        self.n_classes, self.classes = n_classes, np.unique(y)
        x, labels = _tensor(rows), torch.from_numpy(np.searchsorted(self.classes, y))
        with cpu_threads(1), isolated_rng(), with_gradients():
            torch.manual_seed(self.seed)
            self.network = ConvNet(rows.shape[1] - 1, len(self.classes)).train()
            optimiser = torch.optim.Adam(self.network.parameters(), LEARNING_RATE, weight_decay=1e-4)
            for epoch in range(EPOCHS):
                for batch in shuffled_batches(len(rows), BATCH, self.seed, epoch):
                    loss = F.cross_entropy(self._logits(x[batch]), labels[batch])
                    optimiser.zero_grad()
                    torch.autograd.backward(loss)
                    optimiser.step()
        self.network.eval()
        return self

    def answer(self, rows: NDArray) -> Floats:
        x = _tensor(rows)
        with cpu_threads(1), torch.no_grad():
            parts = [self._logits(x[first : first + _AT_ONCE]) for first in range(0, len(x), _AT_ONCE)]
        p = torch.cat(parts).double().softmax(dim=1).numpy()
        return with_all_classes(p, self.classes, self.n_classes)

    def adapted_to(self, rows: NDArray) -> Self:
        """A copy with batch-norm statistics of these rows; of a single window nothing can be taken."""
        if len(rows) < 2:
            return self
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_FOR_STATISTICS)).astype(int))
        other = copy.copy(self)
        other.network = copy.deepcopy(self.network)
        for module in other.network.modules():
            if isinstance(module, BatchNorm):
                module.reset_running_stats()
                module.momentum = None  # the plain mean over all batches, which is one
                module.train()
        with cpu_threads(1), torch.no_grad():
            other._logits(_tensor(rows[some]))
        other.network.eval()
        return other

    def arrays(self) -> Arrays:
        weights = {f"network.{name}": tensor.numpy().copy() for name, tensor in self.network.state_dict().items()}
        return {"classes": self.classes, **weights}

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        self.n_classes, self.classes = n_classes, arrays["classes"]
        weights = {
            name.removeprefix("network."): torch.from_numpy(np.array(values))
            for name, values in arrays.items()
            if name.startswith("network.")
        }
        n_channels = weights["blocks.0.0.weight"].shape[1]
        with torch.device("meta"):  # nothing is drawn: every weight is given
            self.network = ConvNet(n_channels, len(self.classes))
        self.network.load_state_dict(weights, assign=True)
        self.network.eval()
        return self

    def _logits(self, x: Tensor) -> Tensor:
        return self.network(x[:, :-1], x[:, -1:])


def _tensor(rows: NDArray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows, np.float32))
