"""The CNN backbone against numpy, and what batch statistics may and may not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import refusal

from transpl.nn import CNN, CNNSettings, fresh_batch_norm, seeded_module
from transpl.nn.layers import BatchNorm
from transpl.windows import as_windows

SMALL = CNNSettings(n_classes=3, n_channels=2, width=8)


@pytest.fixture
def network() -> CNN:
    """With batch statistics and scales that are not the trivial ones."""
    made = seeded_module(0, CNN, SMALL)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for layer in batch_norms(made):
            layer.running_mean.normal_(generator=draw)
            layer.running_var.uniform_(0.5, 2.0, generator=draw)
            layer.weight.uniform_(0.5, 2.0, generator=draw)
            layer.bias.normal_(generator=draw)
    return made.eval()


def batch_norms(network: torch.nn.Module) -> list[BatchNorm]:
    return [module for module in network.modules() if isinstance(module, BatchNorm)]


@pytest.mark.parametrize("T", [1, 2, 7, 32])
@pytest.mark.parametrize("B", [1, 5])
@pytest.mark.parametrize("training", [False, True])
def test_shapes_are_the_documented_ones(network, B, T, training):
    network.train(training)
    x = torch.randn(B, 2, T)
    summary, latents = network.encode(x)
    assert summary.shape == (B, 1, 8)
    assert latents.shape == (B, 1, -(-T // 8), 8)
    assert network.features(x).shape == (B, 8)
    assert network.classify(x).shape == (B, 3)
    assert torch.isfinite(network.classify(x)).all()


def test_inner_layers_are_those_of_the_field(network):
    kernels = [tuple(p.shape) for name, p in network.named_parameters() if name.startswith("blocks") and p.ndim == 3]
    assert kernels == [(64, 2, 5), (128, 64, 7), (8, 128, 7)]
    assert network.code_modules() == []


def block_by_hand(x: np.ndarray, W: np.ndarray, norm: BatchNorm) -> np.ndarray:
    """pool(relu(gamma (conv(x) - mu) / sqrt(v + eps) + beta)) of one window (i, T) by loops; W (o, i, k)."""
    n_out, _, k = W.shape
    T = x.shape[1]
    padded = np.pad(x, ((0, 0), (k // 2, k // 2)))
    h = np.array([[(W[o] * padded[:, t : t + k]).sum() for t in range(T)] for o in range(n_out)])
    mu, v, gamma, beta = (
        part.detach().double().numpy()[:, None]
        for part in (norm.running_mean, norm.running_var, norm.weight, norm.bias)
    )
    h = np.maximum(gamma * (h - mu) / np.sqrt(v + norm.eps) + beta, 0)
    return np.array([[row[t : t + 2].max() for t in range(0, T, 2)] for row in h])


@pytest.mark.parametrize("T", [5, 8])
def test_encoder_equals_three_blocks_by_hand(network, T):
    x = torch.randn(2, 2, T)
    expected = []
    for window in x.double().numpy():
        for convolution, norm, _ in network.blocks:
            window = block_by_hand(window, convolution.weight.detach().double().numpy(), norm)
        expected.append(window)
    summary, latents = network.encode(x)
    assert np.allclose(latents[:, 0].detach().numpy(), np.swapaxes(expected, 1, 2), atol=1e-4)
    assert np.allclose(summary[:, 0].detach().numpy(), np.mean(expected, axis=2), atol=1e-4)


def test_head_is_linear_in_the_mean_over_time(network):
    x = torch.randn(4, 2, 16)
    z = network.encode(x).latents.mean(dim=(1, 2))
    assert torch.allclose(network.features(x), z, atol=1e-5)
    assert torch.allclose(network.classify(x), z @ network.head[0].weight.T + network.head[0].bias, atol=1e-5)
    assert network.hidden(z) is z


def test_padded_windows_have_the_features_of_cut_ones(network):
    windows = [np.random.default_rng(length).normal(size=(2, length)) for length in (32, 31, 17, 8, 3, 1)]
    padded = as_windows(windows)
    features = network.features(torch.from_numpy(padded.values), torch.from_numpy(padded.lengths))
    for window, found in zip(windows, features, strict=True):
        alone = network.features(torch.from_numpy(window[None]).float())[0]
        assert torch.allclose(found, alone, atol=1e-5)


def test_lengths_of_whole_windows_change_nothing(network):
    x = torch.randn(3, 2, 16)
    assert torch.allclose(network.features(x, torch.full((3,), 16)), network.features(x), atol=1e-6)


def test_a_window_does_not_see_the_others_in_eval_mode(network):
    x = torch.randn(5, 2, 16)
    assert torch.allclose(network.classify(x)[2:3], network.classify(x[2:3]), atol=1e-6)


def test_dropout_acts_in_training_alone():
    network, x = seeded_module(0, CNN, replace(SMALL, dropout=0.9)), torch.randn(4, 2, 16)
    for layer in batch_norms(network):
        layer.momentum = 0.0
    plain = network.eval().features(x)
    network.train()
    for layer in batch_norms(network):
        layer.eval()  # so that dropout alone can differ
    assert not torch.allclose(network.features(x), plain)
    assert torch.equal(network.eval().features(x), plain)


def test_state_dict_round_trip(network):
    other = seeded_module(9, CNN, SMALL).eval()
    x = torch.randn(3, 2, 16)
    assert not torch.equal(other.classify(x), network.classify(x))
    other.load_state_dict(network.state_dict())
    assert torch.equal(other.classify(x), network.classify(x))


def test_fresh_batch_norm_takes_exactly_the_statistics_of_one_batch(network):
    x = 3 * torch.randn(20, 2, 16) + 1
    with fresh_batch_norm(network):
        network.classify(x)
    h = x
    for convolution, norm, _ in network.blocks:
        found = convolution(h).double().detach()
        assert torch.allclose(norm.running_mean.double(), found.mean(dim=(0, 2)), atol=1e-4)
        assert torch.allclose(norm.running_var.double(), found.var(dim=(0, 2)), rtol=1e-3)
        biased = (found - found.mean(dim=(0, 2), keepdim=True)) / torch.sqrt(
            found.var(dim=(0, 2), keepdim=True, correction=0) + norm.eps
        )
        scaled = biased * norm.weight[:, None] + norm.bias[:, None]
        h = torch.nn.functional.max_pool1d(scaled.float().relu(), 2, ceil_mode=True)


def test_fresh_batch_norm_averages_over_batches_whatever_was_there_before(network):
    batches = [torch.randn(6, 2, 16) * scale for scale in (1.0, 5.0)]
    means = []
    for batch in batches:
        with fresh_batch_norm(network):
            network.classify(batch)
        means.append(network.blocks[0][1].running_mean.clone())
    with fresh_batch_norm(network):
        for batch in batches:
            network.classify(batch)
    assert torch.allclose(network.blocks[0][1].running_mean, torch.stack(means).mean(dim=0), atol=1e-5)


def test_fresh_batch_norm_changes_statistics_alone(network):
    names = {name for name, _ in network.named_parameters()}
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    momenta = [layer.momentum for layer in batch_norms(network)]
    for gives_up in (False, True):
        network.train()
        try:
            with fresh_batch_norm(network):
                logits = network.classify(torch.randn(6, 2, 16))
                assert not logits.requires_grad
                assert not network.training, "dropout is off"
                if gives_up:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
        assert [layer.momentum for layer in batch_norms(network)] == momenta
        assert not any(module.training for module in network.modules())
    after = network.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert not changed & names


@pytest.mark.parametrize(
    ("name", "value"), [("n_classes", 0), ("n_channels", 0), ("width", 0), ("dropout", 1.0), ("dropout", -0.1)]
)
def test_wrong_shapes_are_named(name, value):
    with refusal(name):
        replace(SMALL, **{name: value})
