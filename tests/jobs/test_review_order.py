"""Which windows to check first: by hand on small tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transpl.jobs.review_order import check_order, missing_class_windows, with_expected_shares


@given(st.integers(2, 5), st.integers(2, 30), st.integers(0, 99))
def test_scaled_probabilities_have_the_expected_shares(K, n, seed):
    rng = np.random.default_rng(seed)
    p, shares = rng.dirichlet([1] * K, size=n) * 0.98 + 0.02 / K, rng.dirichlet([5] * K)
    u = with_expected_shares(p, shares)
    assert np.allclose(u.sum(axis=1), 1)
    assert np.allclose(u.mean(axis=0), shares, atol=0.02)
    ratio = u / p  # one factor per class, up to a factor per window
    relative = ratio / ratio[:, :1]
    assert np.allclose(relative, relative[:1], rtol=1e-6)


def test_with_the_shares_that_they_have_windows_are_ranked_by_confidence():
    p = np.array([[0.9, 0.1], [0.4, 0.6], [0.1, 0.9], [0.6, 0.4], [0.8, 0.2], [0.2, 0.8]])
    order = check_order(p, np.array([0.5, 0.5]))
    assert p.max(axis=1)[order].tolist() == sorted(p.max(axis=1))


def test_a_label_that_was_given_too_often_is_more_doubtful_than_an_equally_sure_one():
    p = np.array([[0.8, 0.1, 0.1]] * 6 + [[0.1, 0.8, 0.1]] * 2 + [[0.1, 0.1, 0.8]] * 2)
    order = check_order(p, np.array([0.2, 0.4, 0.4]))
    assert set(order[:6].tolist()) == set(range(6))


def test_windows_of_a_class_that_no_window_got_lead():
    p = np.array([[0.5, 0.45, 0.05], [0.6, 0.3, 0.1], [0.9, 0.08, 0.02], [0.3, 0.69, 0.01]])
    shares = np.array([0.4, 0.3, 0.3])
    assert missing_class_windows(p, shares) == {2: [1, 0]}
    assert set(check_order(p, shares)[:2].tolist()) == {0, 1}
    assert missing_class_windows(p, np.array([0.6, 0.4, 0.0])) == {}  # a class that nobody expects is not missed


@pytest.mark.parametrize("n", [1, 3])
def test_certain_windows_and_a_single_class_make_no_trouble(n):
    assert sorted(check_order(np.eye(3)[:n], np.full(3, 1 / 3)).tolist()) == list(range(n))
    assert check_order(np.ones((n, 1)), np.ones(1)).tolist() == list(range(n))
