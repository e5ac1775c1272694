"""Networks applied to whole sets of windows in batches, without gradients: windows in, numpy arrays out.

Only one batch and the result are in memory, so windows may be memory-mapped and of any number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from transpl._utils.errors import invalid
from transpl.nn.model import Backbone, Classifier, Network
from transpl.windows import BATCH, Windows

BatchFunction = Callable[[Tensor, Tensor | None], Tensor]  # x (B, D, T), lengths (B,) or None -> (B, ...)


def coarse_codes(network: Network, windows: Windows) -> NDArray[np.integer]:
    """Coarse codes (n, D, N) in the smallest integer type; -1 where a shorter window has no patch."""
    return in_batches(network, windows, network.codes, code_type(network.settings.n_coarse))


def codes_by_book(network: Network, windows: Windows) -> dict[str, NDArray[np.integer]]:
    """The codes of every book by name, "coarse" and, if there is one, "fine", in one pass of the encoder."""
    sizes = network.settings.book_sizes
    found = in_batches(network, windows, network.codes_by_book, code_type(max(sizes.values())))
    return {book: found[:, i].astype(code_type(n)) for i, (book, n) in enumerate(sizes.items())}


def class_probabilities(classifier: Classifier, windows: Windows) -> NDArray[np.float64]:
    """softmax of a classifier's logits in float64, (n, K)."""

    def probabilities(x: Tensor, lengths: Tensor | None) -> Tensor:
        return classifier.classify(x, lengths).cpu().double().softmax(dim=-1)

    return in_batches(classifier, windows, probabilities)


def features(network: Backbone, windows: Windows) -> NDArray[np.float64]:
    """z (n, d), the mean of the summaries over channels."""
    return in_batches(network, windows, network.features)


def channel_summaries(network: Network, windows: Windows) -> NDArray[np.float64]:
    """The [CLS] vector of every channel, (n, D, d)."""
    return in_batches(network, windows, lambda x, lengths: network.encode(x, lengths).summary)


class HeadOutputs(NamedTuple):
    """Outputs of the head's layers for a set of windows."""

    z: NDArray[np.float64]  # (n, d)
    hidden: NDArray[np.float64]  # (n, d), the last layer's input
    probabilities: NDArray[np.float64]  # (n, K)


def head_outputs(network: Backbone, windows: Windows) -> HeadOutputs:
    """Features, hidden layer and class probabilities in one pass of the encoder."""

    def stacked_outputs(x: Tensor, lengths: Tensor | None) -> Tensor:
        z = network.features(x, lengths)
        g = network.hidden(z)
        return torch.cat([z, g, network.head[-1](g)], dim=1)

    d, last = network.settings.width, network.head[-1]
    assert isinstance(last, nn.Linear)
    z, g, logits = np.split(in_batches(network, windows, stacked_outputs), [d, d + last.in_features], axis=1)
    return HeadOutputs(z, g, torch.from_numpy(logits).softmax(dim=-1).numpy())


def reconstruction_error(network: Network, windows: Windows) -> float:
    """Mean of (X - D(q))^2 over all values of whole patches, whatever the batches."""

    def error(x: Tensor, lengths: Tensor | None) -> Tensor:
        return network(x, lengths).reconstruction_loss.expand(len(x))

    errors = in_batches(network, windows, error)
    if not windows.ragged:
        return float(errors.mean())
    # A batch's error is the mean over its patches, so windows are weighted by theirs.
    return float(np.average(errors, weights=windows.lengths // network.settings.patch_length))


@torch.no_grad()
def decoded_codes(network: Network) -> dict[str, NDArray[np.float64]]:
    """x_c = D(l2(e_c)) of every code, per book (n, m): the signal that each code stands for."""
    coarse, fine = network.quantizer.coarse, network.quantizer.fine
    books = {"coarse": coarse} | ({} if fine is None else {"fine": fine})
    was_training = network.training
    network.eval()
    values = {
        name: network.decode(functional.normalize(book.vectors, dim=-1)[:, None])[:, 0].cpu().double().numpy()
        for name, book in books.items()
    }
    network.train(was_training)
    return values


def code_type(n_codes: int) -> np.dtype[np.signedinteger]:
    """The smallest integer type that holds -1 and 0..n_codes-1."""
    return np.min_scalar_type(-max(1, n_codes))


@torch.no_grad()
def in_batches(
    module: nn.Module,
    windows: Windows,
    function: BatchFunction,
    dtype: DTypeLike = np.float64,
) -> NDArray:
    """Apply a function of batches to all windows in eval mode, (n, ...); raise if it overflows."""
    device = next(module.parameters()).device
    was_training, ragged = module.training, windows.ragged
    module.eval()
    result: NDArray | None = None
    finite = True
    for rows, part in windows.chunks(BATCH):
        x = torch.from_numpy(part.in_memory().values).to(device)
        lengths = torch.from_numpy(part.lengths).to(device) if ragged else None
        found = function(x, lengths).cpu().numpy()
        if result is None:
            result = np.empty((len(windows), *found.shape[1:]), dtype)
        result[rows] = found
        finite &= bool(np.isfinite(found).all())
    module.train(was_training)
    assert result is not None, "windows are never empty"
    if not finite:
        expected, advice = "values that the network can compute with", "Rescale X, or save the model again."
        raise invalid("X", expected=expected, got="an overflow", advice=advice)
    return result
