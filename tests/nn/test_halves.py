"""The halves of a layer on the CPU against numerical gradients and against the layer as its equation reads."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from transpl.nn import halves
from transpl.nn.dropout import NO_MASKS, Dropout, Masks
from transpl.nn.halves import AttentionHalf, FeedForwardHalf, linear, linear_gelu, softmax_
from transpl.nn.transformer import Layer, attention_bias

S, L, D, HEADS = 3, 5, 8, 2


@pytest.fixture
def layer():
    torch.manual_seed(0)
    layer = Layer(D, HEADS, dropout=0.3)
    for parameter in layer.parameters():  # biases and gains that are not zero or one
        nn.init.normal_(parameter, std=0.5)
    return layer


def tensors(*modules):
    return [tensor.detach().double().requires_grad_() for m in modules for tensor in (m.weight, m.bias)]


def attention_masks():
    return Dropout(0.3).masks((S * HEADS, L, L), (S * L, D))


def feedforward_masks():
    return Dropout(0.3).masks((S * L, 4 * D), (S * L, D))


class Given(nn.Module):
    """Dropout with a mask that is given, written out."""

    def __init__(self, keep, scale):
        super().__init__()
        self.factor = torch.from_numpy(keep) * scale

    def forward(self, x):
        return x * self.factor


@pytest.mark.parametrize("masks", [NO_MASKS, feedforward_masks()])
def test_numerical_gradient_of_the_feedforward_half(layer, masks):
    x = torch.randn(S, L, D, dtype=torch.float64, requires_grad=True)
    weights = tensors(layer.expand, layer.contract, layer.norm_feedforward)
    assert torch.autograd.gradcheck(lambda x, *w: FeedForwardHalf.apply(x, masks, True, *w), (x, *weights))


@pytest.mark.parametrize("masks", [NO_MASKS, attention_masks()])
@pytest.mark.parametrize("padded", [False, True])
def test_numerical_gradient_of_the_attention_half(layer, masks, padded):
    x = torch.randn(S, L, D, dtype=torch.float64, requires_grad=True)
    bias = attention_bias(torch.arange(L) < torch.tensor([[5], [3], [4]])).double() if padded else None
    weights = tensors(layer.attention.project_in, layer.attention.project_out, layer.norm_attention)
    assert torch.autograd.gradcheck(lambda x, *w: AttentionHalf.apply(x, masks, HEADS, bias, *w), (x, *weights))


@pytest.mark.parametrize("padded", [False, True])
def test_a_layer_in_halves_is_the_plain_layer(layer, padded):
    layer.eval()
    bias = attention_bias(torch.arange(L) < torch.tensor([[5], [3], [4]])) if padded else None
    weight = torch.randn(S, L, D)

    def result_and_gradients(forward):
        x = torch.randn(S, L, D, generator=torch.Generator().manual_seed(1), requires_grad=True)
        y = forward(x, bias)
        return [y, *torch.autograd.grad((y * weight).sum(), [x, *layer.parameters()])]

    for ours, plain in zip(result_and_gradients(layer.in_halves), result_and_gradients(layer.plain), strict=True):
        assert torch.allclose(ours, plain, rtol=1e-4, atol=1e-5)


def test_both_dropouts_of_the_feedforward_half_are_masks_with_their_scale(layer):
    masks, x = feedforward_masks(), torch.randn(S * L, D)
    ours = FeedForwardHalf.apply(
        x, masks, True, *(t.float() for t in tensors(layer.expand, layer.contract, layer.norm_feedforward))
    )
    hidden = F.gelu(layer.expand(x)) * torch.from_numpy(masks.inner) * masks.scale
    out = layer.contract(hidden) * torch.from_numpy(masks.outer) * masks.scale
    assert torch.allclose(ours, layer.norm_feedforward(x + out), atol=1e-5)


def test_both_dropouts_of_the_attention_half_are_masks_with_their_scale(layer):
    masks, x = attention_masks(), torch.randn(S, L, D)
    attention = layer.attention
    ours = AttentionHalf.apply(
        x,
        masks,
        HEADS,
        None,
        *(t.float() for t in tensors(attention.project_in, attention.project_out, layer.norm_attention)),
    )
    attention.dropout = Given(masks.inner.reshape(S, HEADS, L, L), masks.scale)
    out = Given(masks.outer.reshape(S, L, D), masks.scale)(attention(x))
    plain = layer.norm_attention(x + out)
    assert torch.allclose(ours, plain, atol=1e-5)


def test_nothing_is_recorded_without_gradients(layer):
    layer.eval()
    x = torch.randn(S, L, D)
    with torch.no_grad():
        silent = layer(x)
    assert not silent.requires_grad
    assert torch.allclose(silent, layer(x), atol=1e-6)


def test_a_graph_can_be_walked_twice_and_gives_the_same_gradient(layer):
    x = torch.randn(S, L, D, requires_grad=True)
    loss = layer(x).square().sum()
    first = torch.autograd.grad(loss, x, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, x)[0])


def test_gradients_of_gradients_are_refused(layer):
    x = torch.randn(S, L, D, requires_grad=True)
    gradient = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_inputs_are_not_modified(layer):
    x = torch.randn(S, L, D)
    before = x.clone()
    layer(x)
    assert torch.equal(x, before)


@pytest.mark.parametrize("size", [1.0, 1e3])  # beyond 60 the exponentials would overflow: the other branch
def test_softmax_equals_torchs(size):
    scores = torch.randn(6, 7, 17) * size
    assert torch.allclose(softmax_(scores.clone()), scores.softmax(dim=-1), atol=1e-6)


def test_softmax_of_a_masked_row_gives_exact_zeros():
    scores = torch.randn(2, 3, 4)
    scores[0, :, 2:] = -torch.inf
    P = softmax_(scores)
    assert (P[0, :, 2:] == 0).all()
    assert torch.allclose(P.sum(dim=-1), torch.ones(2, 3))


def test_softmax_passes_nan_on():
    assert softmax_(torch.tensor([[0.0, torch.nan]])).isnan().all()


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_linear_maps_with_and_without_onednn(monkeypatch, onednn, dtype):
    if not onednn:
        monkeypatch.setattr(halves, "_ONEDNN_LINEAR", None)
    x, W, b = (torch.randn(*shape, dtype=dtype) for shape in ((6, 4), (3, 4), (3,)))
    assert torch.allclose(linear(x, W, b), x @ W.T + b, atol=1e-6)
    assert torch.allclose(linear_gelu(x, W, b), F.gelu(x @ W.T + b), atol=1e-6)


def test_masks_of_another_draw_differ():
    torch.manual_seed(0)
    first, second = feedforward_masks(), feedforward_masks()
    assert isinstance(first, Masks)
    assert not np.array_equal(first.inner, second.inner)
