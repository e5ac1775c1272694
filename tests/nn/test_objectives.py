from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from transpl.nn import Execution, LoopSettings, Network, NetworkSettings, adapt_network, train_network
from transpl.nn.loop import new_optimizer
from transpl.nn.objectives import (
    AdaptationObjective,
    AdaptationSettings,
    LearnableWeights,
    SourceLoss,
    SourceObjective,
    Weighting,
    class_and_code_losses,
    join_domains,
    most_confident,
)

SETTINGS = NetworkSettings(
    n_classes=3, patch_length=4, width=16, n_coarse=4, n_fine=8, n_layers=1, n_heads=2, dropout=0.0
)
LOOP = LoopSettings(max_epochs=2, batch_size=8)


def rows(n: int) -> dict:
    return {"x": torch.randn(n, 2, 16, generator=torch.Generator().manual_seed(n)), "y": torch.arange(n) % 3}


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network(SETTINGS)


def test_losses_are_those_of_the_network(network):
    batch, output = rows(6), network(rows(6)["x"])
    losses = class_and_code_losses(network, batch, SourceLoss())
    assert losses.terms["cross_entropy"].item() == pytest.approx(F.cross_entropy(output.logits, batch["y"]).item())
    assert losses.total().item() == pytest.approx(sum(term.item() for term in losses.terms.values()))
    assert torch.equal(losses.features, network.features(batch["x"]))
    plain = class_and_code_losses(network, batch, SourceLoss(codes=False))
    assert list(plain.terms) == ["cross_entropy"]
    assert torch.equal(plain.logits, losses.logits)


def test_smoothed_labels_train_but_do_not_validate(network):
    batch = rows(6)
    smooth, plain = (SourceObjective(network, SourceLoss(label_smoothing=s)) for s in (0.1, 0.0))
    expected = F.cross_entropy(network.classify(batch["x"]), batch["y"], label_smoothing=0.1)
    assert smooth(batch)["cross_entropy"].item() == pytest.approx(expected.item())
    assert smooth.risk(batch).item() == plain.risk(batch).item()


def test_without_codes_decoder_and_codebooks_stay_as_drawn():
    run = {"rows": rows(16), "validation": rows(6), "loop": LOOP, "execution": Execution(device="cpu"), "seed": 0}
    with_codes, _ = train_network(SETTINGS, **run)
    without, history = train_network(SETTINGS, **run, loss=SourceLoss(codes=False))
    assert not torch.equal(with_codes.quantizer.coarse.vectors, without.quantizer.coarse.vectors)
    assert {"loss", "cross_entropy"} <= set(history[0])
    assert "code" not in history[0]
    assert all(parameter.requires_grad for parameter in without.parameters())


CPU = Execution(device="cpu")


def labelled(n: int, time: int = 16) -> dict:
    return {"x": torch.randn(n, 2, time), "y": torch.arange(n) % 3}


def pseudo_labelled(n: int, time: int = 16) -> dict:
    return {**labelled(n, time), "confidence": torch.linspace(0.9, 0.1, n)}


@pytest.mark.parametrize(
    ("n", "ratio", "expected"),
    [(10, 0.5, 5), (5, 0.5, 2), (3, 0.2, 1), (1, 0.1, 1), (0, 0.5, 0), (4, 1.0, 4), (90, 0.7, 63)],
)
def test_the_most_confident_share_is_trusted_at_least_one(n, ratio, expected):
    chosen = most_confident(torch.linspace(0, 1, n), ratio)
    assert sorted(chosen.tolist()) == list(range(n - expected, n))


def test_learnt_weights_decay_as_in_the_authors_code(network):
    """Those of methods that align domains do not."""
    objective = AdaptationObjective(network, AdaptationSettings())
    (group,) = new_optimizer(objective, LoopSettings(weight_decay=0.3)).param_groups
    assert group["weight_decay"] == 0.3
    assert any(parameter is objective.weights.s for parameter in group["params"])


