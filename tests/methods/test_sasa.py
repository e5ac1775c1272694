"""SASA's associations and losses; the battery over every method covers its life."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal

from transpl.methods import Labelled, SourceModel
from transpl.methods.sasa import (
    SASA,
    PooledClassifier,
    SASASettings,
    SparseAssociations,
    StructureObjective,
    UnitMeanObjective,
    UnitSummary,
    structure_gap,
)
from transpl.nn import Execution, Network, NetworkSettings
from transpl.nn.model import Encoded
from transpl.nn.objectives import Weighting
from transpl.windows import as_windows

SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}
CPU = Execution(device="cpu")
FLOOR = 1e-6


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def encoded(h: torch.Tensor) -> Encoded:
    return Encoded(h.mean(dim=2), h)


def associations_of_width(width: int, spread: float = 1.0) -> SparseAssociations:
    """With weights of its own; a larger `spread` makes sparser associations."""
    associations = SparseAssociations(width).double()
    for i, parameter in enumerate(associations.parameters()):
        parameter.data = spread * random(*parameter.shape, seed=100 + i) / width**0.5
    return associations


def small_network() -> Network:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Network(NetworkSettings(n_classes=3, **{**SHAPE, "dropout": 0.0}))


def objective(variant: str = "full", *, codes: bool = False):
    if variant == "adatime":
        return UnitMeanObjective(
            small_network(), UnitSummary(), Weighting({"cross_entropy": 1, "mean": 2}), SASASettings(codes=codes)
        )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        associations = SparseAssociations(SHAPE["width"])
    weighting = Weighting({"cross_entropy": 1, "intra": 5, "inter": 7})
    return StructureObjective(small_network(), associations, weighting, SASASettings(codes=codes))


def paired_batch(n_source: int = 6, n_target: int = 4, channels: int = 2) -> dict[str, torch.Tensor]:
    x, y = make_waves(n_source, 0, n_classes=3, channels=channels)
    target, _ = make_waves(n_target, 1, n_classes=3, channels=channels, gain=2.0)
    return {"x": torch.from_numpy(x), "y": torch.from_numpy(y), "target_x": torch.from_numpy(target)}


def labelled(n: int, seed: int, **shift) -> Labelled:
    X, y = make_waves(n, seed, n_classes=3, **shift)
    return Labelled(as_windows(X), y, 3)


def adapted(channels: int = 2, target_gain: float = 1.5, **changes) -> SASA:
    settings = {**SHAPE, "max_epochs": 2, "check_every": 1, "batch_size": 8, "adapt_lr": 2e-3, **changes}
    method = SASA(SASASettings(**settings), CPU)
    source, validation = labelled(18, 0, channels=channels), labelled(9, 1, channels=channels)
    method.start_from(SourceModel(source, validation, method.settings.source(), CPU))
    method.adapt(labelled(11, 2, channels=channels, gain=target_gain).windows)
    return method


def projected(z: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by bisection of its threshold."""
    low, high = z.max() - 1, z.max()
    for _ in range(100):
        tau = (low + high) / 2
        low, high = (tau, high) if np.maximum(z - tau, 0).sum() > 1 else (low, tau)
    return np.maximum(z - low, 0)


