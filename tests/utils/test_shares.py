from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transpl._utils.shares import at_least, at_most


def test_shares_that_floats_miss():
    assert int(0.7 * 90) == 62
    assert at_most(0.7, 90) == 63
    assert math.ceil(0.07 * 100) == 8
    assert at_least(0.07, 100) == 7


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 10**9))
def test_fractions_are_exact(part, whole, n):
    part = min(part, whole)
    exact = Fraction(part, whole) * n
    assert at_most(part / whole, n) == math.floor(exact)
    assert at_least(part / whole, n) == math.ceil(exact)


@pytest.mark.parametrize("n", [0, 1, 7, 10**9])
def test_none_and_all(n):
    assert at_most(0.0, n) == at_least(0.0, n) == 0
    assert at_most(1.0, n) == at_least(1.0, n) == n


def test_what_was_right_stays():
    for n in range(2000):
        assert at_most(0.5, n) == int(0.5 * n)
        assert at_least(0.5, n) == math.ceil(0.5 * n)
        assert at_most(0.2, n) == int(0.2 * n)
