"""The shared source model: trained once, when it is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves, refusal

from transpl.methods import Labelled, SourceModel
from transpl.methods.method_settings import SourceSettings
from transpl.methods.no_adapt import NoAdapt, NoAdaptSettings
from transpl.methods.softmax import Softmax, SoftmaxSettings
from transpl.nn import Execution, loop
from transpl.nn.objectives import SourceLoss
from transpl.windows import as_windows

SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "variant")}
CPU = Execution(device="cpu")


def labelled(n: int, seed: int, **changes: int) -> Labelled:
    X, y = make_waves(n, seed, **changes)
    return Labelled(as_windows(X), y, 2)


@pytest.fixture
def model() -> SourceModel:
    return SourceModel(labelled(24, 0), labelled(12, 1), SourceSettings(**SHAPE), CPU)


def test_it_is_trained_once_for_all_who_ask(model, monkeypatch):
    calls = []
    from transpl.methods import source_model

    train_network = source_model.train_network
    monkeypatch.setattr(source_model, "train_network", lambda *a, **k: calls.append(1) or train_network(*a, **k))
    for method in (NoAdapt(NoAdaptSettings(**SHAPE), CPU), Softmax(SoftmaxSettings(**SHAPE), CPU)):
        method.start_from(model)
        method.predict_proba(model.source.windows)
    assert calls == [1]
    assert model.seconds > 0
    assert len(model.history) == 4


def test_the_untrained_network_is_the_one_that_training_starts_from(model):
    first, second = model.untrained_network(), model.untrained_network()
    assert torch.equal(first.embed[0].weight, second.embed[0].weight)
    assert not torch.equal(first.embed[0].weight, model.network.embed[0].weight)


def test_another_loss_is_another_model(model):
    assert model.with_loss(SourceLoss()) is model
    plain = model.with_loss(SourceLoss(codes=False))
    assert "code" in model.history[0]
    assert "code" not in plain.history[0]


def test_no_adapt_can_be_trained_by_cross_entropy_alone(model):
    method = NoAdapt(NoAdaptSettings(**SHAPE, codes=False), CPU)
    method.fit_source(model.source, model.validation)
    assert "code" not in method.history["source"][0]


def test_methods_with_other_source_settings_are_refused(model):
    with refusal("model", "source settings"):
        NoAdapt(NoAdaptSettings(**{**SHAPE, "width": 8}), CPU).start_from(model)


def test_validation_must_match_the_source():
    with refusal("validation", "2 channels and 2 classes"):
        SourceModel(labelled(8, 0), labelled(8, 1, channels=3), SourceSettings(**SHAPE), CPU)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.zeros(3, int), "shape"),
        (np.array([0, 1, 2, 0]), "class indices"),
        (np.array([0, -1, 1, 0]), "class indices"),
        (np.array([0.0, 1.0, 0.0, 1.0]), "class indices"),
    ],
)
def test_wrong_labels_are_refused(y, expected):
    with refusal("y", expected):
        Labelled(as_windows(np.zeros((4, 1, 8))), y, 2)


def test_bare_arrays_are_refused(model):
    with refusal("windows", "as_windows"):
        Labelled(np.zeros((4, 1, 8)), np.zeros(4, int), 2)
    method = NoAdapt(NoAdaptSettings(**SHAPE), CPU)
    method.start_from(model)
    with refusal("target", "as_windows"):
        method.adapt(np.zeros((4, 2, 32)))


def test_a_target_that_is_the_source_is_classified_like_it(model):
    method = NoAdapt(NoAdaptSettings(**SHAPE | {"max_epochs": 40, "source_lr": 5e-3}), CPU)
    method.fit_source(model.source, model.validation)
    before = {name: tensor.clone() for name, tensor in method.source.network.state_dict().items()}
    method.adapt(labelled(10, 5).windows)
    held_out = model.validation
    assert (method.predict_proba(held_out.windows).argmax(axis=1) == held_out.y).mean() > 0.9
    assert all(torch.equal(before[name], tensor) for name, tensor in method.source.network.state_dict().items())


def test_the_time_of_a_training_that_was_interrupted_is_that_of_all_its_parts(model, tmp_path, monkeypatch):
    interrupted = replace(model, execution=Execution(device="cpu", checkpoint_dir=tmp_path))
    run_epoch = loop._Loop.run_epoch

    def at_most_two(each):
        if each.epoch == 2:
            raise KeyboardInterrupt
        return run_epoch(each)

    monkeypatch.setattr(loop._Loop, "run_epoch", at_most_two)
    with pytest.raises(KeyboardInterrupt):
        interrupted.train()
    monkeypatch.undo()
    (path,) = tmp_path.glob("*.ckpt")
    state = torch.load(path, weights_only=True)
    assert 0 < state["seconds"] < 100
    torch.save({**state, "seconds": 1000.0}, path)
    interrupted.train()
    model.train()
    assert 1000 < interrupted.seconds < 1100
    assert model.seconds < 100
    assert interrupted.history == model.history
