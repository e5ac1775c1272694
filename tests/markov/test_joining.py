"""Votes by hand, by loops, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given
from hypothesis import strategies as st

from transpl.markov import label_probabilities
from transpl.markov.joining import (
    common_opinion,
    joined_channels,
    joined_vote,
    log_joined_channels,
    log_joined_with_classifier,
    log_opinion,
)

L = np.log(np.array([[[0.5, 0.25], [0.1, 0.4]]]))  # one window, two channels, two classes
HALVES = np.array([0.5, 0.5])


def random_case(seed, n=5, D=3, K=4):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(D))
    return rng.normal(size=(n, D, K)) - 2, shares, rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), n)


def with_classifier(v, q, sharpness=1.0):
    with np.errstate(divide="ignore"):
        return np.exp(log_joined_with_classifier(np.log(v), q, sharpness))


def test_product_by_hand():
    """sqrt(0.5 * 0.1) against sqrt(0.25 * 0.4): 0.223607 and 0.316228."""
    v = joined_channels(L, HALVES, vote="product")
    assert v == pytest.approx(np.array([[0.414214, 0.585786]]), abs=1e-6)
    twice = joined_channels(L, HALVES, vote="product", sharpness=2)
    assert twice == pytest.approx(np.array([[1 / 3, 2 / 3]]))
    weighed = joined_channels(L, HALVES, np.array([0.8, 0.2]), vote="product", sharpness=2)
    assert weighed == pytest.approx(np.array([[2 / 3, 1 / 3]]))


def test_mean_is_the_papers_vote():
    scores, shares, prior, _ = random_case(0)
    for about_prior in ((), (prior, 2.0)):
        assert joined_channels(scores, shares, *about_prior) == pytest.approx(
            label_probabilities(scores, shares, *about_prior)
        )


def test_classifier_by_hand():
    """sqrt(0.6 * 0.9) against sqrt(0.4 * 0.1): 0.734847 and 0.2."""
    y = with_classifier(np.array([[0.6, 0.4]]), np.array([[0.9, 0.1]]))
    assert y == pytest.approx(np.array([[0.786061, 0.213939]]), abs=1e-6)


def test_a_classifier_without_opinion_changes_no_label_and_halves_the_log_odds():
    v = np.array([[0.7, 0.2, 0.1]])
    y = with_classifier(v, np.full((1, 3), 1 / 3), sharpness=7)
    assert np.log(y[0, 0] / y[0, 1]) == pytest.approx(np.log(3.5) / 2)


@given(st.integers(0, 30), st.sampled_from(["mean", "product"]), st.floats(0.1, 20))
def test_rows_sum_to_one_and_order_does_not_matter(seed, vote, a):
    scores, shares, prior, q = random_case(seed)
    channels, classes = np.array([2, 0, 1]), np.array([3, 1, 0, 2])
    y = with_classifier(joined_channels(scores, shares, prior, 1.0, vote, a), q, a)
    turned = joined_channels(scores[:, channels][:, :, classes], shares[channels], prior[classes], 1.0, vote, a)
    assert y.sum(axis=1) == pytest.approx(np.ones(5))
    assert with_classifier(turned, q[:, classes], a) == pytest.approx(y[:, classes])


@pytest.mark.parametrize("vote", ["mean", "product"])
def test_an_impossible_class_gets_exactly_zero(vote):
    scores, _, _, q = random_case(1)
    scores[:, :, 2] = -np.inf
    v = joined_channels(scores, np.array([0.0, 0.3, 0.7]), vote=vote, sharpness=3.0)
    assert (v[:, 2] == 0).all()
    assert (with_classifier(v, q)[:, 2] == 0).all()
    assert np.isfinite(v).all()


@pytest.mark.parametrize("vote", ["mean", "product"])
def test_logarithms_are_those_of_the_probabilities_and_infinite_for_impossible_classes_alone(vote):
    scores, shares, prior, _ = random_case(2)
    scores[:, :, 2] = -np.inf
    for shared, a in ((shares, 3.0), (np.array([0.0, 0.3, 0.7]), 3.0), (shares, 1e4)):
        log_v = log_joined_channels(scores, shared, prior, 2.0, vote, a)
        np.testing.assert_allclose(np.exp(log_v), joined_channels(scores, shared, prior, 2.0, vote, a), atol=1e-15)
        assert np.array_equal(np.isneginf(log_v), np.isneginf(scores[:, 0]))


@pytest.mark.parametrize("vote", ["mean", "product"])
def test_what_is_too_small_for_a_float_is_not_lost_to_the_power_after_it(vote):
    """Odds of exp(1000), two channels of one mind: the power 1/500 makes them exp(2)."""
    scores = np.array([[[0.0, -1000.0]] * 2])
    assert joined_channels(scores, HALVES, vote=vote)[0, 1] == 0
    y = joined_vote(scores, HALVES, vote=vote, temper=1 / 500)
    assert np.log(y[0, 0] / y[0, 1]) == pytest.approx(2)
    halved = joined_vote(scores, HALVES, vote=vote, temper=1 / 500, opinion=HALVES[None], classifier_sharpness=1.0)
    assert np.log(halved[0, 0] / halved[0, 1]) == pytest.approx(1)


def test_a_sharp_classifier_outvotes_codes_that_are_too_sure_for_a_float():
    opinion = np.array([[1e-12, 1 - 1e-12]])
    y = joined_vote(np.array([[[0.0, -1000.0]]]), np.ones(1), opinion=opinion, classifier_sharpness=40.0)
    assert y[0, 1] > 0.99


def test_an_opinion_of_zero_is_not_a_veto():
    assert np.isfinite(log_opinion(np.array([[1.0, 0.0]]))).all()
    y = with_classifier(np.array([[1e-9, 1 - 1e-9]]), np.array([[1.0, 0.0]]))
    assert 0 < y[0, 1] < 1


def test_a_common_opinion_is_the_geometric_mean_of_the_views():
    q = np.array([[[0.8, 0.2], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]])
    found = common_opinion(q)
    assert found[0] == pytest.approx([2 / 3, 1 / 3])  # sqrt(0.4) to sqrt(0.1)
    assert found[1, 0] == pytest.approx(1.0, abs=1e-5)
    assert np.isfinite(np.log(found)).all()
    assert np.array_equal(common_opinion(q[:, :1]), q[:, 0])


def test_a_classifier_that_is_to_vote_must_have_an_opinion():
    with refusal("opinion", "the classifier's"):
        joined_vote(np.zeros((1, 1, 2)), np.ones(1), classifier_sharpness=1.0)
