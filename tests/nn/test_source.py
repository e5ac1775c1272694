"""The source phase: its loss with and without codes."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from transpl.nn import Execution, LoopSettings, Network, NetworkSettings, train_network
from transpl.nn.source import SourceLoss, SourceObjective, class_and_code_losses

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
