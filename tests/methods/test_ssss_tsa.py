"""SSSS-TSA: attention over channels, and what each loss reaches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import refusal
from tiny_source import CPU, SHORT, TARGET, K, source_model, waves
from torch.nn import functional as F

from transpl.methods.ssss_tsa import (
    SSSSTSA,
    ChannelAttention,
    ChannelNetwork,
    SSSSTSAObjective,
    SSSSTSASettings,
)
from transpl.nn import CNNSettings, Network, Weighting
from transpl.nn.losses import sinkhorn
from transpl.windows import Windows, as_windows

C, d = 3, 8
SOURCE = waves(30, 0).windows
ON_CNN = {**SHORT, "backbone": "cnn", "dropout": 0.0}


def cnn_model(n_channels: int = C, temperature: float = 2.0) -> ChannelNetwork:
    torch.manual_seed(0)
    encoders = [CNNSettings(K, 1, d, dropout=0.0).build() for _ in range(n_channels)]
    return ChannelNetwork(encoders, n_channels, temperature).eval()


def objective(model: ChannelNetwork) -> SSSSTSAObjective:
    weighting = Weighting({"cross_entropy": 1.0, "sinkhorn": 1.0})
    return SSSSTSAObjective(model, weighting, SSSSTSASettings(**ON_CNN))


@pytest.mark.parametrize("n_channels", [1, 2, 9])
@pytest.mark.parametrize("temperature", [0.01, 1.0, 10.0])
def test_weights_of_channels_sum_to_one(n_channels, temperature):
    w = ChannelAttention(d, temperature)(torch.randn(5, n_channels, d))
    assert w.shape == (5, n_channels)
    assert (w >= 0).all()
    assert torch.allclose(w.sum(dim=1), torch.ones(5), atol=1e-6)
    if n_channels == 1:
        assert torch.equal(w, torch.ones(5, 1))


def test_weights_by_hand():
    attention = ChannelAttention(4, temperature=0.5)
    f = torch.randn(2, C, 4)
    Q, k = attention.query.weight.detach().numpy(), attention.key.weight.detach().numpy()
    for window, found in zip(f.numpy(), attention(f).detach().numpy(), strict=True):
        S = (window @ Q.T) @ (window @ k.T).T / np.sqrt(4)  # every channel with every other; the diagonal counts
        scores = np.exp(np.diag(S) / 0.5)
        assert np.allclose(found, scores / scores.sum(), atol=1e-5)


def test_a_high_temperature_makes_weights_alike_and_a_low_one_picks_a_channel():
    f = F.normalize(torch.randn(4, C, d), dim=-1)
    attention = ChannelAttention(d, 1e4)
    assert torch.allclose(attention(f), torch.full((4, C), 1 / C), atol=1e-3)
    attention.temperature = 1e-5
    assert torch.allclose(attention(f).amax(dim=1), torch.ones(4), atol=1e-3)


def test_features_are_weighted_unit_vectors_side_by_side():
    model, x = cnn_model(), torch.randn(5, C, 16)
    view = model.view(x)
    w = model.attention(view.f)
    for c, encoder in enumerate(model.encoders):
        e = encoder.features(x[:, [c]])
        f = e / torch.linalg.vector_norm(e, dim=1, keepdim=True)
        assert torch.allclose(view.f[:, c], f, atol=1e-5)
        assert torch.allclose(view.z[:, c * d : (c + 1) * d], w[:, [c]] * f, atol=1e-5)
    assert torch.allclose(model.classify(x), view.z @ model.head.weight.T, atol=1e-6)


def test_one_channel_is_its_own_feature():
    model, x = cnn_model(n_channels=1), torch.randn(5, 1, 16)
    assert torch.equal(model.features(x), model.view(x).f[:, 0])


def test_losses_are_sums_over_the_joint_features_and_all_channels():
    model = cnn_model()
    loss, x_s, x_t, y = objective(model), torch.randn(6, C, 16), torch.randn(4, C, 16), torch.arange(6) % K
    source, terms = loss.source_view({"x": x_s, "y": y})
    target = loss.target_view({"x": x_t})
    expected = F.cross_entropy(source.z @ model.head.weight.T, y)
    moved = sinkhorn(source.z, target.z)
    for c in range(C):
        expected = expected + F.cross_entropy(source.f[:, c] @ model.channel_heads[c].weight.T, y)
        moved = moved + sinkhorn(source.f[:, c], target.f[:, c])
    assert torch.allclose(terms["cross_entropy"], expected)
    assert torch.allclose(loss.alignment(source, target)["sinkhorn"], moved)
    # Costs of the same features are no exact zeros, because the transport is blurred.
    assert loss.alignment(source, source)["sinkhorn"] < 0.3 * moved


def test_joint_losses_reach_attention_but_no_encoder():
    """The authors detach the features that they join."""
    model = cnn_model()
    view = model.view(torch.randn(6, C, 16))
    joint = F.cross_entropy(model.logits(view.z), torch.arange(6) % K)
    joint.backward()
    assert model.attention.query.weight.grad.abs().sum() > 0
    assert all(p.grad is None for encoder in model.encoders for p in encoder.parameters())


@pytest.mark.parametrize("c", range(C))
def test_a_channel_teaches_its_own_encoder_alone(c):
    model = cnn_model()
    view = model.view(torch.randn(6, C, 16))
    F.cross_entropy(model.all_logits(view)[1 + c], torch.arange(6) % K).backward()
    reached = [any(bool(p.grad.any()) for p in encoder.blocks.parameters()) for encoder in model.encoders]
    assert reached == [i == c for i in range(C)]


def test_the_patch_transformer_is_shared_by_the_channels():
    method = SSSSTSA(SSSSTSASettings(**SHORT), CPU)
    method.start_from(source_model())
    model = method.objective(method.source.untrained_network(), None, 1).model.eval()
    assert len(model.encoders) == 1
    assert isinstance(model.encoders[0], Network)
    x = torch.from_numpy(TARGET.values)
    f = model.view(x).f
    assert f.shape == (len(x), 2, 16)
    assert torch.allclose(f.flip(1), model.view(x.flip(1)).f, atol=1e-5), "equal channels have equal features"


def test_every_channel_has_a_cnn_of_its_own():
    method = SSSSTSA(SSSSTSASettings(**ON_CNN), CPU)
    method.start_from(source_model(backbone="cnn", dropout=0.0))
    model = method.objective(method.source.untrained_network(), None, 1).model
    first, second = (encoder.blocks[0][0].weight for encoder in model.encoders)
    assert first.shape == (64, 1, 5)
    assert not torch.equal(first, second)
    again = method.objective(method.source.untrained_network(), None, 1).model
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_shorter_windows_have_the_features_of_cut_ones():
    model = cnn_model()
    windows = [np.random.default_rng(length).normal(size=(C, length)) for length in (16, 9)]
    padded = as_windows(windows)
    found = model.features(torch.from_numpy(padded.values), torch.from_numpy(padded.lengths))
    assert torch.allclose(found[1:], model.features(torch.from_numpy(windows[1][None]).float()), atol=1e-5)


def test_the_loss_brings_the_domains_of_a_channel_together():
    """Compared with a training without it."""
    shifted = Windows(2 * TARGET.values + 1, TARGET.lengths)
    trained = {"max_epochs": 4, "keep": "last"}
    source = source_model(backbone="cnn", dropout=0.0, **trained)
    distances = []
    for weight in (0.0, 5.0):
        settings = SSSSTSASettings(**ON_CNN | trained, adapt_lr=2e-3, sinkhorn_weight=weight)
        method = SSSSTSA(settings, CPU)
        method.start_from(source)
        method.adapt(shifted)
        with torch.no_grad():
            f_s, f_t = (method.classifier.view(torch.from_numpy(part.values)).f for part in (SOURCE, shifted))
            distances.append(sum(float(sinkhorn(f_s[:, c], f_t[:, c])) for c in range(2)))
    assert distances[1] < 0.8 * distances[0]


@pytest.mark.parametrize(("dataset", "temperature"), [("ucihar", 10.0), ("wisdm", 3.0), ("hhar", 3.0), ("ptb", 3.0)])
def test_published_values(dataset, temperature):
    settings = SSSSTSASettings.for_dataset(dataset, "cnn")
    found = (settings.cross_entropy_weight, settings.sinkhorn_weight, settings.weighting, settings.adapt_lr)
    assert found == (1.613, 1.857, "fixed", 1e-3)
    assert settings.temperature == temperature
    if dataset != "ptb":
        assert SSSSTSASettings.for_dataset(dataset, "published").temperature == temperature


@pytest.mark.parametrize(("name", "value"), [("temperature", 0.0), ("epsilon", -1.0), ("sinkhorn_weight", -1.0)])
def test_wrong_values_are_named(name, value):
    with refusal(name):
        SSSSTSASettings(**{name: value})
