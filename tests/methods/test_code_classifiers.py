"""Networks of code sequences, and the methods that label by them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal
from sklearn.linear_model import LogisticRegression

from transpl.methods import Labelled, SourceModel
from transpl.methods.code_classifiers import (
    ENCODINGS,
    CodeClassifierSettings,
    CodeCNN,
    CodeCNNMethod,
    CodeGRU,
    CodeGRUMethod,
    CodeLSTM,
    CodeLSTMMethod,
    CodeObjective,
    CodeShape,
    code_probabilities,
    train_code_network,
)
from transpl.nn import Execution, LoopSettings, loop, seeded_module
from transpl.nn.inference import class_probabilities, coarse_codes
from transpl.windows import as_windows

CPU = Execution(device="cpu")
NETWORKS = [CodeCNN, CodeLSTM, CodeGRU]
METHODS = [CodeCNNMethod, CodeLSTMMethod, CodeGRUMethod]
SETTINGS = CodeClassifierSettings(
    **{name: value for name, value in TINY.items() if name not in ("device", "variant")},
    check_every=1,
    classifier_epochs=3,
)

each_network = pytest.mark.parametrize("network", NETWORKS)
each_encoding = pytest.mark.parametrize("encoding", ENCODINGS)


def random_codes(n: int, D: int, N: int, seed: int = 0, n_codes: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n_codes, (n, D, N)).astype(np.int8)


def mixed(network: type, shape: CodeShape):
    """A network whose head tells classes apart, as a trained one does."""
    made = seeded_module(0, network, shape)
    with torch.no_grad():
        made.head.weight.copy_(torch.linspace(-1, 1, made.head.weight.numel()).view_as(made.head.weight))
    return made.eval()


@each_network
@each_encoding
@pytest.mark.parametrize("D", [3, 9, 15])
def test_shapes(network, encoding, D):
    shape = CodeShape(D, 8, 6, encoding)
    logits = seeded_module(0, network, shape)(torch.from_numpy(random_codes(5, D, 16)))
    assert logits.shape == (5, 6)
    assert shape.n_features == D * (8 if encoding == "one-hot" else 16)


def test_one_hot_by_hand():
    codes = torch.tensor([[[0, 2, -1], [1, 1, -1]]])
    x, real = CodeGRU(CodeShape(2, 3, 2)).encode(codes)
    assert x.tolist() == [[[1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0]]]
    assert real.tolist() == [[True, True, False]]


@each_network
def test_before_training_no_class_is_ahead(network):
    logits = seeded_module(0, network, CodeShape(2, 8, 4)).eval()(torch.from_numpy(random_codes(3, 2, 6)))
    assert not logits.any()


@each_network
@each_encoding
def test_padding_changes_nothing(network, encoding):
    """Nor do other rows of a batch, longer ones among them."""
    made = mixed(network, CodeShape(3, 8, 4, encoding))
    short, long = random_codes(1, 3, 5), random_codes(1, 3, 9, seed=1)
    padded = np.pad(short, ((0, 0), (0, 0), (0, 4)), constant_values=-1)
    alone = code_probabilities(made, short)
    together = code_probabilities(made, np.concatenate([padded, long]))
    assert np.allclose(together, np.concatenate([alone, code_probabilities(made, long)]), atol=1e-6)
    assert not np.allclose(alone, together[1], atol=1e-3)


def test_padding_is_not_in_the_statistics_of_the_batch():
    made = mixed(CodeCNN, CodeShape(3, 8, 4)).train()
    made.dropout.p = 0.0
    codes = random_codes(4, 3, 5)
    padded = np.pad(codes, ((0, 0), (0, 0), (0, 3)), constant_values=-1)
    assert torch.allclose(made(torch.from_numpy(codes)), made(torch.from_numpy(padded)), atol=1e-5)


@each_network
@pytest.mark.parametrize("N", [1, 2])
def test_a_batch_of_one_row(network, N):
    objective = CodeObjective(seeded_module(0, network, CodeShape(2, 8, 3))).train()
    loss = objective({"x": torch.from_numpy(random_codes(1, 2, N)), "y": torch.tensor([1])})["loss"]
    loss.backward()
    assert loss.item() == pytest.approx(np.log(3))
    assert all(torch.isfinite(p.grad).all() for p in objective.parameters() if p.grad is not None)


def walks(n: int, seed: int, D: int = 3, N: int = 16, n_codes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Class 0 walks through the codes upwards, class 1 is the same backwards: no count of codes tells them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    steps = np.where(rng.random((n, D, N)) < 0.75, 1, rng.integers(0, n_codes, (n, D, N)))
    codes = (rng.integers(0, n_codes, (n, D, 1)) + steps.cumsum(axis=2)) % n_codes
    codes[y == 1] = codes[y == 1, :, ::-1]
    return codes.astype(np.int8), y


def rows(codes: np.ndarray, y: np.ndarray) -> dict[str, torch.Tensor]:
    return {"x": torch.from_numpy(codes), "y": torch.from_numpy(y)}


@pytest.mark.parametrize(
    ("network", "encoding"), [*((network, "one-hot") for network in NETWORKS), (CodeGRU, "embedding")]
)
def test_order_is_learnt(network, encoding):
    settings = LoopSettings(learning_rate=4e-3, max_epochs=10, keep="last", check_every=5)
    made = seeded_module(1, network, CodeShape(3, 4, 2, encoding))
    made, _ = train_code_network(made, rows(*walks(192, 0)), rows(*walks(32, 1)), settings, CPU, seed=0)
    codes, y = walks(400, 2)
    assert (code_probabilities(made, codes).argmax(axis=1) == y).mean() > 0.95


def test_a_bag_of_codes_stays_at_chance():
    (codes, y), (others, truth) = walks(192, 0), walks(400, 2)
    bag = LogisticRegression().fit(histograms(codes), y)
    assert abs(bag.score(histograms(others), truth) - 0.5) < 0.1


def histograms(codes: np.ndarray) -> np.ndarray:
    return (codes[..., None] == np.arange(4)).mean(axis=2).reshape(len(codes), -1)


@each_network
def test_deterministic(network):
    def once() -> np.ndarray:
        made = seeded_module(1, network, CodeShape(3, 4, 2))
        settings = LoopSettings(max_epochs=2, check_every=1)
        made, _ = train_code_network(made, rows(*walks(40, 0)), rows(*walks(8, 1)), settings, CPU, seed=0)
        return code_probabilities(made, walks(10, 2)[0])

    assert np.array_equal(once(), once())


def test_identity_names_what_decides_the_loss():
    made = {
        CodeObjective(network(CodeShape(2, 4, 2, encoding))).identity()
        for network in NETWORKS
        for encoding in ENCODINGS
    }
    assert len(made) == 6


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, **shift)
    return Labelled(as_windows(X), y, 2)


@pytest.fixture(scope="module")
def source() -> SourceModel:
    return SourceModel(labelled(24, 0), labelled(12, 1), SETTINGS.source(), CPU)


@pytest.mark.parametrize("Method", METHODS)
def test_labels_are_the_code_networks_opinion_of_the_source_models_codes(Method, source):
    method = Method(SETTINGS, CPU)
    method.start_from(source)
    target = labelled(9, 2, gain=1.5).windows
    expected = code_probabilities(method.code_network, coarse_codes(source.network, target))
    before = method.pseudo_label(target)
    assert np.array_equal(before.probabilities, expected)
    method.adapt(target)
    for found in (method.pseudo_label(target), method.label_record["initial"]):
        assert np.array_equal(found.probabilities, expected), "the source model's labels, also after adaptation"
    assert np.array_equal(method.predict_proba(target), class_probabilities(method.classifier, target))
    assert list(method.history) == ["source", "codes", "adapt"]


def test_the_code_network_is_trained_once_for_all_targets(source, monkeypatch):
    phases, run_epoch = Counter(), loop._Loop.run_epoch

    def counted(self):
        phases[self.run.phase] += self.epoch == 0
        return run_epoch(self)

    source.train()
    monkeypatch.setattr(loop._Loop, "run_epoch", counted)
    method = CodeCNNMethod(SETTINGS, CPU)
    method.start_from(source)
    for seed in (2, 3):
        method.adapt(labelled(9, seed).windows)
    assert phases == {"codes": 1, "adapt": 2}


def test_another_source_model_gets_another_code_network(source):
    other = SourceModel(labelled(24, 8), labelled(12, 9), SETTINGS.source(), CPU)
    method = CodeCNNMethod(SETTINGS, CPU)
    method.start_from(source)
    first = method.code_network
    method.start_from(other)
    assert method.code_network is not first


@pytest.mark.parametrize(
    ("name", "value"),
    [("encoding", "binary"), ("relabel", "each epoch"), ("classifier_lr", 0.0), ("classifier_epochs", 0)],
)
def test_settings_that_cannot_be_used_are_refused(name, value):
    with refusal(name):
        CodeClassifierSettings(**{name: value})
