"""MMDA's own promises; its losses are tested in test_losses, what all methods share in test_every_method."""

from __future__ import annotations

import pytest
import torch
from conftest import TINY, refusal

from transpl.methods.joint import View
from transpl.methods.mmda import MMDA, MMDAObjective, MMDASettings
from transpl.nn import Network, seeded_module
from transpl.nn.losses import coral, mean_entropy, mmd

K, d = 3, 16
SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}


def objective(**changes: object) -> MMDAObjective:
    settings = MMDASettings(**SHAPE, **changes)
    return MMDA(settings).objective(seeded_module(0, Network, settings.network(K)), None, total_steps=1)


def views(n_s: int = 5, n_t: int = 4) -> tuple[View, View]:
    draw = torch.Generator().manual_seed(0)
    source, target = (
        View(*(torch.randn(n, columns, generator=draw).requires_grad_() for columns in (d, K))) for n in (n_s, n_t)
    )
    return source, target


@pytest.mark.parametrize("form", ["published", "adatime"])
def test_three_terms_of_features_and_target_predictions(form):
    source, target = views()
    found = objective(coral_form=form).alignment(source, target)
    assert found == {
        "mmd": mmd(source.z, target.z),
        "coral": coral(source.z, target.z, form),
        "entropy": mean_entropy(target.logits),
    }


def test_mmd_has_a_gradient_at_the_features_of_both_domains():
    source, target = views()
    for gradient in torch.autograd.grad(objective().alignment(source, target)["mmd"], (source.z, target.z)):
        assert gradient.abs().sum() > 0


def test_compatible_with_adatime_the_mmd_is_a_number_and_the_entropy_that_of_the_features():
    source, target = views()
    found = objective(compat="adatime").alignment(source, target)
    assert torch.equal(found["mmd"], mmd(source.z, target.z))
    assert not found["mmd"].requires_grad
    assert torch.equal(found["entropy"], mean_entropy(target.z))
    assert found["coral"].requires_grad


def test_one_row_a_domain_is_harmless():
    source, target = views(1, 1)
    terms = objective().alignment(source, target)
    assert all(torch.isfinite(term) for term in terms.values())
    assert terms["coral"] == 0


def test_learnt_weights_do_not_decay():
    of_alignment = objective()
    assert of_alignment.weighting.scales is not None
    assert [parameter is of_alignment.weighting.scales.s for parameter in of_alignment.undecayed()] == [True]
    assert objective(weighting="fixed").undecayed() == []


def test_weights_are_learnt_unless_fixed():
    names = {"cross_entropy", "mmd", "coral", "entropy"}
    learnt, fixed = objective().weighting, objective(weighting="fixed", mmd_weight=2.0).weighting
    assert (set(learnt.learnt), learnt.fixed) == (names, {})
    assert (fixed.learnt, fixed.fixed) == ((), dict.fromkeys(names, 1.0) | {"mmd": 2.0})


def test_identity_names_what_changes_the_loss():
    variants = [{}, {"compat": "adatime"}, {"coral_form": "adatime"}, {"weighting": "fixed"}]
    assert len({objective(**changes).identity() for changes in variants}) == len(variants)


@pytest.mark.parametrize(
    ("dataset", "lr", "weights"),
    [
        ("ucihar", 1e-3, (6.795, 3.964, 8.368, 1.383)),
        ("hhar", 5e-3, (0.189, 6.480, 5.904, 6.708)),
        ("wisdm", 5e-3, (6.654, 2.296, 5.254, 7.556)),
    ],
)
def test_adatime_preset(dataset, lr, weights):
    settings = MMDASettings.for_dataset(dataset, "adatime")
    assert settings.adapt_lr == lr
    terms = ("cross_entropy", "mmd", "coral", "entropy")
    assert tuple(getattr(settings, f"{term}_weight") for term in terms) == weights
    assert (settings.weighting, settings.coral_form, settings.compat) == ("fixed", "adatime", "none")


def test_bad_settings_are_named():
    with refusal("compat", "'adatime'"):
        MMDASettings(compat="AdaTime")
    with refusal("coral_form", "'published'"):
        MMDASettings(coral_form="mean")
    with refusal("entropy_weight"):
        MMDASettings(entropy_weight=-1.0)
