"""Labels that a person gave: learnt from, voted with, never dropped; without them nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import TINY, make_waves
from hypothesis import given
from hypothesis import strategies as st

from transpl.markov import few_label_counts
from transpl.methods import TargetInfo, TransPLMethod, TransPLSettings
from transpl.nn import Execution
from transpl.nn.objectives import CERTAIN, most_confident
from transpl.windows import Labelled, as_windows

SETTINGS = TransPLSettings(**{name: value for name, value in TINY.items() if name not in ("device", "variant")})


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


def adapt(method, few_labels=None, mode="markov"):
    method.adapt_mode = mode
    method.adapt(TARGET.windows, TargetInfo(few_labels=few_labels))


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

    monkeypatch.setattr("transpl.methods.transpl.transpl_method.adapt_network", catch)
    adapt(method, FEW, "finetune")
    assert seen["y"][[3, 8]].tolist() == [0, 1]
    assert (seen["confidence"] == CERTAIN).nonzero().ravel().tolist() == [3, 8]
    assert method.label_record["initial"].confidence[[3, 8]].tolist() == [1.0, 1.0]


def test_both_modes_vote_with_the_counts_of_labels(method):
    codes = method.codes(TARGET.windows)
    expected = few_label_counts(codes[[3, 8]], np.array([0, 1]), method.state.class_counts)
    for mode in ("markov", "finetune"):
        adapt(method, mode=mode)
        without = method.pseudo_label(TARGET.windows).probabilities
        distances = method.channel_distances(method.state.target_counts)
        adapt(method, FEW, mode)
        assert method.state.labelled_counts == expected
        assert method.state.voting_counts == method.state.class_counts + expected
        found = method.pseudo_label(TARGET.windows).probabilities
        assert (found[[3, 8], [0, 1]] > without[[3, 8], [0, 1]]).all()
        assert np.array_equal(method.channel_distances(method.state.target_counts), distances)  # of the source alone


def test_the_next_adaptation_and_other_targets_know_nothing_of_the_labels(method):
    adapt(method)
    before = method.predict_proba(TARGET.windows)
    shot = method.one_shot_labels(TARGET.windows).probabilities
    adapt(method, FEW)
    assert np.array_equal(method.one_shot_labels(TARGET.windows).probabilities, shot)
    assert method.state.unadapted().labelled_counts is None
    adapt(method)
    assert np.array_equal(method.predict_proba(TARGET.windows), before)
