"""Means and covariances: those of numpy, whatever the shards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transpl.methods.moments import Moments
from transpl.windows import as_windows

X = np.random.default_rng(0).normal(3.0, [[1.0], [0.1], [40.0]], (12, 3, 20))


def same(a: Moments, b: Moments) -> bool:
    return a.count == b.count and np.allclose(a.mean, b.mean) and np.allclose(a.scatter, b.scatter)


def test_they_are_numpys():
    found = Moments.of_windows(as_windows(X))
    steps = X.astype(np.float32).swapaxes(1, 2).reshape(-1, 3).astype(np.float64)
    assert found.count == 240
    np.testing.assert_allclose(found.mean, steps.mean(axis=0))
    np.testing.assert_allclose(found.covariance, np.cov(steps.T, bias=True))


@given(st.permutations(range(12)), st.integers(1, 11))
def test_shards_merge_in_any_order(order, cut):
    windows = as_windows(X)
    first, second = (Moments.of_windows(windows[np.array(part)]) for part in (order[:cut], order[cut:]))
    assert same(first + second, Moments.of_windows(windows))
    assert same(first + second, second + first)
    assert same(first + Moments.empty(3), first)


def test_far_from_zero_nothing_is_cancelled():
    far = Moments.of_windows(as_windows(np.round(X) + 2**20))
    np.testing.assert_allclose(far.covariance, Moments.of_windows(as_windows(np.round(X))).covariance)


def test_what_is_behind_the_end_of_a_shorter_window_does_not_count():
    shorter = as_windows([X[0], X[1][:, :7]])
    alone = Moments.of_windows(as_windows(X[:1])) + Moments.of_windows(as_windows(X[1:2, :, :7]))
    assert same(Moments.of_windows(shorter), alone)


def test_nothing_has_no_spread():
    assert np.array_equal(Moments.empty(2).covariance, np.zeros((2, 2)))
    with pytest.raises(TypeError):
        Moments.empty(2) + 1  # type: ignore[operator]
