"""One battery for every registered witness, those on a network among them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_waves, refusal

from transpl.council import witnesses
from transpl.council.witnesses import ViewedWindows, Witness
from transpl.methods import network_witnesses

K = 3
NAMES = witnesses.names()
LEAST_RIGHT = 0.7  # of easy windows, where a third would be chance


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    """The networks' witnesses train for a moment."""
    monkeypatch.setattr(network_witnesses, "EPOCHS", 20)
    monkeypatch.setattr(network_witnesses, "VQ_EPOCHS", 10)


def sight(n: int = 36, seed: int = 0, **changes: object) -> tuple[ViewedWindows, np.ndarray]:
    X, y = make_waves(n, seed, n_classes=K, **changes)
    return ViewedWindows(X, np.full(n, X.shape[2])), y


SOURCE, Y = sight()
TARGET, TRUTH = sight(30, 1)


def taught(name: str, source: ViewedWindows = SOURCE, y: np.ndarray = Y, seed: int = 0, n_classes: int = K) -> Witness:
    witness = witnesses.find(name)(seed)
    witness.prepare(source)
    return witness.learn(witness.rows(source), y, n_classes)


def asked(witness: Witness, seen: ViewedWindows = TARGET) -> np.ndarray:
    p = witness.answer(witness.rows(seen))
    assert p.shape == (len(seen), witness.n_classes)
    assert p.dtype == np.float64
    assert (p > 0).all()
    assert np.allclose(p.sum(axis=1), 1)
    return p


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_probabilities_and_mostly_right(name):
    p = asked(taught(name))
    assert (p.argmax(axis=1) == TRUTH).mean() >= LEAST_RIGHT


@pytest.mark.parametrize("name", NAMES)
def test_windows_one_by_one_get_the_answers_that_they_get_together(name):
    witness = taught(name)
    one_by_one = [asked(witness, ViewedWindows(TARGET.values[[i]], TARGET.lengths[[i]]))[0] for i in range(5)]
    assert np.allclose(one_by_one, asked(witness)[:5], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_that_was_never_shown_is_next_to_impossible(name):
    rows = np.flatnonzero(Y != 1)
    p = asked(taught(name, ViewedWindows(SOURCE.values[rows], SOURCE.lengths[rows]), Y[rows]))
    assert p[:, 1].max() < 2e-3
    p = asked(taught(name, ViewedWindows(SOURCE.values[Y == 2], SOURCE.lengths[Y == 2]), Y[Y == 2]))
    assert (p.argmax(axis=1) == 2).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_answers(name):
    assert np.array_equal(asked(taught(name, seed=3)), asked(taught(name, seed=3)))


@pytest.mark.parametrize("name", NAMES)
def test_arrays_hold_all_that_was_learnt(name, tmp_path):
    witness = taught(name)
    arrays = witness.arrays()
    assert all(array.dtype.kind in "iufb" for array in arrays.values())
    np.savez(tmp_path / "arrays.npz", **arrays)
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as saved:
        again = witnesses.find(name)(0).restore(dict(saved), K)
    assert np.array_equal(asked(again), asked(witness))


@pytest.mark.parametrize("name", NAMES)
def test_adapting_to_rows_leaves_the_witness_as_it_was(name):
    witness = taught(name)
    before = asked(witness)
    adapted = witness.adapted_to(witness.rows(TARGET))
    assert np.array_equal(asked(witness), before)
    assert (adapted is witness) == (name != "conv")
    again = witnesses.find(name)(0).restore(adapted.arrays(), K)
    assert np.array_equal(asked(again), asked(adapted))
    asked(witness.adapted_to(witness.rows(TARGET)[:1]))


def test_batch_norm_statistics_of_the_target_take_a_gain_away():
    witness = taught("conv")
    louder = ViewedWindows(3 * TARGET.values + 1, TARGET.lengths)
    adapted = witness.adapted_to(witness.rows(louder))
    assert (asked(adapted, louder).argmax(axis=1) == TRUTH).mean() >= LEAST_RIGHT


@pytest.mark.parametrize("name", NAMES)
def test_answers_follow_when_classes_change_their_numbers(name):
    """Up to what is drawn: trees and networks draw other numbers."""
    order = np.array([2, 0, 1])  # the class that was order[k] is now k
    before, after = asked(taught(name)), asked(taught(name, y=np.argsort(order)[Y]))
    assert (after.argmax(axis=1) == before[:, order].argmax(axis=1)).mean() > 0.9
    assert np.abs(after - before[:, order]).mean() < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_windows_of_unequal_length(name):
    def ragged(whole: ViewedWindows) -> ViewedWindows:
        lengths = np.array([32 - 4 * (i % 3) for i in range(len(whole))])
        inside = np.arange(32) < lengths[:, None, None]
        return ViewedWindows(np.where(inside, whole.values, 0).astype(np.float32), lengths)

    witness = taught(name, ragged(SOURCE))
    p = asked(witness, ragged(TARGET))
    assert (p.argmax(axis=1) == TRUTH).mean() >= 0.5


@pytest.mark.parametrize("kind", ["constant channel", "two steps", "all alike", "two windows"])
@pytest.mark.parametrize("name", NAMES)
def test_odd_windows_get_answers(name, kind):
    source, y, target = SOURCE, Y, TARGET
    if kind == "two steps":
        source, target = (ViewedWindows(s.values[:, :, :2], np.full(len(s), 2)) for s in (SOURCE, TARGET))
    elif kind == "two windows":
        source, y = ViewedWindows(SOURCE.values[:2], SOURCE.lengths[:2]), Y[:2]
    else:
        source, target = (ViewedWindows(s.values.copy(), s.lengths) for s in (SOURCE, TARGET))
        for each in (source, target):
            each.values[:, slice(None) if kind == "all alike" else 1] = 0.0
    asked(taught(name, source, y), target)


def test_an_unknown_witness_is_refused():
    with refusal("witnesses", "linear"):
        witnesses.find("nobody")
