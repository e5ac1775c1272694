"""Every part of the margin is exact, in ordinary and in extreme cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_explanation import CLASSES, made_up

from transpl.markov.contributions import transition_parts

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


# A channel's margin is shared out among its transitions, also where they cancel each other out


def parts_of_one_channel(scores, prior=0.0, share=1.0):
    """Of two classes, whose probabilities follow from the odds."""
    scores = np.array([scores])
    p = 1 / (1 + np.exp(-scores.sum() - prior))
    a, b = np.array([share * p]), np.array([share * (1 - p)])
    return transition_parts(a + b, scores, prior)[0].tolist(), float(a[0] - b[0])


def test_by_hand():
    # Odds of log 2 + log 2 are 4 to 1: p = 4/5 against 1/5, of which each transition has half.
    transitions, channel = parts_of_one_channel([np.log(2), np.log(2)], share=0.5)
    assert channel == pytest.approx(0.3)
    assert transitions == pytest.approx([0.15, 0.15])
    # The prior takes one of the two back: log 2 in all, p = 2/3, and each transition has what all have together.
    transitions, channel = parts_of_one_channel([np.log(2), np.log(2)], prior=-np.log(2))
    assert channel == pytest.approx(1 / 3)
    assert transitions == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.parametrize("nearly", [0.0, 1e-12, -1e-9])
def test_transitions_that_cancel_each_other_out_have_the_limit_of_their_parts(nearly):
    # tanh(o / 2) / o -> 1/2: half of each score, and nothing in all.
    transitions, channel = parts_of_one_channel([1.0 + nearly, -1.0], share=0.6)
    assert channel == pytest.approx(0.0, abs=1e-9)
    assert transitions == pytest.approx([0.3, -0.3], abs=1e-9)


def test_infinite_odds_leave_nothing_to_the_transitions():
    assert transition_parts(np.array([1.0]), np.array([[np.inf, 1.0]]), 0.0).tolist() == [[0.0, 0.0]]


# What is named as evidence is what decided


def test_transitions_are_named_in_the_order_of_their_part():
    e = made_up()
    found, parts = e.top_evidence(2, n=4), e.contributions(2)
    flat = np.sort(parts.transitions.ravel())
    assert [t.contribution for t in found.transitions_for] == flat[::-1][:4].tolist()
    assert [t.contribution for t in found.transitions_against] == flat[:4].tolist()
    assert found.margin == parts.margin
    assert (found.window, found.label, found.against) == (102, parts.label, parts.against)
    assert found.probability == pytest.approx(e.probabilities[2].max())


def test_a_transition_says_where_it_is_and_what_it_is():
    e = made_up()
    parts = e.contributions(2)
    for t in e.top_evidence(2).transitions_for:
        d = e.channel_names.index(t.channel)
        assert (t.from_code, t.to_code) == tuple(e.codes[2, d, t.position : t.position + 2])
        assert (t.first_step, t.last_step) == (8 * t.position, 8 * t.position + 15)
        assert t.contribution == parts.transitions[d, t.position]
        assert t.log_odds == parts.log_odds[d, t.position]


def test_channels_on_both_sides_add_up_to_the_margin():
    e = made_up()
    for window in range(len(e)):
        found = e.top_evidence(window)
        channels = (*found.channels_for, *found.channels_against)
        assert sum(channel.contribution for channel in channels) == pytest.approx(found.margin, abs=1e-12)
        assert all(channel.contribution > 0 for channel in found.channels_for)
        assert all(channel.contribution < 0 for channel in found.channels_against)
        for channel in channels:
            assert channel.contribution == pytest.approx(channel.share * (channel.for_label - channel.for_against))


def test_patches_behind_the_end_are_no_evidence():
    e = made_up(ragged=True)
    for window in range(len(e)):
        end = int((e.codes[window, 0] >= 0).sum())
        found = e.top_evidence(window, n=100)
        assert all(t.position < end - 1 for t in (*found.transitions_for, *found.transitions_against))


def test_tables_have_a_row_per_name_and_a_side():
    found = made_up().top_evidence(0, n=2)
    table, channels = found.table(), found.channel_table()
    assert table["side"].tolist() == ["for", "for", "against", "against"]
    assert table.columns.tolist() == [
        "side",
        "channel",
        "position",
        "first_step",
        "last_step",
        "from_code",
        "to_code",
        "log_odds",
        "contribution",
    ]
    assert channels["contribution"].sum() == pytest.approx(found.margin)
    assert len(channels) == 4


def test_an_empty_table_keeps_its_columns():
    table = made_up().top_evidence(0, n=0).table()
    assert len(table) == 0
    assert "log_odds" in table


def test_of_equal_parts_the_first_is_named_first():
    e = made_up(codes=np.zeros((12, 4, 5), np.int8), weights=(1.0, 1.0, 1.0, 1.0))
    table = np.tile(e.log_probabilities[:, :1], (1, 4, 1, 1))
    found = made_up(codes=e.codes, log_probabilities=table, weights=(1.0, 1.0, 1.0, 1.0)).top_evidence(0, n=5)
    named = [(t.channel, t.position) for t in found.transitions_for]
    assert named == [("acc_x", 0), ("acc_x", 1), ("acc_x", 2), ("acc_x", 3), ("acc_y", 0)]


def test_a_number_of_transitions_that_is_none_is_refused():
    with refusal("n"):
        made_up().top_evidence(0, n=-1)
