"""DeepCORAL: its loss by hand, AdaTime's values, and weights that would have no effect."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import refusal
from torch.nn import functional as F

from transpl.methods.deepcoral import DeepCORAL, DeepCORALObjective, DeepCORALSettings
from transpl.nn import Network, NetworkSettings
from transpl.nn.objectives import Weighting

SHAPE = NetworkSettings(n_classes=3, patch_length=4, width=16, n_coarse=4, n_fine=8, n_layers=1, n_heads=2, dropout=0)


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 2, 16, generator=generator)
    return {"x": x, "y": torch.arange(6) % 3, "target_x": 2 * torch.randn(5, 2, 16, generator=generator)}


def objective(**weights: float) -> DeepCORALObjective:
    torch.manual_seed(0)
    return DeepCORALObjective(Network(SHAPE), Weighting(weights), DeepCORALSettings())


def test_loss_is_cross_entropy_and_the_distance_of_covariances():
    model, rows = objective(cross_entropy=2.0, coral=3.0), batch()
    z_s, z_t = (model.network.features(x).detach() for x in (rows["x"], rows["target_x"]))
    gap = np.cov(z_s.double().numpy().T) - np.cov(z_t.double().numpy().T)
    coral = (gap**2).sum() / (4 * 16**2)
    cross_entropy = F.cross_entropy(model.network.head(z_s), rows["y"]).item()
    losses = model(rows)
    assert losses["coral"].item() == pytest.approx(coral, rel=1e-4)
    assert losses["loss"].item() == pytest.approx(2 * cross_entropy + 3 * coral, rel=1e-5)
    assert model.risk(rows).item() == pytest.approx(cross_entropy, rel=1e-5)


def test_terms_grow_with_the_ramp():
    model, rows = objective(cross_entropy=0.0, coral=1.0), batch()
    model.ramp_steps = 4
    found = [model(rows) for _ in range(6)]
    grown = [losses["loss"].item() / losses["coral"].item() for losses in found]
    assert grown == pytest.approx([0, 0.25, 0.5, 0.75, 1, 1])
    model.eval()(rows)
    assert int(model.step) == 6


@pytest.mark.parametrize(
    ("dataset", "values"),
    [("ucihar", (5e-4, 0.101, 4.230)), ("hhar", (5e-4, 0.439, 5.936)), ("wisdm", (1e-3, 6.663, 6.488))],
)
def test_values_of_adatime(dataset, values):
    settings = DeepCORALSettings.for_dataset(dataset, "adatime")
    assert (settings.adapt_lr, settings.cross_entropy_weight, settings.coral_weight) == values
    assert (settings.weighting, settings.coral_form) == ("fixed", "adatime")


def test_a_weight_without_effect_is_refused():
    with refusal("coral_weight", "weighting='fixed'"):
        DeepCORAL(DeepCORALSettings(coral_weight=0.0))
    DeepCORAL(DeepCORALSettings(coral_weight=0.0, weighting="fixed"))
