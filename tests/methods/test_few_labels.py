"""Labels that a person gave: counted, obeyed, never dropped; without them nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves
from hypothesis import given
from hypothesis import strategies as st
from transpl.methods.few_labels import counts_of_labels, obeying

from transpl.markov import TransitionCounts
from transpl.methods import Labelled, PseudoLabels, TransPLMethod, TransPLSettings
from transpl.training import Execution
from transpl.training.adaptation import CERTAIN, most_confident
from transpl.windows import as_windows

SETTINGS = TransPLSettings(**{name: value for name, value in TINY.items() if name != "device"})


def codes(n: int, seed: int, length: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, (n, 2, length))


# counts


def test_ten_labelled_windows_count_as_much_as_all_of_their_class():
    y = np.repeat([0, 1], [300, 12])
    source = TransitionCounts.from_codes(codes(312, 0), 4, y, 3)
    few, labels = codes(20, 1), np.repeat([0, 1], 10)
    found = counts_of_labels(few, labels, source).counts.sum(axis=(1, 2, 3))
    total = source.counts.sum(axis=(1, 2, 3))
    assert found[0] == total[0]  # 10 windows, 30 times each
    assert found[1] == 10 * 2 * 5  # 12 / 10 is 1: never less than once
    assert found[2] == 0


def test_counts_are_whole_multiples_of_what_was_seen():
    source = TransitionCounts.from_codes(codes(100, 0), 4, np.zeros(100, int), 1)
    few = codes(3, 1)
    few[1, :, 4:] = -1  # shorter: the mean of the three decides
    one = (3 * 10 - 4) / 3
    expected = TransitionCounts.from_codes(few, 4).counts * round(100 * 2 * 5 / (10 * one))
    assert np.array_equal(counts_of_labels(few, np.zeros(3, int), source).counts[0], expected)


def test_known_labels_take_the_place_of_pseudo_labels():
    p = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
    before = PseudoLabels.from_probabilities(p)
    after = obeying(before, np.array([1, -1, 0]))
    assert after.labels.tolist() == [1, 1, 0]
    assert after.confidence.tolist() == [1.0, 0.7, 1.0]
    assert after.probabilities.tolist() == [[0.0, 1.0], [0.3, 0.7], [1.0, 0.0]]
    assert before.labels.tolist() == [0, 1, 0]  # the caller's arrays stay


# training


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.05, 1), st.data())
def test_labels_that_are_certain_are_always_learnt_from(confidence, ratio, data):
    certain = data.draw(st.sets(st.integers(0, len(confidence) - 1)))
    values = torch.tensor(confidence)
    plain = most_confident(values, ratio)
    values[list(certain)] = CERTAIN
    trusted = most_confident(values, ratio)
    assert certain <= set(trusted.tolist())
    assert len(trusted) == max(len(plain), len(certain))


def labelled(n, seed, **shift):
    X, y = make_waves(n, seed, **shift)
    return Labelled(as_windows(X), y, 2)


TARGET = labelled(16, 2, gain=1.5, offset=0.3)
FEW = np.full(16, -1)
FEW[[3, 8]] = [0, 1]


@pytest.fixture(scope="module")
def method() -> TransPLMethod:
    made = TransPLMethod(SETTINGS, Execution(device="cpu"))
    made.fit_source(labelled(24, 0), labelled(12, 1))
    return made


def test_training_sees_the_labels_as_certain(method, monkeypatch):
    seen = {}

    def catch(network, source, target, *rest, **options):
        seen.update(target)
        return network, []

    monkeypatch.setattr("transpl.methods.transpl_learning.adapt_network", catch)
    method.adapt(TARGET.windows, few_labels=FEW)
    assert seen["y"][[3, 8]].tolist() == [0, 1]
    assert (seen["confidence"] == CERTAIN).nonzero().ravel().tolist() == [3, 8]
    assert method.label_record["initial"].confidence[[3, 8]].tolist() == [1.0, 1.0]


def test_both_modes_vote_with_the_counts_of_labels(method):
    codes = method.codes(TARGET.windows)
    expected = counts_of_labels(codes[[3, 8]], np.array([0, 1]), method.state.class_counts)
    for mode in ("markov", "finetune"):
        method.adapt(TARGET.windows, mode=mode)
        without = method.pseudo_label(TARGET.windows).probabilities
        distances = method.channel_distances(method.state.target_counts)
        method.adapt(TARGET.windows, mode=mode, few_labels=FEW)
        assert method.state.labelled_counts == expected
        assert method.state.voting_counts == method.state.class_counts + expected
        found = method.pseudo_label(TARGET.windows).probabilities
        assert (found[[3, 8], [0, 1]] > without[[3, 8], [0, 1]]).all()
        assert np.array_equal(method.channel_distances(method.state.target_counts), distances)  # of the source alone


def test_the_next_adaptation_and_other_targets_know_nothing_of_the_labels(method):
    method.adapt(TARGET.windows, mode="markov")
    before = method.predict_proba(TARGET.windows)
    shot = method.one_shot_labels(TARGET.windows).probabilities
    method.adapt(TARGET.windows, mode="markov", few_labels=FEW)
    assert np.array_equal(method.one_shot_labels(TARGET.windows).probabilities, shot)
    assert method.state.unadapted().labelled_counts is None
    method.adapt(TARGET.windows, mode="markov")
    assert np.array_equal(method.predict_proba(TARGET.windows), before)