def by_loops(associations: SparseAssociations, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(z, a, b) of one window h (D, N, d), patch by patch as the equations are printed."""
    weights = {name: value.detach().numpy() for name, value in associations.named_parameters()}

    def linear(name, vector):
        return weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]

    D, N, d = h.shape
    a, b, Z, parts = np.zeros((D, N)), np.zeros((D, D, N)), np.zeros((D, d)), []
    for i in range(D):
        scores = np.zeros((N, N))
        for s in range(N):
            for t in range(N):
                scores[s, t] = linear("query", h[i, s]) @ linear("key", h[i, t]) / np.sqrt(d)
        a[i] = projected(scores.mean(axis=0))
        Z[i] = sum(a[i, t] * linear("value", h[i, t]) for t in range(N))
    for i in range(D):
        others = [(j, t) for j in range(D) if j != i for t in range(N)]
        cosines = [Z[i] @ h[j, t] / np.linalg.norm(Z[i]) / np.linalg.norm(h[j, t]) for j, t in others]
        U = np.zeros(d)
        for (j, t), weight in zip(others, projected(np.array(cosines)), strict=True):
            b[i, j, t] = weight
            U += weight * h[j, t]
        parts.append(linear("join", np.concatenate([Z[i], U])))
    return np.mean(parts, axis=0), a, b.reshape(D, D * N)


@pytest.mark.parametrize(("D", "N"), [(2, 5), (3, 4), (4, 1)])
def test_associations_are_those_of_a_loop_over_channels_and_patches(D, N):
    associations, h = associations_of_width(6), random(7, D, N, 6)
    z, structures = associations(encoded(h))
    for row in range(7):
        expected = by_loops(associations, h[row].numpy())
        for found, value in zip((z, structures["intra"], structures["inter"]), expected, strict=True):
            np.testing.assert_allclose(found[row].detach().numpy(), value, atol=1e-9)


def test_associations_are_sparse_and_never_with_the_own_channel():
    D, N = 3, 8
    _, structures = associations_of_width(6, spread=2.0)(encoded(random(9, D, N, 6)))
    for p in structures.values():
        assert p.min() >= 0
        torch.testing.assert_close(p.sum(dim=-1), torch.ones(9, D, dtype=torch.float64))
        assert 0.1 < (p == 0).double().mean() < 1 - 1 / p.shape[-1], "neither dense nor all on one patch"
    b = structures["inter"].view(9, D, D, N)
    assert b.diagonal(dim1=1, dim2=2).count_nonzero() == 0


def test_gradients_are_those_of_finite_differences():
    associations, h = associations_of_width(4), random(2, 2, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda h: (associations(encoded(h)).z, *associations(encoded(h)).structures.values()), (h,)
    )


def test_a_single_channel_has_no_other_to_look_at():
    associations, h = associations_of_width(6), random(4, 1, 5, 6).requires_grad_()
    z, structures = associations(encoded(h))
    assert structures["inter"].count_nonzero() == 0
    Z = associations.value((structures["intra"][..., None] * h).sum(dim=2))[:, 0]
    torch.testing.assert_close(z, Z @ associations.join.weight[:, :6].T + associations.join.bias)
    (z.sum() + structure_gap(structures["inter"][:2], structures["inter"][2:])).backward()
    assert torch.isfinite(h.grad).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in associations.parameters())


def test_latents_of_zero_give_numbers():
    h = torch.zeros(2, 3, 4, 6, dtype=torch.float64, requires_grad=True)
    z, structures = associations_of_width(6)(encoded(h))
    (z.sum() + sum(p.square().sum() for p in structures.values())).backward()
    assert torch.isfinite(z).all()
    assert torch.isfinite(h.grad).all()


def test_structure_gap_by_hand():
    """Channel means (.5, .5, 0) and (0, 1, 0) against (0, .5, .5) and (0, 1, 0): .25 + 0 + .25, and the floor."""
    p_s = torch.tensor([[[1.0, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 1, 0]]])
    p_t = torch.tensor([[[0, 0.5, 0.5], [0, 1, 0]]])
    assert structure_gap(p_s, p_t).item() == pytest.approx(0.5 + FLOOR, rel=1e-6)


def test_structure_gap_is_the_mean_of_products_of_paired_differences():
    """As the authors' code has it: the mean over all pairs of rows of D D^T, channel by channel."""
    p_s, p_t = random(5, 3, 4, seed=1).softmax(dim=-1), random(5, 3, 4, seed=2).softmax(dim=-1)
    difference = (p_s - p_t).movedim(1, 0)
    expected = sum((D @ D.T).mean() for D in difference)
    torch.testing.assert_close(structure_gap(p_s, p_t), expected)


def test_structure_gap_moves_both_domains_towards_each_other():
    p_s, p_t = (random(5, 3, 4, seed=seed).softmax(dim=-1).requires_grad_() for seed in (1, 2))
    to_source, to_target = torch.autograd.grad(structure_gap(p_s, p_t), (p_s, p_t))
    assert to_source.abs().min() > 0
    torch.testing.assert_close(to_target, -to_source)


def test_identical_batches_sit_on_the_floor_of_every_channel_without_a_gradient():
    associations, h = associations_of_width(6), random(5, 3, 4, 6).requires_grad_()
    one, other = associations(encoded(h)).structures, associations(encoded(h.flip(0))).structures
    for name in ("intra", "inter"):
        gap = structure_gap(one[name], other[name])
        assert gap.item() == pytest.approx(3 * FLOOR, rel=1e-12)
        (gradient,) = torch.autograd.grad(gap, h, retain_graph=True)
        assert gradient.count_nonzero() == 0


def test_the_order_of_patches_does_not_matter_as_long_as_both_domains_share_it():
    associations, h_s, h_t, order = (
        associations_of_width(6),
        random(5, 3, 6, 6, seed=1),
        random(4, 3, 6, 6, seed=2),
        [3, 0, 5, 1, 4, 2],
    )
    plain, moved = ([associations(encoded(h[:, :, each])) for h in (h_s, h_t)] for each in (list(range(6)), order))
    torch.testing.assert_close(moved[0].z, plain[0].z)
    for name in ("intra", "inter"):
        before = structure_gap(*(reading.structures[name] for reading in plain))
        assert before > 0.01
        torch.testing.assert_close(structure_gap(*(reading.structures[name] for reading in moved)), before)
        apart = structure_gap(plain[0].structures[name], moved[1].structures[name])
        assert not torch.isclose(apart, before), "an order in one domain alone is a shift"


def test_the_whole_loss_is_weighed_as_published():
    losses = objective()(paired_batch())
    expected = losses["cross_entropy"] + 5 * losses["intra"] + 7 * losses["inter"]
    torch.testing.assert_close(losses["loss"], expected)
    assert SASASettings().weighting == "fixed"
    assert (SASASettings().intra_weight, SASASettings().inter_weight) == (5, 5)


def test_adatimes_loss_is_the_distance_of_the_means_of_unit_features():
    whole, batch = objective("adatime"), paired_batch()
    z_s, z_t = (whole.network.features(batch[name]) for name in ("x", "target_x"))
    z_s, z_t = z_s / z_s.norm(dim=1, keepdim=True), z_t / z_t.norm(dim=1, keepdim=True)
    losses = whole(batch)
    torch.testing.assert_close(losses["mean"], (z_s.mean(dim=0) - z_t.mean(dim=0)).square().sum().sqrt())
    torch.testing.assert_close(
        losses["cross_entropy"], torch.nn.functional.cross_entropy(whole.network.head(z_s), batch["y"])
    )
    torch.testing.assert_close(losses["loss"], losses["cross_entropy"] + 2 * losses["mean"])
    torch.testing.assert_close(whole.model.classify(batch["x"]), whole.network.head(z_s))


def test_adatimes_loss_of_identical_batches_has_a_gradient_of_numbers():
    whole, batch = objective("adatime"), paired_batch()
    losses = whole({**batch, "target_x": batch["x"]})
    losses["mean"].backward()
    assert losses["mean"].item() == 0
    assert all(torch.isfinite(p.grad).all() for p in whole.parameters() if p.grad is not None)


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("variant", ["full", "adatime"])
def test_every_term_moves_the_encoder_and_none_but_the_codes_own_moves_the_codes(variant, codes):
    whole = objective(variant, codes=codes)
    losses = whole(paired_batch())
    network = whole.network
    for term in ("cross_entropy", *whole.terms):
        encoder = [*network.embed.parameters(), *network.encoder.parameters()]
        gradients = torch.autograd.grad(losses[term], encoder, retain_graph=True)
        assert sum(g.abs().sum() for g in gradients) > 0, term
        decoder = (
            torch.autograd.grad(losses[term], network.decoder.parameters(), retain_graph=True, allow_unused=True)
            if codes
            else ()
        )
        assert all(g is None for g in decoder)
    assert ("code" in losses) == ("reconstruction" in losses) == codes
    assert all(p.requires_grad == codes for module in network.code_modules() for p in module.parameters())


@pytest.mark.parametrize("variant", ["full", "adatime"])
def test_training_codes_adds_their_losses_and_changes_no_other(variant):
    batch = paired_batch()
    plain, with_codes = objective(variant)(batch), objective(variant, codes=True)(batch)
    for term, value in plain.items():
        if term != "loss":
            torch.testing.assert_close(with_codes[term], value)
    torch.testing.assert_close(with_codes["loss"], plain["loss"] + with_codes["code"] + with_codes["reconstruction"])
    torch.testing.assert_close(
        objective(variant, codes=True).risk(batch),
        with_codes["cross_entropy"] + with_codes["code"] + with_codes["reconstruction"],
    )


@pytest.mark.parametrize(("n_source", "n_target"), [(1, 1), (1, 6), (6, 1)])
def test_batches_of_unequal_size_and_of_one_row(n_source, n_target):
    for variant in ("full", "adatime"):
        losses = objective(variant)(paired_batch(n_source, n_target))
        assert all(torch.isfinite(loss) for loss in losses.values())


def test_a_checkpoint_belongs_to_one_variant_and_its_weights():
    network, weighting = small_network(), Weighting({"cross_entropy": 1, "intra": 5, "inter": 5})
    other = Weighting({"cross_entropy": 1, "intra": 5, "inter": 1})
    identities = {objective().identity(), objective("adatime").identity(), objective(codes=True).identity()}
    identities |= {
        StructureObjective(network, UnitSummary(), each, SASASettings()).identity() for each in (weighting, other)
    }
    assert len(identities) == 5


@pytest.mark.parametrize("changes", [{}, {"variant": "adatime"}, {"channels": 1}, {"weighting": "learnable"}], ids=str)
def test_the_adapted_classifier_has_the_networks_own_head(changes):
    method = adapted(**changes)
    terms = ("mean",) if "variant" in changes else ("intra", "inter")
    assert set(terms) <= method.history["joint"][0].keys()
    classifier = method.classifier
    assert isinstance(classifier, PooledClassifier)
    assert classifier.network.head[-1].out_features == 3
    test = labelled(5, 3, channels=changes.get("channels", 2))
    x = torch.from_numpy(test.windows.values)
    with torch.no_grad():
        logits = classifier.network.head(classifier.pooling(classifier.network.encode(x)).z)
    np.testing.assert_allclose(method.predict_proba(test.windows), logits.double().softmax(dim=-1).numpy(), rtol=1e-5)
    with refusal("lengths", "one length"):
        classifier.classify(x, torch.full((5,), 32))


def test_adatimes_variant_without_its_weight_learns_nothing_from_the_target():
    test = labelled(5, 3).windows
    answers = [
        adapted(variant="adatime", mean_weight=weight, dropout=0.0, target_gain=gain).predict_proba(test)
        for weight, gain in ((0, 1.5), (0, -3.0), (9, 1.5), (9, -3.0))
    ]
    assert np.array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[2], answers[3])


