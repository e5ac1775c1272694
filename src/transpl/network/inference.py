"""Whole sets through a network in batches, without gradients: windows in, numpy out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transpl.network.network import Network
from transpl.windows import Windows

BATCH = 256


def coarse_codes(network: Network, windows: Windows, batch: int = BATCH) -> NDArray[np.int16]:
    """Coarse codes (n, D, N); -1 where a shorter window has no patch."""
    return _in_batches(network, windows, lambda x, lengths: network.codes(x, lengths).to(torch.int16), batch)


def fine_codes(network: Network, windows: Windows, batch: int = BATCH) -> NDArray[np.int16]:
    """Fine codes (n, D, N); -1 where a shorter window has no patch."""
    return _in_batches(network, windows, lambda x, lengths: network.fine_codes(x, lengths).to(torch.int16), batch)


def class_probabilities(network: Network, windows: Windows, batch: int = BATCH) -> NDArray[np.float64]:
    """softmax of the head's logits in float64, (n, K)."""
    return _in_batches(
        network, windows, lambda x, lengths: network.classify(x, lengths).cpu().double().softmax(dim=-1), batch
    )


@torch.no_grad()
def _in_batches(
    network: Network, windows: Windows, function: Callable[[Tensor, Tensor | None], Tensor], batch: int
) -> NDArray:
    device = next(network.parameters()).device
    was_training = network.training
    network.eval()
    results = []
    for first in range(0, len(windows), batch):
        part = windows[first : first + batch]
        lengths = torch.from_numpy(part.lengths).to(device) if windows.ragged else None
        results.append(function(torch.from_numpy(part.values).to(device), lengths).cpu().numpy())
    network.train(was_training)
    return np.concatenate(results)
