"""Training data as named tensors that share their first axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count as count_from
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transpl.windows import Labelled, Windows

Rows = dict[str, Tensor]

_TARGET = "target_"


class Paired(NamedTuple):
    """Source and target rows for batches of both: an epoch is one pass over the longer set, the shorter repeats."""

    source: Rows
    target: Rows


Data = Rows | Paired


def window_rows(windows: Windows) -> Rows:
    """`x` (n, D, T), and `lengths` (n,) where windows are of unequal length."""
    rows = {"x": torch.from_numpy(windows.values)}
    return {**rows, "lengths": torch.from_numpy(windows.lengths)} if windows.ragged else rows


def labelled_rows(labelled: Labelled) -> Rows:
    """`x`, `y`, and `lengths` where windows are of unequal length."""
    return {**window_rows(labelled.windows.in_memory()), "y": label_tensor(labelled.y)}


def count(rows: Rows) -> int:
    """The number of rows."""
    return len(rows["x"])


def take(rows: Rows, index: Tensor) -> Rows:
    """Select rows."""
    return {name: tensor[index] for name, tensor in rows.items()}


def map_parts(function: Callable[[Tensor], Tensor], data: Data) -> Data:
    """Apply a function to every tensor."""
    if isinstance(data, Paired):
        return Paired(*({name: function(tensor) for name, tensor in rows.items()} for rows in data))
    return {name: function(tensor) for name, tensor in data.items()}


def parts(data: Data) -> list[Rows]:
    """The sets of rows in the data: one, or source and target."""
    return list(data) if isinstance(data, Paired) else [data]


def epoch_batches(data: Data, size: int, seed: int, epoch: int, rank: int = 0, world: int = 1) -> Iterator[Rows]:
    """One epoch's batches; in those of paired data, the names of the target's tensors start with "target_"."""
    if not isinstance(data, Paired):
        for index in shuffled_batches(count(data), size, seed, epoch, rank, world):
            yield take(data, index.to(data["x"].device))
        return
    device = data.source["x"].device
    for source, target in _paired_batches(count(data.source), count(data.target), size, seed, epoch, rank, world):
        of_target = take(data.target, target.to(device))
        yield take(data.source, source.to(device)) | {_TARGET + name: tensor for name, tensor in of_target.items()}


def n_batches(data: Data, size: int) -> int:
    """The number of batches of an epoch."""
    return -(-max(count(rows) for rows in parts(data)) // size)


def split_domains(batch: Rows) -> Paired:
    """Take a batch of paired data apart into source and target rows."""
    target = {name.removeprefix(_TARGET): tensor for name, tensor in batch.items() if name.startswith(_TARGET)}
    return Paired({name: tensor for name, tensor in batch.items() if not name.startswith(_TARGET)}, target)


def _paired_batches(
    n_source: int, n_target: int, size: int, seed: int, epoch: int, rank: int, world: int
) -> Iterator[tuple[Tensor, Tensor]]:
    def endless(n: int, domain: int) -> Iterator[Tensor]:
        for repeat in count_from():
            # The source's first pass has the order of a training on the source alone.
            stream = (repeat, domain) if repeat or domain else ()
            yield from shuffled_batches(n, size, seed, epoch, rank, world, stream)

    streams = zip(endless(n_source, 0), endless(n_target, 1), strict=False)
    for _, batch in zip(range(-(-max(n_source, n_target) // size)), streams, strict=False):
        yield batch


def shuffled_batches(
    n: int, size: int, seed: int, epoch: int, rank: int = 0, world: int = 1, stream: tuple[int, ...] = ()
) -> Iterator[Tensor]:
    """Indices of one epoch's batches for one of `world` ranks: a function of (seed, epoch, stream) alone.

    All ranks share one permutation. Every row occurs, and all ranks get equally many per batch (rows repeat if a batch
    does not divide evenly).
    """
    order = np.random.default_rng([seed, epoch, *stream]).permutation(n)
    for first in range(0, n, size):
        batch = order[first : first + size]
        whole = np.resize(batch, -(-len(batch) // world) * world)
        yield torch.from_numpy(whole[rank::world].copy())


def ordered_batches(n: int, size: int) -> Iterator[Tensor]:
    """Indices of consecutive batches."""
    return (torch.arange(first, min(first + size, n)) for first in range(0, n, size))


def floor_share(share: float, n: int) -> int:
    """floor(share n) as if `share` were the decimal number it is written as: 0.7 of 90 are 63, though int gives 62."""
    return math.floor(share * n * (1 + 2.0**-50))


def label_tensor(y: NDArray[np.int64]) -> Tensor:
    """Class indices as a tensor, copied."""
    return torch.from_numpy(np.array(y, dtype=np.int64))