def test_loss_by_hand(network):
    batch = join_domains(labelled(4), pseudo_labelled(4))
    objective = AdaptationObjective(network, AdaptationSettings(top_ratio=0.5))
    losses = objective(batch)
    output = network(batch["x"])
    rows = torch.nn.functional.cross_entropy(output.logits, batch["y"], reduction="none")
    source, target = rows[:4].mean(), rows[4:6].mean()
    vq = output.code_loss + output.reconstruction_loss
    assert losses["source_cross_entropy"].item() == pytest.approx(source.item())
    assert losses["target_cross_entropy"].item() == pytest.approx(target.item())
    expected = (source + target) / 2 + vq / 2 + 2 * torch.log(torch.tensor(2.0))
    assert losses["loss"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_untrusted_rows_change_only_the_reconstruction_part(network):
    batch = join_domains(labelled(4), pseudo_labelled(4))
    other = {**batch, "y": batch["y"].clone()}
    other["y"][6:] = (other["y"][6:] + 1) % 3
    objective = AdaptationObjective(network, AdaptationSettings(top_ratio=0.5))
    assert torch.equal(objective(batch)["loss"], objective(other)["loss"])


@pytest.mark.parametrize("part", ["source", "target"])
def test_a_batch_of_one_domain_only_gives_a_finite_loss(network, part):
    batch = join_domains(labelled(4), pseudo_labelled(4))
    rows = batch["is_target"] if part == "target" else ~batch["is_target"]
    losses = AdaptationObjective(network, AdaptationSettings(0.5))(
        {name: tensor[rows] for name, tensor in batch.items()}
    )
    losses["loss"].backward()
    assert torch.isfinite(losses["loss"])
    empty = "source_cross_entropy" if part == "target" else "target_cross_entropy"
    assert losses[empty].item() == 0.0


def test_joined_rows_of_unequal_length_are_padded_and_marked():
    rows = join_domains(labelled(2, time=16), pseudo_labelled(3, time=12))
    assert rows["x"].shape == (5, 2, 16)
    assert rows["lengths"].tolist() == [16, 16, 12, 12, 12]
    assert rows["is_target"].tolist() == [False, False, True, True, True]
    assert "lengths" not in join_domains(labelled(2), pseudo_labelled(3))


def test_stopping_on_labels_watches_the_trusted_target_rows_too(network):
    """Constant source rows, so that only the pseudo-labels can change what validation sees."""
    loop = LoopSettings(max_epochs=1, batch_size=8, learning_rate=1e-12)
    target = pseudo_labelled(8)
    run = {"loop": loop, "execution": CPU, "seed": 0}
    source, validation = labelled(8), labelled(6)
    _, on_source = adapt_network(network, source, target, validation, AdaptationSettings(0.5), **run)
    _, on_labels = adapt_network(network, source, target, validation, AdaptationSettings(0.5, "labels"), **run)
    rows = join_domains(validation, {name: tensor[:4] for name, tensor in target.items()})
    network.eval()
    risk = AdaptationObjective(network, AdaptationSettings(0.5)).risk
    assert on_source[0]["validation_loss"] == pytest.approx(risk(validation).item())
    assert on_labels[0]["validation_loss"] == pytest.approx(risk(rows).item())


def test_validation_watches_the_weighed_loss(network):
    objective = AdaptationObjective(network.eval(), AdaptationSettings(0.5))
    rows = labelled(6)
    output = network(rows["x"])
    cross_entropy = torch.nn.functional.cross_entropy(output.logits, rows["y"]).item()
    codes = (output.code_loss + output.reconstruction_loss).item()
    with torch.no_grad():
        objective.weights.s.copy_(torch.tensor([2.0, 0.5]))
    expected = cross_entropy / 8 + math.log(5) + codes / 0.5 + math.log(1.25)
    assert objective.risk(rows).item() == pytest.approx(expected, rel=1e-5)


def test_source_network_is_left_alone(network):
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    loop = LoopSettings(max_epochs=2, batch_size=8)
    adapted, history = adapt_network(
        network,
        labelled(8),
        pseudo_labelled(8),
        labelled(6),
        AdaptationSettings(),
        loop,
        Execution(device="cpu"),
        seed=0,
    )
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    assert not torch.equal(adapted.quantizer.coarse.vectors, network.quantizer.coarse.vectors)
    assert {"source_cross_entropy", "target_cross_entropy", "code", "reconstruction"} <= set(history[0])


class ChangesItsMind:
    """Labels everything 2 from epoch 1 on, and says alpha = epoch."""

    def weight(self, epoch: int) -> float:
        return float(epoch)

    def labels(self, network: Network, epoch: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        return (torch.full((4,), 2), torch.tensor([0.1, 0.2, 0.3, 0.9])) if epoch else None


def test_a_teacher_sets_labels_and_weight_by_epoch(network):
    target = pseudo_labelled(4)
    objective = AdaptationObjective(network, AdaptationSettings(0.25), ChangesItsMind(), target)
    batch = join_domains(labelled(4), target)
    logits = network.classify(batch["x"])
    for epoch, (row, label) in enumerate([(4, 0), (7, 2), (7, 2)]):
        objective.start_epoch(epoch)
        losses = objective(batch)
        expected = torch.nn.functional.cross_entropy(logits[[row]], torch.tensor([label]))
        assert losses["target_cross_entropy"].item() == pytest.approx(expected.item(), rel=1e-5)
        learnt = losses["source_cross_entropy"] + epoch * losses["target_cross_entropy"]
        total = objective.weights(torch.stack([learnt, losses["code"] + losses["reconstruction"]]))
        assert losses["loss"].item() == pytest.approx(total.item(), rel=1e-6)


def test_without_codes_only_encoder_and_head_move(network):
    loop = LoopSettings(max_epochs=2, batch_size=8)
    adapted, history = adapt_network(
        network, labelled(8), pseudo_labelled(8), labelled(6), AdaptationSettings(codes=False), loop, CPU, seed=0
    )
    assert "code" not in history[0]
    assert torch.equal(adapted.quantizer.coarse.vectors, network.quantizer.coarse.vectors)
    assert not torch.equal(adapted.embed[0].weight, network.embed[0].weight)
    assert all(parameter.requires_grad for parameter in adapted.parameters())


def test_starts_at_half_the_sum_plus_log_two_each():
    weights = LearnableWeights(2)
    assert weights(torch.tensor([3.0, 5.0])).item() == pytest.approx(3 / 2 + 5 / 2 + 2 * math.log(2))


def test_formula_by_hand():
    weights = LearnableWeights(2)
    weights.s.data = torch.tensor([2.0, 0.5])
    expected = 3 / 8 + math.log(5) + 5 / 0.5 + math.log(1.25)
    assert weights(torch.tensor([3.0, 5.0])).item() == pytest.approx(expected)


def test_the_larger_loss_learns_the_smaller_weight():
    weights = LearnableWeights(2)
    optimizer = torch.optim.SGD(weights.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        weights(torch.tensor([10.0, 0.1])).backward()
        optimizer.step()
    large, small = (1 / (2 * weights.s.detach().square())).tolist()
    assert large < 0.5 < small


# loss, the s^2 it draws to, and what it then costs
OPTIMA = [(1.0, 1.0, 1.193147), (4.0, 2.732051, 2.049009), (0.25, 0.421535, 0.648273)]


@pytest.mark.parametrize(("loss", "square", "cost"), OPTIMA)
def test_optimum_by_formula(loss, square, cost):
    assert (loss + math.sqrt(loss**2 + 8 * loss)) / 4 == pytest.approx(square, abs=1e-6)
    weights = LearnableWeights(1).double()
    weights.s.data.fill_(math.sqrt(square))
    value = weights(torch.tensor([loss], dtype=torch.float64))
    value.backward()
    assert value.item() == pytest.approx(cost, abs=1e-6)
    assert weights.s.grad.item() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("start", [0.5, -2.0])
def test_optimum_by_minimising(start):
    losses, squares, costs = (torch.tensor(column, dtype=torch.float64) for column in zip(*OPTIMA, strict=True))
    weights = LearnableWeights(3).double()
    weights.s.data.fill_(start)
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.05)
    for _ in range(2000):
        optimizer.zero_grad()
        weights(losses).backward()
        optimizer.step()
    torch.testing.assert_close(weights.s.detach().square(), squares, atol=1e-5, rtol=0)
    assert weights(losses).item() == pytest.approx(costs.sum().item(), abs=1e-6)


@given(st.floats(0.0101, 100), st.booleans(), st.floats(0, 100))
def test_above_the_floor_nothing_is_changed_to_the_last_bit(s, negative, loss):
    weights = LearnableWeights(1)
    weights.s.data.fill_(-s if negative else s)
    plain = weights.s.detach().clone().requires_grad_()
    losses = torch.tensor([loss])
    squares = plain.square()
    expected = (losses / (2 * squares) + torch.log1p(squares)).sum()
    value = weights(losses)
    assert torch.equal(value, expected)
    assert torch.equal(torch.autograd.grad(value, weights.s)[0], torch.autograd.grad(expected, plain)[0])


@pytest.mark.parametrize("s", [0.0, 1e-30, 0.005, -0.005, -1e-9])
def test_below_the_floor_the_cost_is_bounded_and_the_gradient_leads_out(s):
    weights = LearnableWeights(1)
    weights.s.data.fill_(s)
    value = weights(torch.tensor([1.0]))
    value.backward()
    assert value.item() == pytest.approx(1 / 2e-4 + math.log1p(1e-4), rel=1e-5)
    assert weights.s.grad.isfinite().all()
    assert weights.s.grad.item() * (-1 if s < 0 else 1) < 0


def test_s_grows_back_from_zero():
    weights = LearnableWeights(1)
    weights.s.data.zero_()
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.05)
    passed = []
    for _ in range(100):
        optimizer.zero_grad()
        weights(torch.ones(1)).backward()
        optimizer.step()
        passed.append(weights.s.item())
    assert passed == sorted(passed)
    assert passed[-1] > 0.1


def test_a_loss_of_zero_keeps_s_near_the_floor():
    weights = LearnableWeights(1)
    optimizer = torch.optim.Adam(weights.parameters(), lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        weights(torch.zeros(1)).backward()
        optimizer.step()
    assert weights.s.abs().item() < 0.1
    assert weights(torch.ones(1)).item() <= 1 / 2e-4 + 1


def test_weights_by_name_fixed_and_learnt():
    losses = {"a": torch.tensor(3.0), "b": torch.tensor(5.0), "c": torch.tensor(7.0)}
    assert Weighting({"a": 2.0, "b": 0.0, "c": 1.0})(losses).item() == pytest.approx(13.0)
    mixed = Weighting({"b": 10.0}, ["a", "c"])
    assert mixed(losses).item() == pytest.approx(50 + (3 + 7) / 2 + 2 * math.log(2))
    assert [name for name, _ in mixed.named_parameters()] == ["scales.s"]


def test_fixed_weights_are_no_parameters_and_learnt_ones_all_get_a_gradient():
    losses = {"a": torch.tensor(2.0), "b": torch.tensor(3.0)}
    fixed = Weighting({"a": 1.0, "b": 0.5})
    assert fixed(losses).item() == 3.5
    assert list(fixed.parameters()) == []
    mixed = Weighting({"a": 2.0}, ["b"])
    mixed(losses).backward()
    assert [p.grad is not None for p in mixed.parameters()] == [True]
    assert mixed(losses).item() == pytest.approx(4 + 3 / 2 + math.log(2))
