"""Training data as named tensors that share their first axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transpl.windows import Windows

Rows = dict[str, Tensor]


def window_rows(windows: Windows) -> Rows:
    """`x` (n, D, T), and `lengths` (n,) where windows are of unequal length."""
    rows = {"x": torch.from_numpy(windows.values)}
    return {**rows, "lengths": torch.from_numpy(windows.lengths)} if windows.ragged else rows


def count(rows: Rows) -> int:
    """How many rows there are."""
    return len(rows["x"])


def take(rows: Rows, index: Tensor) -> Rows:
    """Select rows."""
    return {name: tensor[index] for name, tensor in rows.items()}


def shuffled_batches(n: int, size: int, seed: int, epoch: int, rank: int = 0, world: int = 1) -> Iterator[Tensor]:
    """Indices of one epoch's batches for one of `world` ranks: a function of (seed, epoch), nothing else.

    All ranks cut the same permutation; every row occurs, and each rank gets equally many per batch
    (rows repeat if a batch does not divide evenly).
    """
    order = np.random.default_rng([seed, epoch]).permutation(n)
    for first in range(0, n, size):
        batch = order[first : first + size]
        whole = np.resize(batch, -(-len(batch) // world) * world)
        yield torch.from_numpy(whole[rank::world].copy())


def ordered_batches(n: int, size: int) -> Iterator[Tensor]:
    """Indices of consecutive batches."""
    return (torch.arange(first, min(first + size, n)) for first in range(0, n, size))


def label_tensor(y: NDArray[np.int64]) -> Tensor:
    """Class indices as a tensor of their own."""
    return torch.from_numpy(np.array(y, dtype=np.int64))
