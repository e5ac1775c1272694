"""Batch normalisation: the usual one, and a batch of one row."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from transpl.nn.batch_norm import BatchNorm


def moved(n_channels: int = 3) -> BatchNorm:
    """A layer that has seen a batch, so that its statistics and weights are not those of the start."""
    torch.manual_seed(0)
    layer = BatchNorm(n_channels)
    nn.init.uniform_(layer.weight, 0.5, 2)
    nn.init.uniform_(layer.bias, -1, 1)
    layer(3 + 2 * torch.randn(8, n_channels))
    return layer


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 4), (1, 3, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_as_torch_does_it_where_there_is_a_spread(shape, training):
    ours, theirs = moved().train(training), nn.BatchNorm1d(3)
    theirs.load_state_dict(ours.state_dict())
    theirs.train(training)
    x = torch.randn(shape)
    assert torch.equal(ours(x), theirs(x))
    assert all(torch.equal(a, b) for a, b in zip(ours.buffers(), theirs.buffers(), strict=True))


@pytest.mark.parametrize("shape", [(1, 3), (1, 3, 1)])
def test_one_row_in_training_is_taken_as_if_at_rest(shape):
    layer = moved()
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    x = torch.randn(shape)
    in_training = layer.train()(x)
    assert torch.equal(in_training, layer.eval()(x))
    assert all(torch.equal(tensor, before[name]) for name, tensor in layer.state_dict().items())


def test_gradient_of_one_row_survives_a_larger_batch_in_the_same_step():
    layer = moved()
    x = torch.randn(1, 3, requires_grad=True)
    scale = layer.weight / torch.sqrt(layer.running_var + layer.eps)
    loss = layer(x).sum() + layer(torch.randn(6, 3)).sum()
    loss.backward()
    assert torch.allclose(x.grad[0], scale)
