"""The log probability of every transition: by loops, and as the parts of the likelihood."""

import math
from itertools import product

import numpy as np
import pytest
from conftest import refusal

from transpl.markov import TransitionCounts, log_likelihoods, transition_log_probabilities


def case(seed, *, ragged=False, absent=False):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (7, 2, 6))
    if ragged:
        codes[1, :, 4:] = codes[5, :, 1:] = -1
    counts = TransitionCounts.from_codes(rng.integers(0, 4, (20, 2, 6)), 4, rng.integers(0, 3, 20), 4 if absent else 3)
    return codes, counts


@pytest.mark.parametrize("smoothing", ["floor", "additive"])
def test_each_transition_is_looked_up(smoothing):
    codes, counts = case(0, ragged=True)
    p, found = counts.probabilities(smoothing), transition_log_probabilities(codes, counts, smoothing)
    assert found.shape == (7, 2, 5, 3)
    for w, d, t, k in product(range(7), range(2), range(5), range(3)):
        i, j = codes[w, d, t], codes[w, d, t + 1]
        expected = math.log(p[k, d, i, j]) if i >= 0 and j >= 0 else 0.0
        assert found[w, d, t, k] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("length", "more"), [("transitions", 0), ("codes", 1)])
def test_sums_over_transitions_are_the_likelihoods(length, more):
    codes, counts = case(1, ragged=True)
    transitions = ((codes[..., :-1] >= 0) & (codes[..., 1:] >= 0)).sum(axis=-1)
    sums = transition_log_probabilities(codes, counts).sum(axis=2)
    found = log_likelihoods(codes, counts, length=length)
    np.testing.assert_allclose(found * np.maximum(transitions + more, 1)[..., None], sums, atol=1e-12)


def test_a_class_without_source_rows_explains_no_transition():
    codes, counts = case(2, absent=True)
    assert (transition_log_probabilities(codes, counts)[..., 3] == -np.inf).all()
    assert np.isfinite(transition_log_probabilities(codes, counts)[..., :3]).all()


def test_a_class_without_source_rows_is_impossible_even_without_a_transition():
    _, counts = case(2, absent=True)
    assert log_likelihoods(np.zeros((1, 2, 1), int), counts)[0, 0].tolist() == [0.0, 0.0, 0.0, -np.inf]


def test_counts_that_do_not_belong_to_the_codes_are_refused():
    codes, counts = case(3)
    with refusal("class_counts"):
        transition_log_probabilities(codes, counts.pooled())
    with refusal("class_counts"):
        transition_log_probabilities(codes[:, :1], counts)
