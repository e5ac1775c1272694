"""The estimate of accuracy without labels, and confidence that agrees with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from transpl.council import joining
from transpl.council.joining import estimate_accuracy, sharpness_for

K = 3
MODEST = settings(max_examples=30)


def log_odds(share: float) -> float:
    share = min(max(share, joining._EXTREME), 1 - joining._EXTREME)
    return math.log(share / (1 - share))


def by_hand(confidence: float, agreement: float, best_view: float) -> list[float]:
    odds = joining._INTERCEPT + joining._OWN_CONFIDENCE * log_odds(confidence)
    odds += joining._AGREEMENT * log_odds(agreement) + joining._BEST_VIEW * log_odds(best_view)
    accuracy, low, high = (1 / (1 + math.exp(-o)) for o in (odds, odds - joining._BELOW, odds + joining._ABOVE))
    return [accuracy, low if low > 0.02 else 0.0, high if high < 0.98 else 1.0]


def naming(named: list[list[int]], confidence: float = 0.7) -> np.ndarray:
    """Answers (S, n, K) with one confidence."""
    return np.where(np.eye(K)[np.array(named)] > 0, confidence, (1 - confidence) / (K - 1))


@st.composite
def answered(draw):
    S, n = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    views = draw(st.lists(st.sampled_from(["recorded", "shape"]), min_size=S, max_size=S))
    return rng.dirichlet(np.ones(K), (S, n)), views, rng.dirichlet(np.ones(K), n)


def test_by_hand():
    # pairs agree on 3, 1 and 1 of 4 windows; the council is named 3 and 4 of 4 times in "shape", 1 in "recorded"
    answers = naming([[0, 1, 2, 2], [0, 1, 2, 0], [1, 1, 1, 1]])
    q = np.eye(K)[[0, 1, 2, 0]]
    estimate = estimate_accuracy(answers, ["shape", "shape", "recorded"], q)
    assert list(estimate) == pytest.approx(by_hand(0.7, (3 + 1 + 1) / 12, (3 / 4 + 4 / 4) / 2))


def test_one_seat_agrees_with_the_council_alone():
    answers, q = naming([[0, 1, 2, 2]]), np.eye(K)[[0, 1, 2, 0]]
    assert list(estimate_accuracy(answers, ["shape"], q)) == pytest.approx(by_hand(0.7, 0.75, 0.75))


@MODEST
@given(answered())
def test_the_interval_holds_the_estimate(given):
    estimate = estimate_accuracy(*given)
    assert 0 <= estimate.low <= estimate.accuracy <= estimate.high <= 1
    assert all(type(number) is float for number in estimate)


def test_an_interval_near_an_end_reaches_it():
    everybody = estimate_accuracy(naming([[0] * 5] * 3, 0.5), ["shape"] * 3, np.eye(K)[[0] * 5])
    nobody = estimate_accuracy(naming([[0] * 5, [1] * 5], 1 - 1e-12), ["shape"] * 2, np.eye(K)[[2] * 5])
    assert nobody.low == 0 < nobody.accuracy < nobody.high < everybody.low < everybody.accuracy < everybody.high == 1


def test_seats_that_agree_more_are_likelier_to_be_right():
    label = np.arange(30) % K
    found = []
    for apart in (0, 5, 10, 15):
        second, third = label.copy(), label.copy()
        second[:apart], third[10 : 10 + apart] = (label[:apart] + 1) % K, (label[10 : 10 + apart] + 2) % K
        answers = naming([label.tolist(), second.tolist(), third.tolist()])
        found.append(estimate_accuracy(answers, ["shape", "shape", "recorded"], np.eye(K)[label]).accuracy)
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4


@MODEST
@given(answered(), st.randoms(use_true_random=False))
def test_neither_the_order_of_seats_nor_of_windows_nor_of_classes_matters(given, random):
    answers, views, q = given
    assume(len(views) > 1)
    seats, windows, classes = (random.sample(range(n), n) for n in answers.shape)
    mixed = answers[seats][:, windows][:, :, classes]
    other = estimate_accuracy(mixed, [views[s] for s in seats], q[windows][:, classes])
    assert list(other) == pytest.approx(list(estimate_accuracy(answers, views, q)))


# sharpness


@MODEST
@given(st.integers(0, 1000), st.floats(0, 1), st.floats(0.1, 30))
def test_confidence_becomes_what_is_wanted(seed, wanted, size):
    scores = np.random.default_rng(seed).normal(0, size, (20, K))
    sharpness = sharpness_for(scores, wanted)
    assert 0 < sharpness <= 1
    confidence = softmax(scores, axis=1).max(axis=1).mean()
    reached = softmax(sharpness * scores, axis=1)
    assert np.array_equal(reached.argmax(axis=1), scores.argmax(axis=1))
    if confidence <= wanted:
        assert sharpness == 1
    elif wanted > 0.36:  # less than a third cannot be
        assert reached.max(axis=1).mean() == pytest.approx(wanted, abs=1e-6)
    else:
        assert reached.max(axis=1).mean() < 0.37


def test_scores_without_an_opinion_stay_as_they_are():
    assert sharpness_for(np.zeros((5, K)), 0.9) == 1


def test_a_higher_goal_never_makes_less_sure():
    scores = np.random.default_rng(0).normal(0, 5, (50, K))
    found = [sharpness_for(scores, wanted) for wanted in np.linspace(0.2, 1, 9)]
    assert found == sorted(found)
