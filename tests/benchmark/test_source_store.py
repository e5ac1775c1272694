"""Source networks are trained once, by the first process that needs them, and trained again if damaged."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import pytest
import torch
from conftest import make_waves, refusal
from tiny_bench import CHANGES, half_files

from transpl._utils.errors import UnreadableFile
from transpl._utils.hashing import hash_file
from transpl.benchmark import source_store
from transpl.benchmark.source_store import stored_trainer
from transpl.methods import Labelled, SourceModel
from transpl.methods.method_settings import SourceSettings
from transpl.methods.source_model import train_source
from transpl.nn import Execution
from transpl.nn.objectives import SourceLoss, SourceObjective
from transpl.windows import as_windows


@pytest.fixture
def trainings(monkeypatch):
    """Every training, as it starts."""
    started = []

    def counted(model):
        started.append(model)
        time.sleep(0.2)
        return train_source(model)

    monkeypatch.setattr(source_store, "train_source", counted)
    return started


def waves(n, seed):
    X, y = make_waves(n, seed)
    return Labelled(as_windows(X), y, 2)


def source_model(**changes):
    settings = SourceSettings(**{**CHANGES, "check_every": 1, **changes})
    return SourceModel(waves(30, 0), waves(12, 1), settings, Execution("cpu", n_threads=1))


def stored(folder, domain="0", data="abc", **changes):
    return replace(source_model(**changes), trainer=stored_trainer(folder, data, domain))


def assert_equal_weights(one, other):
    one, other = one.network.state_dict(), other.network.state_dict()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_stored_network_is_the_one_that_was_trained(tmp_path, trainings):
    plain, first, second = source_model(), stored(tmp_path), stored(tmp_path)
    for model in (first, second):
        assert_equal_weights(model, plain)
        assert model.history == plain.history
        assert model.network.training is False
    assert first.seconds == second.seconds > 0
    assert len(trainings) == 1


def test_two_who_want_it_at_once_train_it_once(tmp_path, trainings):
    models = [stored(tmp_path) for _ in range(3)]
    threads = [threading.Thread(target=model.train) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(trainings) == 1
    assert_equal_weights(models[0], models[2])


@pytest.mark.parametrize("other", [{"domain": "1"}, {"data": "xyz"}, {"width": 8}, {"random_state": 1}])
def test_another_domain_data_set_setting_or_seed_is_another_network(tmp_path, trainings, other):
    stored(tmp_path).train()
    stored(tmp_path, **other).train()
    assert len(trainings) == 2


def test_another_loss_is_another_network(tmp_path, trainings):
    model = stored(tmp_path)
    model.train()
    model.with_loss(SourceLoss(label_smoothing=0.1)).train()
    assert len(trainings) == 2


def damage_weights(home):
    weights = home / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])


def lose_weights(home):
    (home / "weights.safetensors").unlink()


def damage_record(home):
    (home / "source.json").write_text('{"sha256"')


def empty_record(home):
    (home / "source.json").write_text("[]")


def exchange_weights(home):
    """As if they were of another network; the hash is made to fit."""
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, home / "weights.safetensors")
    record = json.loads((home / "source.json").read_text())
    record["sha256"] = hash_file(home / "weights.safetensors")
    (home / "source.json").write_text(json.dumps(record))


@pytest.mark.parametrize("harm", [damage_weights, lose_weights, damage_record, empty_record, exchange_weights])
def test_a_damaged_network_is_named_and_trained_again(tmp_path, trainings, harm):
    first = stored(tmp_path)
    first.train()
    (home,) = (path for path in tmp_path.iterdir() if path.is_dir())
    harm(home)
    second = stored(tmp_path)
    with pytest.warns(UserWarning, match=str(home)) as caught:
        second.train()
    assert "\n" not in str(caught[0].message)
    assert len(trainings) == 2
    assert_equal_weights(first, second)
    stored(tmp_path).train()
    assert len(trainings) == 2


def test_an_interrupted_training_goes_on_where_it_was(tmp_path, monkeypatch):
    """And gives the same network, to the last bit."""
    forward, steps = SourceObjective.forward, []

    def counted(self, batch, last=None):
        if self.training:
            steps.append(1)
            if last is not None and len(steps) > last:
                raise KeyboardInterrupt
        return forward(self, batch)

    epochs = {"max_epochs": 6, "source_patience": 6}
    plain = source_model(**epochs)
    monkeypatch.setattr(SourceObjective, "forward", counted)
    plain.train()
    every = len(steps)
    steps.clear()
    with monkeypatch.context() as patch:
        patch.setattr(SourceObjective, "forward", lambda self, batch: counted(self, batch, last=every // 2))
        with pytest.raises(KeyboardInterrupt):
            replace(source_model(**epochs), trainer=stored_trainer(tmp_path, "abc", "0")).train()
    steps.clear()
    again = replace(source_model(**epochs), trainer=stored_trainer(tmp_path, "abc", "0"))
    again.train()
    assert len(steps) <= every // 2 + 1
    assert_equal_weights(again, plain)
    assert again.history == plain.history


def test_what_a_killed_process_left_is_removed(tmp_path):
    stored(tmp_path).train()
    (home,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (home / "checkpoints").mkdir()
    (home / ".weights.safetensors.abcd1234.part.safetensors").touch()
    stored(tmp_path).train()
    assert half_files(tmp_path) == []
    assert not (home / "checkpoints").exists()


def test_a_store_that_must_not_train_reads_what_is_there_and_refuses_the_rest(tmp_path, trainings):
    never_trains = source_store.load_only(tmp_path, "abc", "0")
    with refusal(tmp_path, "no trained source network of domain 0", UnreadableFile):
        replace(source_model(), trainer=never_trains).train()
    assert trainings == []
    first = stored(tmp_path)
    first.train()
    assert_equal_weights(first, replace(source_model(), trainer=never_trains))
    assert len(trainings) == 1
