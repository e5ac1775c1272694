"""CoDATS' own promises; its losses are tested in test_losses, what all methods share in test_every_method."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal
from torch.nn import functional as F

from transpl.methods import Labelled, SourceModel, TargetInfo
from transpl.methods.codats import CoDATS, CoDATSObjective, CoDATSSettings, CoDATSWS, ProportionLoss
from transpl.methods.dann import Discriminator
from transpl.methods.joint import View
from transpl.nn import Execution, Network, NetworkSettings, seeded_module
from transpl.nn.objectives import Weighting
from transpl.windows import as_windows

K, d, TOTAL = 3, 16, 20
PI = np.array([0.6, 0.3, 0.1])
SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}
FEW = CoDATSSettings(**SHAPE, max_epochs=2, check_every=1, batch_size=8)
CPU = Execution(device="cpu")


def objective(pi: np.ndarray | None = PI, form: str = "published", memory: float = 0.5) -> CoDATSObjective:
    weights = {"cross_entropy": 1.0, "domain": 1.0} | ({} if pi is None else {"proportions": 1.0})
    return CoDATSObjective(
        seeded_module(0, Network, NetworkSettings(n_classes=K, **SHAPE)),
        Weighting(weights),
        CoDATSSettings(domain_form=form, proportions_memory=memory),
        seeded_module(1, Discriminator, d),
        None if pi is None else ProportionLoss(pi, memory),
        total_steps=TOTAL,
    )


def views(n_s: int = 5, n_t: int = 3, seed: int = 0) -> tuple[View, View]:
    draw = torch.Generator().manual_seed(seed)

    def leaf(n: int, columns: int) -> torch.Tensor:
        return torch.randn(n, columns, generator=draw).requires_grad_()

    source, target = (View(leaf(n, d), leaf(n, K)) for n in (n_s, n_t))
    return source, target


def batch(n: int = 6) -> dict[str, torch.Tensor]:
    X, y = make_waves(n, 0, n_classes=K)
    return {"x": torch.from_numpy(X), "y": torch.from_numpy(y), "target_x": torch.from_numpy(make_waves(n, 1)[0])}


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, n_classes=K, **shift)
    return Labelled(as_windows(X), y, K)


def adapted(method: CoDATS, prior: np.ndarray | None) -> CoDATS:
    method.start_from(SourceModel(labelled(15, 0), labelled(9, 1), method.settings.source(), CPU))
    method.adapt(labelled(12, 2, gain=1.5).windows, TargetInfo(prior=prior))
    return method


def plain_domain_loss(model: CoDATSObjective, z_s: torch.Tensor, z_t: torch.Tensor) -> torch.Tensor:
    is_source = torch.cat([torch.ones(len(z_s)), torch.zeros(len(z_t))]).long()
    return F.cross_entropy(model.discriminator(torch.cat([z_s, z_t])), is_source)


@pytest.mark.parametrize("step", [0, 1, 7, TOTAL])
def test_features_get_minus_lambda_times_the_gradient_that_the_discriminator_follows(step):
    model = objective()
    model.step.fill_(step)
    strength = model.strength
    source, target = views()
    zs, weights = (source.z, target.z), list(model.discriminator.parameters())
    reversed_loss = model.alignment(source, target)["domain"]
    plain_loss = plain_domain_loss(model, *zs)
    assert torch.allclose(reversed_loss, plain_loss)
    reversed_by, plain = (torch.autograd.grad(loss, (*zs, *weights)) for loss in (reversed_loss, plain_loss))
    for i, (found, expected) in enumerate(zip(reversed_by, plain, strict=True)):
        sign = -strength if i < 2 else 1.0
        assert torch.allclose(found, sign * expected, rtol=1e-5, atol=1e-8)
    assert all(bool(g.abs().sum() > 0) == (step > 0) for g in reversed_by[:2])


def test_lambda_follows_the_steps_of_the_run():
    model = objective()
    found = []
    for _ in range(TOTAL):
        found.append(model.strength)
        model(batch())
    q = np.arange(TOTAL) / (TOTAL + 1)
    assert np.allclose(found, 2 / (1 + np.exp(-10 * q)) - 1)


@pytest.mark.parametrize(("form", "of_both"), [("published", lambda s, t: (5 * s + 3 * t) / 8), ("adatime", torch.add)])
def test_domain_loss_is_a_mean_over_the_joint_batch_or_a_sum_of_two(form, of_both):
    source, target = views(5, 3)
    model = objective(form=form)
    none = torch.empty(0, d)
    parts = plain_domain_loss(model, source.z, none), plain_domain_loss(model, none, target.z)
    assert torch.allclose(model.alignment(source, target)["domain"], of_both(*parts))


@pytest.mark.parametrize("form", ["published", "adatime"])
def test_one_row_a_domain_is_enough(form):
    terms = objective(form=form).alignment(*views(1, 1))
    assert all(torch.isfinite(term) for term in terms.values())


def test_a_step_on_proportions_raises_logits_of_classes_predicted_too_rarely():
    _, target = views(n_t=40)
    mean = F.softmax(target.logits, dim=1).mean(dim=0)
    (gradient,) = torch.autograd.grad(ProportionLoss(PI, 0.5)(target.logits), target.logits)
    too_rare = torch.from_numpy(PI) > mean
    assert too_rare.any()
    assert not too_rare.all()
    assert torch.equal(-gradient.sum(dim=0) > 0, too_rare)


def test_mean_prediction_remembers_rows_and_forgets_them_by_half():
    loss = ProportionLoss(PI, 0.5)
    first, second = (views(n_t=n, seed=n)[1].logits for n in (6, 1))
    p, q = (F.softmax(logits, dim=1) for logits in (first, second))
    for logits, mean in ((first, p.mean(dim=0)), (second, (p.sum(dim=0) / 2 + q[0]) / (6 / 2 + 1))):
        expected = (torch.tensor(PI) * (torch.tensor(PI) / mean).log()).sum()
        assert loss(logits).item() == pytest.approx(expected.item(), rel=1e-5)


def test_remembered_predictions_carry_no_gradient():
    loss = ProportionLoss(PI, 0.5)
    first, second = (views(seed=seed)[1].logits for seed in (0, 1))
    loss(first)
    of_first, of_second = torch.autograd.grad(loss(second), (first, second), allow_unused=True)
    assert of_first is None
    assert of_second.abs().sum() > 0


def test_without_memory_the_batch_alone_counts():
    loss = ProportionLoss(PI, 0.0)
    _, target = views()
    alone = loss(target.logits)
    loss(views(seed=1)[1].logits)
    assert torch.equal(loss(target.logits), alone)


def test_validation_and_evaluation_leave_step_and_memory_alone():
    model = objective()
    model.train()(batch())
    assert int(model.step) == 1
    before = copy.deepcopy(model.state_dict())
    model.eval()
    with torch.no_grad():
        first, second = model(batch()), model(batch())
        model.risk({name: rows for name, rows in batch().items() if not name.startswith("target_")})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert first == second


def test_step_and_memory_survive_in_the_state():
    """Dropout is off in `alignment`, so the same state and batch must give the same terms and gradients."""
    model, other = objective(), objective()
    for _ in range(4):
        model(batch())
    other.load_state_dict(model.state_dict())
    found = []
    for each in (model, other, objective()):
        source, target = views(seed=9)
        terms = each.alignment(source, target)
        found.append((*terms.values(), *torch.autograd.grad(sum(terms.values()), (source.z, target.logits))))
    straight, resumed, forgotten = found
    assert all(torch.equal(a, b) for a, b in zip(straight, resumed, strict=True))
    assert not torch.equal(straight[1], forgotten[1])
    assert not torch.equal(straight[2], forgotten[2])


def test_proportions_are_used_when_given_and_needed_by_the_weakly_supervised():
    without, given = adapted(CoDATS(FEW, CPU), None), adapted(CoDATS(FEW, CPU), PI)
    needed = adapted(CoDATSWS(FEW, CPU), PI)
    assert "proportions" not in without.history["joint"][0]
    assert given.history == needed.history
    assert given.history["joint"][0]["proportions"] > 0
    assert given.history["joint"][-1]["cross_entropy"] != without.history["joint"][-1]["cross_entropy"]


def test_training_brings_the_predictions_to_the_proportions():
    settings = replace(FEW, max_epochs=4, adapt_lr=5e-3, proportions_weight=5.0)
    records = adapted(CoDATSWS(settings, CPU), np.array([0.9, 0.05, 0.05])).history["joint"]
    assert records[-1]["proportions"] < records[0]["proportions"] / 2


@pytest.mark.parametrize("weighting", ["fixed", "learnable"])
def test_the_adversary_is_never_muted_by_a_learnt_weight(weighting):
    method = CoDATSWS(replace(FEW, weighting=weighting, domain_weight=0.7), CPU)
    found = method.objective(seeded_module(0, Network, FEW.network(K)), PI, TOTAL).weighting
    assert found.fixed["domain"] == 0.7
    assert found.learnt == (("cross_entropy", "proportions") if weighting == "learnable" else ())


@pytest.mark.parametrize("method", [CoDATS, CoDATSWS])
@pytest.mark.parametrize("weight", ["cross_entropy_weight", "proportions_weight"])
def test_a_weight_is_refused_where_it_is_learnt(method, weight):
    settings = CoDATSSettings(weighting="learnable", **{weight: 2.0})
    with refusal(weight, "weighting='fixed'"):
        method(settings)
    method(replace(settings, weighting="fixed"))


def test_published_weights_are_all_one():
    settings = CoDATSSettings()
    assert settings.weighting == "fixed"
    assert settings.cross_entropy_weight == settings.domain_weight == settings.proportions_weight == 1


def test_identity_names_what_changes_the_loss():
    others = [objective(form="adatime"), objective(memory=0.25), objective(None)]
    longer = objective()
    longer.total_steps += 1
    assert len({each.identity() for each in (objective(), longer, *others)}) == 5


@pytest.mark.parametrize(
    ("dataset", "lr", "w_c", "w_d"),
    [("ucihar", 1e-3, 6.335, 3.275), ("hhar", 5e-4, 7.700, 9.314), ("wisdm", 1e-3, 5.861, 4.575)],
)
def test_adatime_preset(dataset, lr, w_c, w_d):
    settings = CoDATSSettings.for_dataset(dataset, "adatime")
    found = settings.adapt_lr, settings.cross_entropy_weight, settings.domain_weight
    assert found == (lr, w_c, w_d)
    assert (settings.weighting, settings.domain_form) == ("fixed", "adatime")


def test_bad_settings_are_named():
    with refusal("domain_form", "'adatime'"):
        CoDATSSettings(domain_form="sum")
    with refusal("proportions_memory"):
        CoDATSSettings(proportions_memory=1.0)
    with refusal("domain_weight"):
        CoDATSSettings(domain_weight=-1.0)
