"""DIRT-T's own promises: VADA's terms, the average of the weights, the refinement and its teacher."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal
from scipy.special import softmax
from scipy.stats import entropy
from tiny_source import CPU, SHORT, TARGET, K, source_model

from transpl.methods.dann import flipped_losses, new_discriminator
from transpl.methods.dirt_t import (
    DIRTT,
    AveragedNetwork,
    DIRTTSettings,
    RefinementObjective,
    VADAObjective,
    still_statistics,
)
from transpl.nn import BatchNorm, Network, NetworkSettings, class_probabilities, seeded_module

SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}
SETTINGS = DIRTTSettings(**{**SHORT, "max_epochs": 2, "adapt_lr": 1e-2, "dropout": 0.0})


def network(seed: int = 0) -> Network:
    return seeded_module(seed, Network, NetworkSettings(n_classes=K, **{**SHAPE, "dropout": 0.0}))


def batch(n: int = 6) -> dict[str, torch.Tensor]:
    X, y = make_waves(n, 0, n_classes=K)
    return {"x": torch.from_numpy(X), "y": torch.from_numpy(y), "target_x": torch.from_numpy(make_waves(n, 1)[0])}


def objective(**changes: object) -> VADAObjective:
    method = DIRTT(DIRTTSettings(**{**SHAPE, "dropout": 0.0, **changes}))
    return VADAObjective(network(), method.weighting(), method.settings, new_discriminator(0, SHAPE["width"]))


def adapted(**changes: object) -> DIRTT:
    method = DIRTT(DIRTTSettings(**{**SHORT, "max_epochs": 2, "adapt_lr": 1e-2, **changes}), CPU)
    method.start_from(source_model(max_epochs=2))
    method.adapt(TARGET)
    return method


def test_the_loss_is_the_weighted_sum_of_its_terms():
    model = objective()
    losses = model(batch())
    weights = {"cross_entropy": 1, "domain": 1e-2, "entropy": 1e-2, "source_vat": 1, "target_vat": 1e-2}  # published
    assert losses["loss"].item() == pytest.approx(sum(w * losses[name].item() for name, w in weights.items()), rel=1e-5)


def test_domain_and_entropy_by_their_definitions():
    model, rows = objective(), batch()
    losses = model(rows)
    z_s, z_t = (model.network.features(x) for x in (rows["x"], rows["target_x"]))
    assert torch.allclose(losses["domain"], flipped_losses(model.discriminator, z_s, z_t).joint_mean)
    p = softmax(model.network.head(z_t).detach().numpy(), axis=1)
    assert losses["entropy"].item() == pytest.approx(entropy(p, axis=1).mean(), rel=1e-5)


@pytest.mark.parametrize("warm_up", [True, False])
def test_average_of_weights_follows_its_formula(warm_up):
    student, average = network(1), AveragedNetwork(network(0), decay=0.3, warm_up=warm_up)
    expected = network(0).head[0].weight.detach().clone()
    for t in range(4):
        average.update(student)
        mu = min(0.3, (1 + t) / (10 + t)) if warm_up else 0.3
        expected = mu * expected + (1 - mu) * student.head[0].weight
    assert torch.allclose(average.network.head[0].weight, expected, atol=1e-6)
    assert not any(p.requires_grad for p in average.parameters())


def test_the_average_answers_and_is_validated():
    model, rows = objective(ema_decay=0.9), batch()
    with torch.no_grad():
        for parameter in model.network.head.parameters():
            parameter.mul_(3)
    assert model.answering is model.average.network
    one_domain = {"x": rows["x"], "y": rows["y"]}
    before = model.risk(one_domain)
    expected = torch.nn.functional.cross_entropy(model.answering.classify(rows["x"]), rows["y"])
    assert torch.equal(before, expected)
    plain = objective(ema_decay=0.0)
    assert plain.average is None
    assert plain.answering is plain.network


def test_only_training_moves_the_average():
    model = objective()
    state = copy.deepcopy(model.average.state_dict())
    model.eval()(batch())
    assert all(torch.equal(value, state[name]) for name, value in model.average.state_dict().items())
    model.train()(batch())
    assert int(model.average.t) == 1


def test_changed_windows_leave_running_statistics_alone():
    layer = BatchNorm(3).train()
    x = torch.randn(8, 3)
    expected = layer(x)
    mean = layer.running_mean.clone()
    with still_statistics(torch.nn.Sequential(layer)):
        assert torch.equal(layer(x), expected)  # normalised by the batch, as in training
    assert torch.equal(layer.running_mean, mean)
    layer(x)
    assert not torch.equal(layer.running_mean, mean)


def test_the_teacher_is_the_average_as_it_was_when_its_epochs_began():
    model = RefinementObjective(network(), SETTINGS, TARGET)
    model.start_epoch(0)
    expected = class_probabilities(network(), TARGET)
    assert np.allclose(model.teacher.numpy(), expected, atol=1e-6)
    with torch.no_grad():
        model.average.network.head[-1].bias.copy_(torch.tensor([0.0, 5.0, 0.0]))
    model.start_epoch(1)
    assert np.allclose(model.teacher.numpy(), expected, atol=1e-6)
    model.start_epoch(SETTINGS.teacher_epochs)
    assert (model.teacher.numpy()[:, 1] > 0.9).all()


def test_the_refinement_keeps_to_its_teacher():
    model = RefinementObjective(network(), SETTINGS, TARGET)
    model.start_epoch(0)
    rows = {"x": torch.from_numpy(TARGET.values[:6]), "row": torch.arange(6)}
    losses = model(rows)
    assert losses["teacher"].item() == pytest.approx(0, abs=1e-6)  # student and teacher are still the same
    model.teacher = model.teacher.flip(1)
    p, q = model.teacher[:6].numpy(), class_probabilities(network(), TARGET)[:6]
    assert model(rows)["teacher"].item() == pytest.approx(entropy(p, q, axis=1).mean(), rel=1e-3)


def test_the_refinement_needs_no_source_row_and_ends_after_its_epochs():
    method = adapted(refine_epochs=2)
    assert [len(method.history[phase]) for phase in ("joint", "refine")] == [2, 2]
    assert method.history["refine"][0].keys() >= {"entropy", "target_vat", "teacher"}
    assert "cross_entropy" not in method.history["refine"][0]


def test_without_a_teacher_it_is_vada():
    method = adapted(teacher_weight=0.0)
    assert "refine" not in method.history
    assert method.details == {}


def test_adatimes_preset_is_vada_and_answers_with_the_last_weights():
    settings = DIRTTSettings.for_dataset("hhar", "adatime")
    found = settings.adapt_lr, settings.cross_entropy_weight, settings.domain_weight, settings.entropy_weight
    assert found == (1e-3, 7.730, 6.632, 1.330)
    assert settings.source_vat_weight == settings.target_vat_weight == 6.912
    assert (settings.teacher_weight, settings.ema_decay) == (0, 0)


def test_bad_settings_are_named():
    for name, value in {"radius": 0.0, "ema_decay": 1.0, "teacher_weight": -1.0, "source_vat_weight": -1.0}.items():
        with refusal(name):
            DIRTTSettings(**{name: value})
    for name in ("refine_epochs", "teacher_epochs"):
        with refusal(name):
            DIRTTSettings(**{name: 0})
