"""The paper's codes as a witness of the council: transition matrices over the codes of a trained VQ network."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from transpl.council.witnesses.codes import TransitionWitness
from transpl.council.witnesses.witness import Arrays, Floats, ViewedWindows, as_arrays, register
from transpl.methods.method_settings import SourceSettings
from transpl.nn import Execution, Network, NetworkSettings, coarse_codes, cpu_threads, labelled_rows, train_network
from transpl.windows import Labelled, Windows

MAX_EPOCHS = 200
HELD_OUT = 0.3  # of the source, by which the training stops
_NETWORK = "network."
_CPU = Execution(device="cpu", n_threads=1)


@register
class VQ(TransitionWitness):
    """Transition matrices over the paper's codes; training their network takes up to minutes.

    Its rows are windows (n, D, T) with the number of real samples behind the last one, (n, D, T + 1): which codes there
    are is learnt with the labels.
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
        """Train the network, unless there is one already, and count the transitions of its codes."""
        if self.network is None:
            self.network = self._train(rows, y, n_classes)
        return super().learn(self._codes(rows), y, n_classes)

    def answer(self, rows: NDArray) -> Floats:
        return super().answer(self._codes(rows))

    def arrays(self) -> Arrays:
        weights = {f"{_NETWORK}{name}": t.numpy().copy() for name, t in self._trained.state_dict().items()}
        return {**as_arrays(log_p=self.log_p, shown=self.shown, patch_length=self.patch_length), **weights}

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        self.n_classes, self.patch_length = n_classes, int(arrays["patch_length"].item())
        self.log_p, self.shown = arrays["log_p"], arrays["shown"]
        weights = {
            name.removeprefix(_NETWORK): torch.from_numpy(np.array(values))
            for name, values in arrays.items()
            if name.startswith(_NETWORK)
        }
        with torch.device("meta"):  # nothing is drawn: every weight is given
            self.network = Network(self._shape(n_classes))
        self.network.load_state_dict(weights, assign=True)
        self.network.eval()
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
        loop = SourceSettings(patch_length=self.patch_length, max_epochs=MAX_EPOCHS).source_loop()
        return train_network(self._shape(n_classes), here, there, loop, _CPU, seed=self.seed)[0]

    def _codes(self, rows: NDArray) -> NDArray[np.int64]:
        with cpu_threads(1):
            return coarse_codes(self._trained, _windows(rows)).astype(np.int64)


def _windows(rows: NDArray) -> Windows:
    return Windows(np.ascontiguousarray(rows[..., :-1], np.float32), rows[:, 0, -1].astype(np.int64))
