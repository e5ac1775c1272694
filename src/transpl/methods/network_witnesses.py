"""Witnesses of the council that need PyTorch: a small CNN, and the codes of the paper's network."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl.council.witnesses.codes import TransitionWitness
from transpl.council.witnesses.witness import (
    Arrays,
    Floats,
    ViewedWindows,
    Witness,
    as_arrays,
    register,
    with_all_classes,
)
from transpl.methods.method_settings import SourceSettings
from transpl.nn import (
    CNNSettings,
    Execution,
    Network,
    NetworkSettings,
    coarse_codes,
    cpu_threads,
    fresh_batch_norm,
    isolated_rng,
    labelled_rows,
    shuffled_batches,
    train_network,
    with_gradients,
    with_weights,
)
from transpl.windows import Labelled, Windows

EPOCHS = 40
LEARNING_RATE = 1e-3
BATCH = 32
VQ_EPOCHS = 200
HELD_OUT = 0.3  # of the source: when its loss stops falling, training stops
_MAX_FOR_STATISTICS = 1024  # windows of the target
_INFERENCE_BATCH = 256
_NETWORK = "network."
_CPU = Execution(device="cpu", n_threads=1)

_Module = TypeVar("_Module", bound=nn.Module)


@register
class Conv(Witness):
    """A small CNN, with the batch-norm statistics of the unlabelled target in every view but "recorded"."""

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
            self.network = CNNSettings(len(self.classes), rows.shape[1] - 1).build().train()
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
            parts = [self._logits(x[first : first + _INFERENCE_BATCH]) for first in range(0, len(x), _INFERENCE_BATCH)]
        p = torch.cat(parts).double().softmax(dim=1).numpy()
        return with_all_classes(p, self.classes, self.n_classes)

    def adapted_to(self, rows: NDArray) -> Self:
        """A copy with the batch-norm statistics of these rows; unchanged for a single window, which has none."""
        if len(rows) < 2:
            return self
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MAX_FOR_STATISTICS)).astype(int))
        other = copy.copy(self)
        other.network = copy.deepcopy(self.network)
        with cpu_threads(1), fresh_batch_norm(other.network):
            other._logits(_tensor(rows[some]))
        return other

    def arrays(self) -> Arrays:
        return {"classes": self.classes, **_weights(self.network)}

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        self.n_classes, self.classes = n_classes, arrays["classes"]
        n_channels = arrays[f"{_NETWORK}blocks.0.0.weight"].shape[1]
        self.network = _with_weights(arrays, CNNSettings(len(self.classes), n_channels).build)
        return self

    def _logits(self, x: Tensor) -> Tensor:
        return self.network.classify(x[:, :-1], x[:, -1].sum(dim=1).long())


def _tensor(rows: NDArray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows, np.float32))


@register
class VQ(TransitionWitness):
    """Transition matrices over the codes of the paper's network, whose training takes up to minutes.

    Its rows are windows followed by their number of real samples, (n, D, T + 1): the codes are learnt with the labels.
    """

    name = "vq"

    network: Network | None = None

    @property
    def n_codes(self) -> int:
        return self._trained.settings.n_coarse

    def prepare(self, source: ViewedWindows) -> None:
        patch = SourceSettings().patch_length
        self.patch_length = max(1, min(patch, int(source.lengths.min()) // 2))

    def rows(self, viewed: ViewedWindows) -> NDArray:
        n, D, _ = viewed.values.shape
        lengths = np.broadcast_to(viewed.lengths[:, None, None], (n, D, 1))
        return np.concatenate([viewed.values, lengths], axis=2, dtype=np.float32)

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        """Train the network unless it is trained, and count the transitions of its codes."""
        if self.network is None:
            self.network = self._train(rows, y, n_classes)
        return super().learn(self._codes(rows), y, n_classes)

    def answer(self, rows: NDArray) -> Floats:
        return super().answer(self._codes(rows))

    def arrays(self) -> Arrays:
        learnt = as_arrays(log_p=self.log_p, shown=self.shown, patch_length=self.patch_length)
        return {**learnt, **_weights(self._trained)}

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        self.n_classes, self.patch_length = n_classes, int(arrays["patch_length"].item())
        self.log_p, self.shown = arrays["log_p"], arrays["shown"]
        self.network = _with_weights(arrays, lambda: Network(self._shape(n_classes)))
        return self

    @property
    def _trained(self) -> Network:
        assert self.network is not None, "learn or restore comes first"
        return self.network

    def _shape(self, n_classes: int) -> NetworkSettings:
        return SourceSettings(patch_length=self.patch_length).network(max(n_classes, 2))

    def _train(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Network:
        K = max(n_classes, 2)
        order = np.random.default_rng(self.seed).permutation(len(y))
        n_held_out = int(HELD_OUT * len(y))
        held_out, train = order[:n_held_out], order[n_held_out:]
        if not n_held_out:
            held_out = train
        here, there = (labelled_rows(Labelled(_windows(rows[part]), y[part], K)) for part in (train, held_out))
        loop = SourceSettings(patch_length=self.patch_length, max_epochs=VQ_EPOCHS).source_loop()
        network, _ = train_network(self._shape(n_classes), here, there, loop, _CPU, seed=self.seed)
        assert isinstance(network, Network)
        return network

    def _codes(self, rows: NDArray) -> NDArray[np.int64]:
        with cpu_threads(1):
            return coarse_codes(self._trained, _windows(rows)).astype(np.int64)


def _windows(rows: NDArray) -> Windows:
    return Windows(np.ascontiguousarray(rows[..., :-1], np.float32), rows[:, 0, -1].astype(np.int64))


def _weights(network: nn.Module) -> Arrays:
    return {f"{_NETWORK}{name}": tensor.numpy().copy() for name, tensor in network.state_dict().items()}


def _with_weights(arrays: Arrays, build: Callable[[], _Module]) -> _Module:
    weights = {
        name.removeprefix(_NETWORK): torch.from_numpy(np.array(values))
        for name, values in arrays.items()
        if name.startswith(_NETWORK)
    }
    return with_weights(build, weights)