def test_adatimes_preset_brings_its_variant_and_weights():
    settings = SASASettings.for_dataset("ucihar", "adatime")
    assert (settings.variant, settings.weighting) == ("adatime", "fixed")
    assert (settings.adapt_lr, settings.cross_entropy_weight, settings.mean_weight) == (5e-3, 4.186, 7.394)
    assert SASASettings.for_dataset("ucihar").variant == "full"
    with refusal("variant", "'full', 'adatime'"):
        SASASettings(variant="half")


@pytest.mark.parametrize("weight", ["cross_entropy_weight", "intra_weight", "inter_weight", "mean_weight"])
def test_a_weight_is_refused_where_it_is_learnt(weight):
    settings = SASASettings(weighting="learnable", **{weight: 2.0})
    with refusal(weight, "weighting='fixed'"):
        SASA(settings)
    SASA(replace(settings, weighting="fixed"))


@pytest.mark.parametrize("length", [28, None], ids=["shorter", "ragged"])
def test_held_out_source_windows_must_be_as_long_as_the_others(length):
    method = SASA(SASASettings(**SHAPE), CPU)
    X, y = make_waves(6, 1, n_classes=3)
    validation = Labelled(as_windows([x[:, : length or 32 - 4 * (i % 2)] for i, x in enumerate(X)]), y, 3)
    with refusal("validation", "one length"):
        method.start_from(SourceModel(labelled(6, 0), validation, method.settings.source(), CPU))
