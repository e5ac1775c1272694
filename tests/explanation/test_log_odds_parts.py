"""Parts of a lead in log odds: exact sums, by loops, and finite also where a class is impossible."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_explanation import CLASSES, made_up

from transpl.explanation.log_odds_parts import LEAST, _log_slope

PRIOR = np.array([0.2, 0.3, 0.5])
BEYOND = [("product", None), ("product", 1.5), ("mean", 1.5)]
each_vote = pytest.mark.parametrize(("vote", "network"), BEYOND)


def lead(e, window, label, against):
    y = {name: max(p, LEAST) for name, p in zip(CLASSES, e.probabilities[window], strict=True)}
    return math.log(y[label]) - math.log(y[against])


def adds_up(e, window, label, against):
    found = e.contributions(window, label, against)
    near = {"rel": 1e-9, "abs": 1e-9}
    assert found.scale == "log odds"
    assert found.margin == pytest.approx(lead(e, window, label, against), **near)
    assert found.channels.sum() + found.classifier == pytest.approx(found.margin, **near)
    np.testing.assert_allclose(found.transitions.sum(axis=1) + found.prior, found.channels, rtol=1e-9, atol=1e-9)
    assert np.isfinite(found.transitions).all()
    return found


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    beyond=st.sampled_from(BEYOND),
    sharpness=st.sampled_from([1e-3, 1.0, 8.0, 90.0, 1e4]),
    network=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
    prior=st.sampled_from([None, PRIOR, np.array([0.5, 0.0, 0.5])]),
    absent=st.sampled_from([None, 1, 2]),
    ragged=st.booleans(),
    temper=st.sampled_from([1.0, 0.4, 0.01]),
)
def test_parts_add_up_to_the_margin(seed, beyond, sharpness, network, prior, absent, ragged, temper):
    vote, votes_too = beyond
    e = made_up(
        seed,
        n=2,
        vote=vote,
        sharpness=sharpness,
        network=None if votes_too is None else network,
        prior=prior,
        absent=absent,
        ragged=ragged,
        temper=temper,
    )
    for label, against in permutations(CLASSES, 2):
        adds_up(e, 0, label, against)
    assert e.contributions(1).margin >= 0


@pytest.mark.parametrize("network", [None, 1.5])
def test_the_product_is_a_sum_of_terms(network):
    e = made_up(vote="product", sharpness=6.0, network=network, prior=PRIOR, prior_temperature=2.0, ragged=True)
    c = 1 if network is None else 1 / 2
    for window in range(3):
        found = adds_up(e, window, "walk", "sit")
        for d, share in enumerate(e.shares):
            s = [code for code in e.codes[window, d].tolist() if code >= 0]
            for t, (i, j) in enumerate(pairwise(s)):
                odds = e.log_probabilities[2, d, i, j] - e.log_probabilities[0, d, i, j]
                assert found.transitions[d, t] == pytest.approx(c * 6.0 * share * odds / (len(s) - 1), abs=1e-12)
            assert found.prior[d] == pytest.approx(c * share * math.log(0.5 / 0.2) / 2.0, abs=1e-12)
        if network is not None:
            q = e.opinions[window]
            assert found.classifier == pytest.approx(c * 1.5 * math.log(q[2] / q[0]), abs=1e-12)
        else:
            assert found.classifier == 0


@pytest.mark.parametrize(("vote", "network"), [("mean", None), ("mean", 1.5), ("product", 1.5)])
def test_tempering_shrinks_all_parts_alike(vote, network):
    sure, tempered = (made_up(vote=vote, network=network, prior=PRIOR, temper=temper) for temper in (0.8, 0.2))
    one, other = adds_up(sure, 0, "walk", "sit"), adds_up(tempered, 0, "walk", "sit")
    for name in ("transitions", "prior", "channels", "margin", "classifier"):
        np.testing.assert_allclose(getattr(other, name), np.asarray(getattr(one, name)) / 4, atol=1e-13)
    assert np.array_equal(sure.labels, tempered.labels)


def test_the_means_part_is_shared_out_by_what_channels_add_to_it():
    e = made_up(network=1.5, prior=PRIOR)
    found, v = adds_up(e, 0, "walk", "sit"), e.code_probabilities[0]
    votes, q = e.votes[0], e.opinions[0]
    whole = (math.log(v[2]) - math.log(v[0])) / 2
    np.testing.assert_allclose(found.channels, whole * (votes[:, 2] - votes[:, 0]) / (v[2] - v[0]), atol=1e-12)
    assert found.classifier == pytest.approx(1.5 * math.log(q[2] / q[0]) / 2, abs=1e-12)
    plain = made_up(prior=PRIOR).contributions(0, "walk", "sit")
    np.testing.assert_allclose(found.transitions / found.channels[:, None], plain.transitions / plain.channels[:, None])


@each_vote
def test_the_other_way_round_every_part_changes_sign(vote, network):
    e = made_up(vote=vote, network=network, prior=PRIOR)
    one, other = e.contributions(0, "sit", "walk"), e.contributions(0, "walk", "sit")
    for name in ("log_odds", "transitions", "prior", "channels", "margin", "classifier"):
        np.testing.assert_allclose(getattr(one, name), -np.asarray(getattr(other, name)), atol=1e-13)


@each_vote
def test_a_class_that_the_source_never_showed_leaves_nothing_to_the_transitions(vote, network):
    e = made_up(vote=vote, network=network, absent=1)
    found = adds_up(e, 0, e.labels[0], "stand")
    assert found.margin == pytest.approx(math.log(e.probabilities[0].max()) - math.log(LEAST))
    assert (found.log_odds == math.inf).all()
    assert not found.transitions.any()
    np.testing.assert_array_equal(found.prior, found.channels)
    assert found.classifier == 0


def test_channels_without_a_share_have_no_part_of_an_impossible_class():
    shares = np.array([0.75, 0.0, 0.0, 0.25])
    e = made_up(vote="product", absent=1, shares=shares)
    found = adds_up(e, 0, e.labels[0], "stand")
    np.testing.assert_allclose(found.channels, shares * found.margin)


@each_vote
def test_two_impossible_classes_are_alike(vote, network):
    table = made_up().log_probabilities.copy()
    table[1] = -np.inf
    e = made_up(vote=vote, network=network, log_probabilities=table, prior=np.array([0.5, 0.5, 0.0]))
    found = adds_up(e, 0, "stand", "walk")
    assert found.margin == 0
    assert not found.channels.any()
    assert found.classifier == 0


@each_vote
def test_classes_with_the_same_matrix_differ_by_prior_and_classifier_alone(vote, network):
    table = made_up().log_probabilities.copy()
    table[1] = table[0]
    found = made_up(vote=vote, network=network, log_probabilities=table).contributions(0, "sit", "stand")
    assert not found.channels.any()
    assert found.margin == found.classifier
    found = made_up(vote=vote, network=network, log_probabilities=table, prior=PRIOR).contributions(0, "sit", "stand")
    assert not found.transitions.any()
    assert (found.prior < 0).all()


def test_a_class_too_unlikely_for_a_float_is_the_transitions_work():
    """Sharp scores put 0 into y where no class is impossible."""
    e = made_up(vote="product", sharpness=1e4)
    found = e.contributions(0)
    assert e.probabilities[0].min() == 0
    assert found.margin == pytest.approx(-math.log(LEAST))
    np.testing.assert_allclose(found.prior, 0, atol=1e-12)
    assert found.transitions.sum() == pytest.approx(found.margin)


def test_opposed_witnesses_of_the_same_strength_keep_their_parts():
    """A lead near 0 is no reason for parts near 0."""
    e = made_up(vote="product", network=1.0)
    v = e.code_probabilities
    e = made_up(vote="product", network=1.0, opinions=(1 / v) / (1 / v).sum(axis=1, keepdims=True))
    found = e.contributions(0, "walk", "sit")
    assert found.margin == pytest.approx(0, abs=1e-12)
    assert found.classifier == pytest.approx(-math.log(v[0, 2] / v[0, 0]) / 2)
    assert abs(found.classifier) > 1e-3


@pytest.mark.parametrize("temper", [0.01, 1e-3])
@pytest.mark.parametrize("network", [None, 1.5, 1e4])
@pytest.mark.parametrize("vote", ["mean", "product"])
def test_what_is_too_unlikely_for_a_float_before_it_is_tempered_adds_up(vote, network, temper):
    e = made_up(vote=vote, sharpness=1e4, network=network, prior=PRIOR, temper=temper)
    for window in range(len(e)):
        for label, against in permutations(CLASSES, 2):
            adds_up(e, window, label, against)


def test_the_mean_of_channels_too_unlikely_for_a_float_is_shared_out_by_its_transitions():
    """All channels are certain of the third class; between the others they are as they were, and so are the parts."""
    table = made_up().log_probabilities.copy()
    plain = made_up(log_probabilities=table, temper=0.01)
    table[2] += 1000
    e = made_up(log_probabilities=table, temper=0.01)
    assert not e.code_probabilities[0, :2].any()
    found = adds_up(e, 0, "stand", "sit")
    np.testing.assert_allclose(found.log_odds, plain.contributions(0, "stand", "sit").log_odds)
    np.testing.assert_allclose(found.transitions.sum(axis=1), found.channels, atol=1e-12)
    assert found.channels.all()


def test_slope_of_the_logarithm():
    assert _log_slope(0.0) == 1
    assert _log_slope(1e-15) == pytest.approx(1, rel=1e-14)
    assert _log_slope(1e4) == 1e4
    for a, b in ((0.2, 0.7), (0.7, 0.2), (0.5, 0.4)):
        assert _log_slope(math.log(a / b)) == pytest.approx(math.log(a / b) / (a - b) * max(a, b), rel=1e-13)


@each_vote
def test_evidence_tells_the_scale_and_the_classifiers_part(vote, network):
    e = made_up(vote=vote, network=network)
    found, parts = e.top_evidence(2), e.contributions(2)
    assert (found.scale, found.classifier, found.margin) == ("log odds", parts.classifier, parts.margin)
    channels = (*found.channels_for, *found.channels_against)
    assert sum(channel.contribution for channel in channels) + found.classifier == pytest.approx(found.margin)


def test_the_plain_mean_stays_on_the_scale_of_probabilities():
    e = made_up(sharpness=4.0)
    found = e.contributions(0)
    assert (found.scale, found.classifier, e.top_evidence(0).scale) == ("probability", 0.0, "probability")
    y = np.sort(e.probabilities[0])
    assert found.margin == pytest.approx(y[-1] - y[-2])
    np.testing.assert_allclose(found.transitions.sum(axis=1), found.channels, atol=1e-12)
