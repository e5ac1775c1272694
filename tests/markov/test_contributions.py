"""Every part of the margin is exact, in ordinary and in extreme cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_explanation import CLASSES, made_up

PRIOR = np.array([0.2, 0.3, 0.5])


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 1000), ragged=st.booleans(), codes=st.booleans(), known=st.booleans())
def test_parts_add_up_to_the_margin(seed, ragged, codes, known):
    e = made_up(seed, n=3, ragged=ragged, length="codes" if codes else "transitions", prior=PRIOR if known else None)
    for window in range(3):
        found = e.contributions(window)
        a, b = (CLASSES.tolist().index(label) for label in (found.label, found.against))
        y = e.probabilities[window]
        assert found.margin == pytest.approx(y[a] - y[b], abs=1e-12)
        assert found.channels.sum() == pytest.approx(found.margin, abs=1e-12)
        np.testing.assert_allclose(found.transitions.sum(axis=1) + found.prior, found.channels, atol=1e-12)
        votes = e.votes[window]
        np.testing.assert_allclose(found.channels, votes[:, a] - votes[:, b], atol=1e-12)
        if not known:
            np.testing.assert_allclose(found.prior, 0, atol=1e-12)


def test_one_transition_carries_its_channel_alone():
    """Two patches, one transition: its log-odds are log p(j|i,a) - log p(j|i,b), and all of the margin is its own."""
    e = made_up(codes=np.tile(np.array([1, 2], np.int8), (12, 4, 1)), prior=None)
    found, table = e.contributions(0, "walk", "sit"), e.log_probabilities
    for d in range(4):
        assert found.log_odds[d, 0] == table[2, d, 1, 2] - table[0, d, 1, 2]
        assert found.transitions[d, 0] == pytest.approx(e.votes[0, d, 2] - e.votes[0, d, 0], abs=1e-14)


def test_transitions_share_their_channel_in_proportion_to_their_log_odds():
    found = made_up().contributions(0)
    for odds, parts in zip(found.log_odds, found.transitions, strict=True):
        np.testing.assert_allclose(parts, odds / odds.sum() * parts.sum(), atol=1e-12)


def test_the_other_way_round_every_part_changes_sign():
    e = made_up(prior=PRIOR)
    one, other = e.contributions(0, "sit", "walk"), e.contributions(0, "walk", "sit")
    for name in ("log_odds", "transitions", "prior", "channels", "margin"):
        np.testing.assert_allclose(getattr(one, name), -np.asarray(getattr(other, name)), atol=1e-15)


def test_classes_with_the_same_matrix_differ_in_nothing():
    table = made_up().log_probabilities.copy()
    table[1] = table[0]
    found = made_up(log_probabilities=table).contributions(0, "sit", "stand")
    assert found.margin == 0
    assert not found.transitions.any()
    with_prior = made_up(log_probabilities=table, prior=PRIOR).contributions(0, "sit", "stand")
    np.testing.assert_allclose(with_prior.prior, with_prior.channels)
    assert with_prior.margin < 0


def test_nearly_equal_classes_have_finite_exact_parts():
    table = made_up().log_probabilities.copy()
    table[1] = table[0] + 1e-13
    found = made_up(log_probabilities=table).contributions(0, "sit", "stand")
    np.testing.assert_allclose(found.transitions.sum(axis=1), found.channels, atol=1e-15)
    assert np.isfinite(found.transitions).all()


def test_a_class_that_the_source_never_showed_leaves_nothing_to_the_transitions():
    e = made_up(absent=1)
    found = e.contributions(0, e.labels[0], "stand")
    assert (found.log_odds == math.inf).all()
    assert not found.transitions.any()
    np.testing.assert_array_equal(found.prior, found.channels)
    assert e.contributions(0).against != "stand"


def test_two_classes_that_the_source_never_showed_are_alike():
    table = made_up().log_probabilities.copy()
    table[1:] = -np.inf
    found = made_up(log_probabilities=table).contributions(0, "stand", "walk")
    assert not found.log_odds.any()
    assert not found.transitions.any()
    assert found.margin == 0


def test_a_class_of_prior_zero_is_decided_by_the_prior():
    found = made_up(prior=np.array([0.5, 0.0, 0.5])).contributions(0, "sit", "stand")
    assert np.isfinite(found.log_odds).all()
    assert not found.transitions.any()
    np.testing.assert_array_equal(found.prior, found.channels)


def test_rivals_are_the_label_and_the_runner_up():
    e = made_up()
    for window in range(len(e)):
        found, order = e.contributions(window), np.argsort(-e.probabilities[window])
        assert [found.label, found.against] == CLASSES[order[:2]].tolist()
        assert found.margin >= 0


def test_a_label_that_does_not_exist_is_refused():
    with refusal("label", "'swim'"):
        made_up().contributions(0, "swim")
    with refusal("against", "'swim'"):
        made_up().contributions(0, against="swim")
    with refusal("against", "another class"):
        made_up().contributions(0, "sit", "sit")
