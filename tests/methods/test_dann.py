"""DANN, and the discriminator's losses that all adversarial methods share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import TINY
from torch.nn import functional as F

from transpl.methods.dann import (
    DANN,
    DANNObjective,
    DANNSettings,
    Discriminator,
    flipped_losses,
    new_discriminator,
    reversed_losses,
)
from transpl.methods.joint import View
from transpl.nn import Network, NetworkSettings, seeded_module
from transpl.nn.objectives import Weighting

K, d, TOTAL = 3, 16, 20
SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}


def objective() -> DANNObjective:
    network = seeded_module(0, Network, NetworkSettings(n_classes=K, **SHAPE))
    weighting = Weighting({"cross_entropy": 1.0, "domain": 1.0})
    return DANNObjective(network, weighting, DANNSettings(**SHAPE), new_discriminator(0, d), TOTAL)


def features(n_s: int = 5, n_t: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    z_s, z_t = (torch.randn(n, d, generator=draw).requires_grad_() for n in (n_s, n_t))
    return z_s, z_t


def plain_losses(D: Discriminator, z_s: torch.Tensor, z_t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross entropies from the definition, source 1 and target 0."""
    return -D(z_s).log_softmax(dim=1)[:, 1], -D(z_t).log_softmax(dim=1)[:, 0]


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
def test_reversal_turns_the_gradient_of_the_features_alone(strength):
    D, zs = new_discriminator(0, d), features()
    found, expected = reversed_losses(D, *zs, strength), plain_losses(D, *zs)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.allclose(mine, theirs)
    inputs = (*zs, *D.parameters())
    gradients, plain = (torch.autograd.grad(sum(part.mean() for part in each), inputs) for each in (found, expected))
    for i, (mine, theirs) in enumerate(zip(gradients, plain, strict=True)):
        assert torch.allclose(mine, (-strength if i < 2 else 1.0) * theirs, atol=1e-7)


def test_flipped_labels_teach_the_discriminator_the_truth_and_the_features_the_opposite():
    D, zs = new_discriminator(0, d), features()
    true_s, true_t = plain_losses(D, *zs)
    false_s, false_t = -D(zs[0]).log_softmax(dim=1)[:, 0], -D(zs[1]).log_softmax(dim=1)[:, 1]
    found = flipped_losses(D, *zs)
    assert torch.allclose(found.source, true_s + false_s)
    assert torch.allclose(found.target, true_t + false_t)
    weights = list(D.parameters())
    mine = torch.autograd.grad(found.sum_of_means, (*zs, *weights))
    of_features = torch.autograd.grad(false_s.mean() + false_t.mean(), zs)
    of_weights = torch.autograd.grad(true_s.mean() + true_t.mean(), weights)
    for gradient, expected in zip(mine, (*of_features, *of_weights), strict=True):
        assert torch.allclose(gradient, expected, atol=1e-7)


def test_the_loss_is_the_sum_of_a_mean_per_domain():
    model, (z_s, z_t) = objective(), features(5, 3)
    source, target = plain_losses(model.discriminator, z_s, z_t)
    logits = torch.zeros(5, K), torch.zeros(3, K)
    found = model.alignment(View(z_s, logits[0]), View(z_t, logits[1]))
    assert found.keys() == {"domain"}
    assert torch.allclose(found["domain"], source.mean() + target.mean())


def test_lambda_grows_from_nothing():
    model, found = objective(), []
    for step in range(TOTAL):
        model.step.fill_(step)
        found.append(model.strength)
    q = np.arange(TOTAL) / (TOTAL + 1)
    assert np.allclose(found, np.tanh(5 * q))
    assert found[0] == 0


def test_discriminator_is_d_64_64_2():
    assert [tuple(p.shape) for p in Discriminator(d).parameters() if p.ndim == 2] == [(64, d), (64, 64), (2, 64)]


def test_a_trained_discriminator_finds_the_domain_of_rows_that_differ():
    """The sign of its own gradient: a few steps down its loss."""
    D, (z_s, z_t) = new_discriminator(0, d), features(20, 20)
    optimizer = torch.optim.Adam(D.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        reversed_losses(D, z_s.detach() + 1, z_t.detach() - 1, 1.0).sum_of_means.backward()
        optimizer.step()
    assert F.softmax(D(z_s.detach() + 1), dim=1)[:, 1].min() > 0.5 > F.softmax(D(z_t.detach() - 1), dim=1)[:, 1].max()


def test_the_adversary_is_never_muted_by_a_learnt_weight():
    method = DANN(DANNSettings(weighting="learnable", domain_weight=0.7))
    assert method.weighting().fixed == {"domain": 0.7}
    assert method.weighting().learnt == ("cross_entropy",)


@pytest.mark.parametrize(
    ("dataset", "lr", "w_c", "w_d"),
    [("ucihar", 1e-3, 5.139, 2.944), ("hhar", 5e-4, 2.038, 1.030), ("wisdm", 5e-3, 5.272, 2.605)],
)
def test_adatime_preset(dataset, lr, w_c, w_d):
    settings = DANNSettings.for_dataset(dataset, "adatime")
    assert (settings.adapt_lr, settings.cross_entropy_weight, settings.domain_weight) == (lr, w_c, w_d)
