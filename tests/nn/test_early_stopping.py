import pytest
import torch

from transpl.nn.early_stopping import EarlyStopping


def test_stops_after_patience_checks_without_gain_and_keeps_the_best():
    stopping = EarlyStopping(patience=2)
    for epoch, loss in enumerate([3.0, 2.0, 2.5, 2.0]):
        assert not stopping.exhausted
        stopping.update(loss, {"w": torch.tensor([float(epoch)])})
    assert stopping.exhausted
    assert stopping.best == 2.0
    assert stopping.best_weights["w"].item() == 1.0


def test_a_gain_resets_the_count():
    stopping = EarlyStopping(patience=2)
    for loss in [3.0, 4.0, 2.0, 4.0]:
        stopping.update(loss, {})
    assert not stopping.exhausted


def test_a_training_of_fixed_length_never_stops_and_keeps_the_last():
    stopping = EarlyStopping(patience=1, keep="last")
    for epoch, loss in enumerate([1.0, 2.0, 3.0]):
        stopping.update(loss, {"w": torch.tensor([float(epoch)])})
    assert not stopping.exhausted
    assert stopping.best_weights["w"].item() == 2.0


def test_kept_weights_do_not_follow_later_training():
    stopping, weight = EarlyStopping(patience=1), torch.zeros(1)
    stopping.update(1.0, {"w": weight})
    weight += 5
    assert stopping.best_weights["w"].item() == 0.0


def test_state_round_trip():
    stopping = EarlyStopping(patience=3)
    stopping.update(1.5, {"w": torch.ones(2)})
    stopping.update(2.5, {"w": torch.zeros(2)})
    again = EarlyStopping.from_state(stopping.state())
    assert again.best == pytest.approx(1.5)
    assert again.checks_without_gain == 1
    assert torch.equal(again.best_weights["w"], torch.ones(2))
