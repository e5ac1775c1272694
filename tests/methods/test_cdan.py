"""CDAN's own promises; the discriminator's losses are tested in test_dann."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import TINY, refusal
from scipy.special import softmax
from scipy.stats import entropy

from transpl.methods.cdan import CDAN, CDANObjective, CDANSettings, certainty, outer
from transpl.methods.dann import new_discriminator
from transpl.methods.joint import View
from transpl.nn import Network, NetworkSettings, seeded_module
from transpl.nn.objectives import Weighting

K, d, TOTAL = 3, 16, 20
SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}


def objective(form: str, step: int = 7) -> CDANObjective:
    model = CDANObjective(
        seeded_module(0, Network, NetworkSettings(n_classes=K, **SHAPE)),
        Weighting({"cross_entropy": 1.0, "domain": 1.0, "entropy": 1.0}),
        CDANSettings(domain_form=form, **SHAPE),
        new_discriminator(0, K * d),
        TOTAL,
    )
    model.step.fill_(step)
    return model


def views(n_s: int = 5, n_t: int = 3) -> tuple[View, View]:
    draw = torch.Generator().manual_seed(0)

    def leaf(n: int, columns: int) -> torch.Tensor:
        return torch.randn(n, columns, generator=draw).requires_grad_()

    source, target = (View(leaf(n, d), leaf(n, K)) for n in (n_s, n_t))
    return source, target


def test_a_certain_prediction_puts_the_features_in_the_block_of_its_class():
    z = torch.arange(1.0, d + 1)[None]
    seen = outer(torch.tensor([[0.0, 1.0, 0.0]]), z).view(K, d)
    assert torch.equal(seen[1], z[0])
    assert not seen[[0, 2]].any()


def test_the_outer_product_is_numpys():
    rng = np.random.default_rng(0)
    p, z = rng.random((4, K)), rng.normal(size=(4, d))
    expected = np.stack([np.outer(a, b).ravel() for a, b in zip(p, z, strict=True)])
    assert np.allclose(outer(torch.from_numpy(p), torch.from_numpy(z)), expected)


def test_certain_rows_weigh_twice_as_much_as_guesses():
    found = certainty(torch.tensor([[1e4, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    assert found.tolist() == pytest.approx([2.0, 1 + 1 / 3])  # exp(-ln 3)


def domain_losses(model: CDANObjective, view: View, is_source: int, p: torch.Tensor) -> torch.Tensor:
    """-log D by the definition, one row after the other."""
    rows = [torch.outer(p[i], view.z[i]).ravel() for i in range(len(p))]
    return -model.discriminator(torch.stack(rows)).log_softmax(dim=1)[:, is_source]


def test_published_loss_is_a_mean_weighted_by_certainty_in_each_domain():
    model, both = objective("published"), views()
    expected = 0.0
    for view, is_source in zip(both, (1, 0), strict=True):
        p = softmax(view.logits.detach().numpy(), axis=1)
        rows = domain_losses(model, view, is_source, torch.from_numpy(p)).detach().numpy()
        expected += np.average(rows, weights=1 + np.exp(-entropy(p, axis=1)))
    assert model.alignment(*both)["domain"].item() == pytest.approx(expected, rel=1e-5)


def test_published_gradient_is_reversed_for_features_and_predictions_and_not_for_the_discriminator():
    model, both = objective("published"), views()
    plain = 0.0
    for view, is_source in zip(both, (1, 0), strict=True):
        w = certainty(view.logits)
        plain = plain + (w * domain_losses(model, view, is_source, view.logits.softmax(dim=1))).sum() / w.detach().sum()
    inputs = [part for view in both for part in view]
    weights = list(model.discriminator.parameters())
    found = torch.autograd.grad(model.alignment(*both)["domain"], inputs + weights)
    expected = torch.autograd.grad(plain, inputs + weights)
    for i, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        sign = -model.strength if i < len(inputs) else 1.0
        assert torch.allclose(mine, sign * theirs, atol=1e-7)


def test_adatimes_loss_sees_logits_and_counts_every_row_once():
    model, both = objective("adatime"), views()
    rows = [
        domain_losses(model, view, is_source, view.logits) + domain_losses(model, view, 1 - is_source, view.logits)
        for view, is_source in zip(both, (1, 0), strict=True)
    ]
    assert torch.allclose(model.alignment(*both)["domain"], torch.cat(rows).mean())


def test_entropy_is_the_targets_alone():
    model, (source, target) = objective("published"), views()
    expected = entropy(softmax(target.logits.detach().numpy(), axis=1), axis=1).mean()
    found = model.alignment(source, target)["entropy"]
    assert found.item() == pytest.approx(expected, rel=1e-5)
    assert torch.autograd.grad(found, source.logits, allow_unused=True)[0] is None


def test_only_the_cross_entropys_weight_can_be_learnt():
    weighting = CDAN(CDANSettings(weighting="learnable")).weighting()
    assert weighting.learnt == ("cross_entropy",)
    assert weighting.fixed.keys() == {"domain", "entropy"}


@pytest.mark.parametrize(
    ("dataset", "values"),
    [
        ("ucihar", (1e-3, 9.430, 9.546, 1.292)),
        ("hhar", (5e-4, 4.154, 1.931, 0.184)),
        ("wisdm", (1e-3, 6.984, 5.920, 0.837)),
    ],
)
def test_adatime_preset(dataset, values):
    settings = CDANSettings.for_dataset(dataset, "adatime")
    found = settings.adapt_lr, settings.cross_entropy_weight, settings.domain_weight, settings.entropy_weight
    assert found == values
    assert settings.domain_form == "adatime"


def test_bad_settings_are_named():
    with refusal("domain_form", "'adatime'"):
        CDANSettings(domain_form="sum")
    with refusal("entropy_weight"):
        CDANSettings(entropy_weight=-1.0)
