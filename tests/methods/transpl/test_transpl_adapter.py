"""The paper's method behind the estimator: made of parameters, streamed to, saved."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import TINY, make_waves, refusal

from transpl import TransPL
from transpl.methods import TargetInfo, TransPLMethod
from transpl.windows import Labelled, as_windows

X, _ = make_waves(16, 2, gain=1.5)
TARGET = as_windows(X)


def params(**changes):
    return TransPL(**{**TINY, "max_epochs": 1, **changes}).plain_params(0)


def adapt(method, mode="markov", info=None):
    method.adapt_mode = mode
    method.adapt(TARGET, info)


def labelled(n, seed):
    waves, y = make_waves(n, seed)
    return Labelled(as_windows(waves), y, 2)


@pytest.fixture(scope="module")
def fitted() -> TransPLMethod:
    made = TransPLMethod.from_params(params())
    made.fit_source(labelled(24, 0), labelled(12, 1))
    return made


@pytest.fixture
def method(fitted):
    return fitted.unadapted()


def test_parameters_become_settings_and_execution():
    made = TransPLMethod.from_params(params(sigma=0.3, n_threads=2, checkpoint_dir="here", verbose=True))
    assert (made.settings.sigma, made.settings.smoothing, made.settings.random_state) == (0.3, "floor", 0)
    assert (made.execution.n_threads, str(made.execution.checkpoint_dir), made.execution.progress) == (2, "here", True)
    with refusal("sigma"):
        TransPLMethod.from_params(params(sigma=0))


def test_other_parameters_are_taken_unless_the_network_would_be_another(method):
    assert method.with_params(params(sigma=0.7)).settings.sigma == 0.7
    assert method.settings.sigma == 0.2
    with refusal("set_params", "Call fit again"):
        method.with_params(params(width=32))


def test_the_source_model_is_decided_by_its_own_settings_alone():
    of = {name: TransPLMethod.from_params(params(**{name: 0.4})).source_settings() for name in ("sigma", "dropout")}
    assert of["sigma"] == TransPLMethod.from_params(params()).source_settings() != of["dropout"]


def test_a_target_that_comes_in_parts_is_labelled_as_one_that_is_adapted_to(method):
    stream = method.new_target()
    parts = [stream.encode(part) for _, part in TARGET.chunks(5)]
    shape, dtype = stream.row(*X.shape[1:])
    assert {part.shape[1:] for part in parts} == {shape}
    assert {part.dtype for part in parts} == {dtype}
    counts = stream.adapt(parts, len(TARGET))
    assert method.target_counts is None, "the model itself stays as it is"
    adapt(method)
    assert counts == method.target_counts
    found = np.concatenate([stream.probabilities(part) for part in parts])
    assert np.array_equal(found, method.predict_proba(TARGET))


def test_what_is_unadapted_goes_its_own_way(method):
    before = method.fingerprint()
    other = method.unadapted()
    adapt(other)
    assert (method.mode, other.mode) == ("source", "markov")
    assert method.fingerprint() == before == other.unadapted().fingerprint() != other.fingerprint()


@pytest.mark.parametrize("mode", ["markov", "finetune"])
def test_facts_and_arrays_are_all_that_was_learnt(method, mode):
    few = np.full(len(TARGET), -1)
    few[3] = 1
    adapt(method, mode, TargetInfo(np.array([0.4, 0.6]), few))
    again = TransPLMethod.from_params(params())
    again.restore(json.loads(json.dumps(method.facts())), method.arrays())
    assert again.fingerprint() == method.fingerprint()
    assert np.array_equal(again.predict_proba(TARGET), method.predict_proba(TARGET))
    assert again.class_counts == method.class_counts != again.source_counts
    assert (again.history, again.seconds, again.mode) == (method.history, method.seconds, mode)
    assert not again.holds_source_rows


def test_what_lacks_a_part_cannot_be_restored(method):
    arrays = method.arrays()
    del arrays["counts.class"]
    with pytest.raises(KeyError):
        TransPLMethod.from_params(params()).restore(method.facts(), arrays)
