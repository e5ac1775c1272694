r"""
Write a method
==============

A method of the benchmark is a class with ``_adapt``; ``@register`` gives it a name. This one is Euclidean alignment (He
and Wu 2020) of the input,

    x' = S_s^{1/2} S_t^{-1/2} (x - m_t) + m_s

with the mean m and the covariance S over channels of source (s) and target (t). The target then looks like the source
to the source's classifier; no gradient, no labels.

Many pairs, seeds and data sets::

    transpl bench --import examples/new_method.py --dataset synthetic --methods euclidean
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transpl import datasets
from transpl.benchmark import compare
from transpl.methods import NetworkMethod, TargetInfo
from transpl.methods.registry import register
from transpl.nn import Classifier, Execution, Network
from transpl.windows import Windows

# %%
# The method
# ----------


def power(S: NDArray, exponent: float) -> NDArray:
    """S^exponent of a symmetric matrix; a channel that is constant keeps a little spread."""
    values, vectors = np.linalg.eigh(S)
    return vectors * np.maximum(values, 1e-6) ** exponent @ vectors.T


def moments(windows: Windows) -> tuple[NDArray, NDArray]:
    """Mean (D,) and covariance (D, D) over all time steps of all windows."""
    steps = windows.in_memory().values.transpose(1, 0, 2).reshape(windows.n_channels, -1)
    return steps.mean(axis=1), np.atleast_2d(np.cov(steps))


class Aligned(Classifier):
    """The source network behind an affine map of the channels, A x + b."""

    def __init__(self, network: Network, A: NDArray, b: NDArray) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("A", torch.from_numpy(A).float())
        self.register_buffer("b", torch.from_numpy(b).float()[:, None])

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T) -> z (B, d)."""
        return self.network.features(self.A @ x + self.b, lengths)

    def logits(self, z: Tensor) -> Tensor:
        """z (B, d) -> class logits (B, K)."""
        return self.network.logits(z)


@register(
    "euclidean",
    family="own",
    needs="source, target",
    reference="He and Wu 2020, Transfer learning for brain-computer interfaces: a Euclidean space approach",
)
class EuclideanAlignment(NetworkMethod):
    """Gives the target's channels the source's mean and covariance."""

    equal_length = True  # moments would count the padding of shorter windows

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        (m_s, S_s), (m_t, S_t) = moments(self.source.source.windows), moments(target)
        A = power(S_s, 0.5) @ power(S_t, -0.5)
        self.classifier = Aligned(self.source.network, A, m_s - A @ m_t)


# %%
# Beside two known ones, on made data
# -----------------------------------
# On the second pair it loses.

SMALL = {"width": 32, "n_layers": 1, "source_lr": 2e-3, "adapt_lr": 2e-3}  # seconds instead of minutes


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare Euclidean alignment with two known methods.")
    parser.add_argument("--epochs", type=int, default=20, help="at most so many per phase")
    changes = {**SMALL, "max_epochs": parser.parse_args().epochs}
    names = ("no-adapt", "softmax", "euclidean")
    pairs, execution = [(0, 1), (1, 2)], Execution(n_threads=1)
    runs = compare(datasets.load("synthetic"), names, pairs, execution=execution, changes=changes)
    if runs["error"].notna().any():
        raise SystemExit(runs["error"].dropna().iloc[0])
    columns = ["pair", "method", "accuracy", "macro_f1", "seconds"]
    print(runs[columns].to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
