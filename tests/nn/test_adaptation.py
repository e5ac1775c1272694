import math

import pytest
import torch

from transpl.nn import Execution, LoopSettings, Network, NetworkSettings, adapt_network
from transpl.nn.adaptation import AdaptationObjective, AdaptationSettings, joined, most_confident
from transpl.nn.loop import new_optimizer

SETTINGS = NetworkSettings(
    n_classes=3, patch_length=4, width=16, n_coarse=4, n_fine=8, n_layers=1, n_heads=2, dropout=0.0
)
CPU = Execution(device="cpu")


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network(SETTINGS)


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
    batch = joined(labelled(4), pseudo_labelled(4))
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
    batch = joined(labelled(4), pseudo_labelled(4))
    other = {**batch, "y": batch["y"].clone()}
    other["y"][6:] = (other["y"][6:] + 1) % 3
    objective = AdaptationObjective(network, AdaptationSettings(top_ratio=0.5))
    assert torch.equal(objective(batch)["loss"], objective(other)["loss"])


@pytest.mark.parametrize("part", ["source", "target"])
def test_a_batch_of_one_domain_only_gives_a_finite_loss(network, part):
    batch = joined(labelled(4), pseudo_labelled(4))
    rows = batch["is_target"] if part == "target" else ~batch["is_target"]
    losses = AdaptationObjective(network, AdaptationSettings(0.5))(
        {name: tensor[rows] for name, tensor in batch.items()}
    )
    losses["loss"].backward()
    assert torch.isfinite(losses["loss"])
    empty = "source_cross_entropy" if part == "target" else "target_cross_entropy"
    assert losses[empty].item() == 0.0


def test_joined_rows_of_unequal_length_are_padded_and_marked():
    rows = joined(labelled(2, time=16), pseudo_labelled(3, time=12))
    assert rows["x"].shape == (5, 2, 16)
    assert rows["lengths"].tolist() == [16, 16, 12, 12, 12]
    assert rows["is_target"].tolist() == [False, False, True, True, True]
    assert "lengths" not in joined(labelled(2), pseudo_labelled(3))


def test_stopping_on_labels_watches_the_trusted_target_rows_too(network):
    """Constant source rows, so that only the pseudo-labels can change what validation sees."""
    loop = LoopSettings(max_epochs=1, batch_size=8, learning_rate=1e-12)
    target = pseudo_labelled(8)
    run = {"loop": loop, "execution": CPU, "seed": 0}
    source, validation = labelled(8), labelled(6)
    _, on_source = adapt_network(network, source, target, validation, AdaptationSettings(0.5), **run)
    _, on_labels = adapt_network(network, source, target, validation, AdaptationSettings(0.5, "labels"), **run)
    rows = joined(validation, {name: tensor[:4] for name, tensor in target.items()})
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
    batch = joined(labelled(4), target)
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
