from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import nn
from torch.nn import functional as F

from transpl.nn import _cpu_kernels, use_cpu_kernels
from transpl.nn._cpu_kernels import (
    NO_MASKS,
    FusedAttention,
    FusedFeedForward,
    Masks,
    RandomBytes,
    linear,
    linear_gelu,
    softmax_,
    without_dropped,
    zero_dropped_,
)
from transpl.nn.layers import Dropout, Layer, attention_bias, random_bytes

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
    assert torch.autograd.gradcheck(lambda x, *w: FusedFeedForward.apply(x, masks, True, *w), (x, *weights))


@pytest.mark.parametrize("masks", [NO_MASKS, attention_masks()])
@pytest.mark.parametrize("padded", [False, True])
def test_numerical_gradient_of_the_attention_half(layer, masks, padded):
    x = torch.randn(S, L, D, dtype=torch.float64, requires_grad=True)
    bias = attention_bias(torch.arange(L) < torch.tensor([[5], [3], [4]])).double() if padded else None
    weights = tensors(layer.attention.project_in, layer.attention.project_out, layer.norm_attention)
    assert torch.autograd.gradcheck(lambda x, *w: FusedAttention.apply(x, masks, HEADS, bias, *w), (x, *weights))


@pytest.mark.parametrize("padded", [False, True])
def test_the_fused_layer_is_the_plain_layer(layer, padded):
    layer.eval()
    bias = attention_bias(torch.arange(L) < torch.tensor([[5], [3], [4]])) if padded else None
    weight = torch.randn(S, L, D)

    def result_and_gradients(forward):
        x = torch.randn(S, L, D, generator=torch.Generator().manual_seed(1), requires_grad=True)
        y = forward(x, bias)
        return [y, *torch.autograd.grad((y * weight).sum(), [x, *layer.parameters()])]

    fused, plain = result_and_gradients(layer.fused_forward), result_and_gradients(layer.plain_forward)
    for ours, theirs in zip(fused, plain, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_switch_chooses_between_the_two(layer, monkeypatch):
    used = []
    monkeypatch.setattr(FusedAttention, "apply", lambda *args: used.append("fused") or args[0])
    x = torch.randn(S, L, D)
    layer(x)
    with use_cpu_kernels(False):
        layer(x)
        with use_cpu_kernels(True):
            layer(x)
        layer(x)
    assert used == ["fused", "fused"]


@pytest.mark.parametrize("enabled", [True, False])
def test_dropout_is_dropout_with_and_without_the_kernels(enabled):
    torch.manual_seed(0)
    with use_cpu_kernels(enabled):
        x = torch.ones(100_000, requires_grad=True)
        y = Dropout(0.3)(x)
        (dx,) = torch.autograd.grad(y.sum(), x)
    assert float((y == 0).double().mean()) == pytest.approx(77 / 256, abs=0.01)
    assert torch.equal(dx, y)


def test_both_dropouts_of_the_feedforward_half_are_masks_with_their_scale(layer):
    masks, x = feedforward_masks(), torch.randn(S * L, D)
    ours = FusedFeedForward.apply(
        x, masks, True, *(t.float() for t in tensors(layer.expand, layer.contract, layer.norm_feedforward))
    )
    hidden = F.gelu(layer.expand(x)) * torch.from_numpy(masks.inner) * masks.scale
    out = layer.contract(hidden) * torch.from_numpy(masks.outer) * masks.scale
    assert torch.allclose(ours, layer.norm_feedforward(x + out), atol=1e-5)


def test_both_dropouts_of_the_attention_half_are_masks_with_their_scale(layer):
    masks, x = attention_masks(), torch.randn(S, L, D)
    attention = layer.attention
    ours = FusedAttention.apply(
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
        monkeypatch.setattr(_cpu_kernels, "_ONEDNN_LINEAR", None)
    x, W, b = (torch.randn(*shape, dtype=dtype) for shape in ((6, 4), (3, 4), (3,)))
    assert torch.allclose(linear(x, W, b), x @ W.T + b, atol=1e-6)
    assert torch.allclose(linear_gelu(x, W, b), F.gelu(x @ W.T + b), atol=1e-6)


def test_masks_of_another_draw_differ():
    torch.manual_seed(0)
    first, second = feedforward_masks(), feedforward_masks()
    assert isinstance(first, Masks)
    assert not np.array_equal(first.inner, second.inner)


@pytest.fixture
def dropped():
    torch.manual_seed(0)
    return Dropout(0.3)(torch.ones(1_000_003))


def test_rate_is_p_to_the_nearest_1_256(dropped):
    p = 77 / 256
    rate = float((dropped == 0).double().mean())
    assert abs(rate - p) < 5 * np.sqrt(p * (1 - p) / len(dropped))


def test_kept_elements_are_scaled_so_that_the_mean_stays(dropped):
    assert dropped.unique().tolist() == [0.0, pytest.approx(256 / 179)]
    assert float(dropped.double().mean()) == pytest.approx(1.0, abs=0.005)


def test_neighbours_are_dropped_independently(dropped):
    zero = (dropped == 0).double() - 77 / 256
    for lag in (1, 2, 7, 8, 64):
        correlation = float((zero[:-lag] * zero[lag:]).mean() / zero.square().mean())
        assert abs(correlation) < 5 / np.sqrt(len(zero))


BLOCK = 8192 * 8  # bytes that the generators give in one step


@pytest.mark.parametrize("lag", [1, 2, 3, 8, 16, 64, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK])
def test_masks_are_independent_within_a_step_of_the_generators_and_between_steps(lag):
    torch.manual_seed(0)
    dropped = 77 / 256 - (~RandomBytes().keep((64 * BLOCK,), 77)).astype(np.float64)
    correlation = (dropped[:-lag] * dropped[lag:]).mean() / np.square(dropped).mean()
    assert abs(correlation) < 4.5 / np.sqrt(len(dropped) - lag)


@pytest.mark.parametrize("threshold", [1, 77, 128, 255])
def test_every_threshold_keeps_its_share(threshold):
    torch.manual_seed(0)
    kept = RandomBytes().keep((1 << 20,), threshold).mean()
    p = threshold / 256
    assert abs(kept - (1 - p)) < 5 * np.sqrt(p * (1 - p) / (1 << 20))


def test_the_number_kept_in_a_row_has_the_variance_of_independent_draws():
    torch.manual_seed(0)
    kept = RandomBytes().keep((20_000, 256), 77).sum(axis=1)
    assert kept.var() == pytest.approx(256 * (77 / 256) * (179 / 256), rel=0.05)


def test_columns_over_layers_and_steps_are_dropped_equally_often():
    torch.manual_seed(0)
    shares = np.mean([RandomBytes().keep((64, 256), 77).mean(axis=0) for _ in range(200)], axis=0)
    assert np.abs(shares - 179 / 256).max() < 5 * np.sqrt(0.21 / (64 * 200))


def test_all_256_byte_values_of_another_device_are_equally_likely():
    torch.manual_seed(1)
    counts = torch.bincount(random_bytes(1 << 20, torch.device("cpu")).long(), minlength=256).numpy()
    assert chisquare(counts).pvalue > 1e-4


def test_masking_in_place_and_in_new_memory():
    x, keep = torch.tensor([1.0, -2.0, 3.0]), np.array([True, False, True])
    assert without_dropped(x, keep).tolist() == [1.0, 0.0, 3.0]
    assert x.tolist() == [1.0, -2.0, 3.0]
    assert without_dropped(x, None) is x
    assert zero_dropped_(x, None) is x
    assert zero_dropped_(x, keep) is x
    assert x.tolist() == [1.0, 0.0, 3.0]


def test_gradient_passes_where_elements_were_kept_and_only_there():
    torch.manual_seed(0)
    x = torch.ones(1000, requires_grad=True)
    y = Dropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_nothing_is_dropped_in_eval_mode_or_with_p_zero():
    x = torch.randn(10)
    assert Dropout(0.3).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_two_calls_draw_different_masks_and_one_seed_draws_the_same():
    layer, x = Dropout(0.5), torch.ones(1000)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    assert not torch.equal(first, second)
