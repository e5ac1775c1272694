"""RAINCOAT: its spectra, features and decoder against numpy, its two phases, the choice between them."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal
from torch.nn import functional as F

from transpl.methods import Labelled
from transpl.methods.raincoat import (
    CorrectionObjective,
    Decoder,
    FrequencyEncoder,
    Raincoat,
    RaincoatNetwork,
    RaincoatObjective,
    RaincoatSettings,
    phase,
    summed_l1_error,
    waves,
)
from transpl.nn import Execution, Network, NetworkSettings
from transpl.nn.losses import sinkhorn
from transpl.nn.objectives import Weighting
from transpl.windows import as_windows

C, T, K, M, D = 2, 32, 3, 6, 16
SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}
SETTINGS = RaincoatSettings(
    **SHAPE, max_epochs=4, check_every=1, batch_size=8, adapt_lr=2e-3, modes=M, dropout=0.0, adapt_patience=9
)
PUBLISHED = {"cross_entropy": 1.0, "sinkhorn": 1.0, "reconstruction": 1e-4}


def waves_of(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, n_classes=K, channels=C, length=T, **shift)
    return Labelled(as_windows(X), y, K)


SOURCE, VALIDATION, TARGET = waves_of(24, 0), waves_of(12, 1), waves_of(16, 2, gain=1.5, offset=0.3)
X_SOURCE, X_TARGET = (torch.from_numpy(part.windows.values) for part in (SOURCE, TARGET))


def new_model(head: str = "linear", cosine: bool = True) -> RaincoatNetwork:
    torch.manual_seed(0)
    network = Network(NetworkSettings(n_classes=K, **{**SHAPE, "dropout": 0.0}))
    return RaincoatNetwork(network, C, T, M, cosine, head)


def new_method(**changes: object) -> Raincoat:
    method = Raincoat(replace(SETTINGS, **changes), Execution(device="cpu"))
    method.fit_source(SOURCE, VALIDATION)
    return method


def batch(n: int = 8) -> dict[str, torch.Tensor]:
    return {"x": X_SOURCE[:n], "y": torch.from_numpy(SOURCE.y[:n]), "target_x": X_TARGET[:n]}


def target_error(model: RaincoatNetwork) -> float:
    with torch.no_grad():
        return float(summed_l1_error(model.eval()(X_TARGET), X_TARGET))


# The network


@pytest.mark.parametrize("length", [32, 30, 31])
def test_identity_mixing_of_all_modes_gives_the_windows_back(length):
    encoder = FrequencyEncoder(C, length // 2 + 1, cosine=False)
    with torch.no_grad():
        encoder.mixing.zero_()
        for channel in range(C):
            encoder.mixing[channel, channel, :, 0] = 1
    x = torch.randn(4, C, length)
    assert torch.allclose(waves(encoder.spectrum(x), length), x, atol=1e-5)


@pytest.mark.parametrize("cosine", [True, False])
def test_spectrum_and_features_of_frequency_against_numpy(cosine):
    torch.manual_seed(3)
    encoder = FrequencyEncoder(C, M, cosine).eval()
    x = torch.randn(5, C, T)
    W = encoder.mixing.detach().double().numpy() @ np.array([1, 1j])
    spectra = np.fft.rfft(np.cos(x.numpy()) if cosine else x.numpy(), norm="ortho")
    X = np.zeros((5, C, M), dtype=complex)
    for f in range(M):
        X[:, :, f] = spectra[:, :, f] @ W[:, :, f]
    padded = np.pad(np.concatenate([np.abs(X), np.angle(X)], axis=2), ((0, 0), (0, 0), (1, 1)))
    kernel = encoder.summary.weight[0].detach().double().numpy()
    summed = np.array([[(kernel * row[:, f : f + 3]).sum() for f in range(2 * M)] for row in padded])
    e_F, found = encoder(x)
    assert np.allclose(found.detach(), X, atol=1e-5)
    assert np.allclose(e_F.detach(), np.maximum(summed, 0) / np.sqrt(1 + 1e-5), atol=1e-4)


def test_missing_modes_count_as_zero():
    X = torch.fft.rfft(torch.randn(2, C, T), norm="ortho")
    lowest = X.clone()
    lowest[..., M:] = 0
    assert torch.allclose(waves(X[..., :M], T), torch.fft.irfft(lowest, n=T, norm="ortho"), atol=1e-6)


def test_mixing_starts_as_published():
    torch.manual_seed(0)
    start = FrequencyEncoder(5, 64, cosine=True).mixing.detach() * 5**2
    assert start.min() >= 0
    assert start.max() < 1
    assert float(start.mean()) == pytest.approx(0.5, abs=0.02)


def test_phase_has_a_gradient_wherever_there_is_one():
    X = torch.tensor([1 + 1j, -2j, -3, 0, 1e-25 + 1e-25j, 1e-12], requires_grad=True)
    found = phase(X)
    found.sum().backward()
    assert np.allclose(found.detach(), [np.pi / 4, -np.pi / 2, np.pi, 0, 0, 0])
    assert torch.isfinite(torch.view_as_real(X.grad)).all()
    assert (X.grad[3:] == 0).all()
    assert (X.grad[:3] != 0).all()


@pytest.mark.parametrize("cosine", [True, False])
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_windows_without_any_motion_train_without_nan(cosine, value):
    objective = RaincoatObjective(new_model(cosine=cosine), Weighting(PUBLISHED), SETTINGS)
    still = torch.full((4, C, T), value)
    losses = objective({"x": still, "y": torch.arange(4) % K, "target_x": still})
    losses["loss"].backward()
    assert all(torch.isfinite(p.grad).all() for p in objective.parameters() if p.grad is not None)


def test_decoder_against_its_equation():
    torch.manual_seed(1)
    decoder, e_T, X = Decoder(D, C, T), torch.randn(4, D), torch.randn(4, C, M, dtype=torch.cfloat)

    def normalised(x: torch.Tensor) -> torch.Tensor:
        mean, variance = x.mean(dim=(0, 2)), x.var(dim=(0, 2), correction=0)
        return (x - mean[:, None]) / torch.sqrt(variance + 1e-5)[:, None]

    high = torch.einsum("bd,dtc->bct", e_T, decoder.expand.weight) + decoder.expand.bias
    expected = normalised(waves(X, T)) + F.relu(normalised(high))
    assert torch.allclose(decoder(e_T, X), expected, atol=1e-5)


def test_features_are_both_halves_on_the_unit_sphere():
    model = new_model().eval()
    z, logits, reconstruction = model(X_TARGET)
    halves = torch.cat([model.frequency(X_TARGET)[0], model.network.features(X_TARGET)], dim=1)
    assert torch.allclose(z.norm(dim=1), torch.ones(16))
    assert torch.allclose(z * halves.norm(dim=1, keepdim=True), halves, atol=1e-5)
    assert torch.allclose(logits, 10 * z @ model.head.weight.T, atol=1e-5)
    assert torch.equal(model.classify(X_TARGET), logits)
    assert reconstruction.shape == X_TARGET.shape


def test_the_shared_head_is_the_networks_own():
    model = new_model("shared").eval()
    assert torch.equal(model.classify(X_TARGET), model.network.classify(X_TARGET))


# The losses


def test_first_phase_is_the_published_sum():
    model = new_model()
    losses = RaincoatObjective(model, Weighting(PUBLISHED), SETTINGS)(batch())
    source, target = (model.train()(x[:8]) for x in (X_SOURCE, X_TARGET))
    error = (source.reconstruction - X_SOURCE[:8]).abs().sum() + (target.reconstruction - X_TARGET[:8]).abs().sum()
    cross_entropy = F.cross_entropy(source.logits, torch.from_numpy(SOURCE.y[:8]))
    transport = sinkhorn(source.z, target.z)
    assert losses["sinkhorn"].item() == pytest.approx(transport.item(), rel=1e-5)
    assert losses["reconstruction"].item() == pytest.approx(error.item(), rel=1e-5)
    assert losses["cross_entropy"].item() == pytest.approx(cross_entropy.item(), rel=1e-5)
    assert losses["loss"].item() == pytest.approx((cross_entropy + transport + 1e-4 * error).item(), rel=1e-5)


def test_losses_of_the_codes_are_recorded_under_other_names():
    objective = RaincoatObjective(new_model(), Weighting(PUBLISHED), replace(SETTINGS, codes=True))
    losses = objective(batch())
    own = losses["cross_entropy"] + losses["sinkhorn"] + 1e-4 * losses["reconstruction"]
    codes = losses["code"] + losses["code_reconstruction"]
    assert losses["loss"].item() == pytest.approx((own + codes).item(), rel=1e-5)


def test_debiased_transport_of_equal_batches_is_zero_and_never_less():
    def transport(x: torch.Tensor, debiased: bool) -> float:
        settings = replace(SETTINGS, debiased=debiased, epsilon=0.3)
        objective = RaincoatObjective(new_model(), Weighting(PUBLISHED), settings)
        return objective({**batch(), "target_x": x})["sinkhorn"].item()

    assert transport(X_SOURCE[:8], debiased=True) == pytest.approx(0, abs=1e-6)
    assert transport(X_SOURCE[:8], debiased=False) > 0.01
    assert 0 < transport(X_TARGET[:8], debiased=True) < transport(X_TARGET[:8], debiased=False)


def test_both_gradients_of_the_transport_are_available():
    moved = {}
    for gradient in ("unrolled", "envelope"):
        settings = replace(SETTINGS, transport_gradient=gradient)
        objective = RaincoatObjective(new_model(), Weighting(PUBLISHED), settings)
        objective(batch())["sinkhorn"].backward()
        moved[gradient] = objective.model.network.embed[0].weight.grad
    assert not torch.equal(moved["unrolled"], moved["envelope"])


@pytest.mark.parametrize("n_source", [1, 8])
def test_batches_of_one_row(n_source):
    rows = {**batch(n_source), "target_x": X_TARGET[: 9 - n_source]}
    for objective in (
        RaincoatObjective(new_model(), Weighting(PUBLISHED), SETTINGS),
        CorrectionObjective(new_model(), SETTINGS),
    ):
        objective(rows)["loss"].backward()
        assert all(torch.isfinite(p.grad).all() for p in objective.parameters() if p.grad is not None)


@pytest.mark.parametrize("head", ["linear", "shared"])
def test_every_free_parameter_has_a_gradient(head):
    """Else several devices would wait for it."""
    settings = replace(SETTINGS, head=head)
    objectives = (
        RaincoatObjective(new_model(head), Weighting(PUBLISHED), settings),
        CorrectionObjective(new_model(head), settings),
    )
    for objective in objectives:
        objective(batch())["loss"].backward()
        assert all((p.grad is not None) == p.requires_grad for p in objective.parameters())


@pytest.mark.parametrize(
    "change",
    [
        {"cosine": False},
        {"head": "shared"},
        {"epsilon": 0.1},
        {"debiased": True},
        {"transport_gradient": "envelope"},
        {"codes": True},
        {"reconstruction_weight": 1e-3},
    ],
    ids=str,
)
def test_a_checkpoint_belongs_to_every_setting_of_the_loss(change):
    def identity(settings: RaincoatSettings) -> str:
        weights = {**PUBLISHED, "reconstruction": settings.reconstruction_weight}
        return RaincoatObjective(new_model(), Weighting(weights), settings).identity()

    assert identity(replace(SETTINGS, **change)) != identity(SETTINGS)


# The method


@pytest.mark.parametrize("head", ["linear", "shared"])
def test_second_phase_lowers_the_targets_error_and_leaves_the_head_alone(head):
    # One look at the validation rows, after all epochs: the head is untrained, and would choose at random.
    method = new_method(head=head, adapt_lr=5e-3, max_epochs=10, check_every=10)
    model = new_model(head).train()
    with torch.no_grad():
        for _ in range(30):  # running statistics as a first phase leaves them; errors at rest depend on them
            model(X_SOURCE), model(X_TARGET)
    corrected = method.corrected(copy.deepcopy(model), TARGET.windows)
    before, after = model.state_dict(), corrected.state_dict()
    assert target_error(corrected) < 0.95 * target_error(model)
    heads = [name for name in before if name.startswith(("head.", "network.head."))]
    assert len(heads) == (5 if head == "linear" else 4)
    assert all(torch.equal(before[name], after[name]) for name in heads)
    moving = ("network.embed.0.weight", "frequency.mixing", "frequency.norm.running_mean", "decoder.expand.weight")
    assert not any(torch.equal(before[name], after[name]) for name in moving)
    assert all(parameter.requires_grad for parameter in corrected.parameters())


def test_without_a_weight_there_is_nothing_to_correct():
    method = new_method(reconstruction_weight=0.0, max_epochs=1)
    method.adapt(TARGET.windows)
    assert set(method.history) == {"align"}


@pytest.mark.parametrize(("costs", "winner"), [((1.0, 2.0), 0), ((2.0, 1.0), 1)])
def test_the_lower_source_cross_entropy_decides(costs, winner, monkeypatch):
    judged = []

    def cost(self: Raincoat, classifier: RaincoatNetwork) -> float:
        judged.append(classifier)
        return costs[len(judged) - 1]

    monkeypatch.setattr(Raincoat, "source_cross_entropy", cost)
    method = new_method(max_epochs=1)
    method.adapt(TARGET.windows)
    assert set(method.history) == {"align", "correct"}
    assert len(judged) == 2
    assert judged[0] is not judged[1]
    assert method.classifier is judged[winner]


def test_what_decides_is_the_mean_over_held_out_source_windows():
    method, model = new_method(), new_model().eval()
    with torch.no_grad():
        logits = model.classify(torch.from_numpy(VALIDATION.windows.values))
    expected = F.cross_entropy(logits, torch.from_numpy(VALIDATION.y)).item()
    assert method.source_cross_entropy(model) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("modes", "n_modes"), [(5, 5), (64, T // 2)])
def test_modes_are_limited_by_the_windows(modes, n_modes):
    method = new_method(modes=modes)
    objective = method.objective(method.source.untrained_network(), None, total_steps=1)
    assert objective.model.frequency.n_modes == n_modes


def test_published_values():
    published = {name: RaincoatSettings.for_dataset(name, "published") for name in ("ucihar", "wisdm", "hhar", "ptb")}
    found = {name: (s.adapt_lr, s.max_epochs, s.batch_size, s.modes) for name, s in published.items()}
    assert found == {
        "ucihar": (5e-4, 50, 32, 64),
        "wisdm": (1e-3, 50, 64, 64),
        "hhar": (1e-3, 40, 32, 32),
        "ptb": (5e-4, 200, 32, 64),
    }
    assert {s.weighting for s in published.values()} == {"fixed"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("modes", 0),
        ("head", "mlp"),
        ("cosine", "yes"),
        ("debiased", None),
        ("epsilon", 0.0),
        ("transport_gradient", "none"),
        ("reconstruction_weight", -1.0),
    ],
)
def test_impossible_settings_are_named(name, value):
    with refusal(name):
        replace(SETTINGS, **{name: value})
