from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from transpl.nn.layers import BatchNorm, Layer, Transformer, attention_bias, sinusoids


def stock_layer(ours: Layer, width: int, heads: int) -> nn.TransformerEncoderLayer:
    """PyTorch's own post-norm layer with the same weights: an independent oracle."""
    stock = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
    stock.self_attn.in_proj_weight.data.copy_(ours.attention.project_in.weight)
    stock.self_attn.in_proj_bias.data.copy_(ours.attention.project_in.bias)
    for theirs, mine in [
        (stock.self_attn.out_proj, ours.attention.project_out),
        (stock.linear1, ours.expand),
        (stock.linear2, ours.contract),
        (stock.norm1, ours.norm_attention),
        (stock.norm2, ours.norm_feedforward),
    ]:
        theirs.load_state_dict(mine.state_dict())
    return stock


@pytest.fixture
def layer():
    torch.manual_seed(0)
    layer = Layer(16, 4, dropout=0.0)
    nn.init.normal_(layer.attention.project_in.bias)
    return layer


def test_layer_equals_pytorchs_own(layer):
    x = torch.randn(5, 7, 16)
    assert torch.allclose(layer(x), stock_layer(layer, 16, 4)(x), atol=1e-6)


def test_layer_gradients_equal_pytorchs_own(layer):
    stock = stock_layer(layer, 16, 4)
    x = torch.randn(3, 5, 16)
    layer(x).square().sum().backward()
    stock(x).square().sum().backward()
    assert torch.allclose(layer.attention.project_in.weight.grad, stock.self_attn.in_proj_weight.grad, atol=1e-4)
    assert torch.allclose(layer.expand.weight.grad, stock.linear1.weight.grad, atol=1e-4)


def test_masked_tokens_change_nothing(layer):
    x = torch.randn(2, 6, 16)
    mask = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])
    other = x.clone()
    other[0, 4:] = 99.0
    a, b = layer(x, attention_bias(mask)), layer(other, attention_bias(mask))
    assert torch.equal(a[0, :4], b[0, :4])
    assert torch.allclose(a[0, :4], layer(x[:1, :4])[0], atol=1e-6)


def test_positions_follow_the_formula():
    table = sinusoids(5, 6)
    assert table.shape == (5, 6)
    assert table[0].tolist() == [0, 1, 0, 1, 0, 1]
    assert table[3, 2].item() == pytest.approx(math.sin(3 / 10_000 ** (2 / 6)))
    assert table[3, 5].item() == pytest.approx(math.cos(3 / 10_000 ** (4 / 6)))


def test_layers_alone_know_no_order():
    torch.manual_seed(0)
    model = Transformer(16, 1, 2, 0.0)
    x = torch.randn(1, 4, 16)
    assert torch.allclose(model(x).flip(1), model(x.flip(1)), atol=1e-5)


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
