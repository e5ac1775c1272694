"""Permutation entropy against published and hand values, a loop, and what must not change it."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given
from hypothesis import strategies as st

from transpl.report.figures.code_entropy import ordinal_patterns, permutation_entropy

PUBLISHED = [4, 7, 9, 10, 6, 11, 3]  # Bandt and Pompe 2002

orders, delays = st.integers(2, 5), st.integers(1, 3)
series = st.lists(st.integers(-20, 20), min_size=13, max_size=60)


def by_loops(x, order, delay):
    """In bits, counted one stretch after the other; an earlier value is the smaller of equals."""
    stretches = [[x[t + i * delay] for i in range(order)] for t in range(len(x) - (order - 1) * delay)]
    counts = Counter(tuple(sorted(range(order), key=lambda i, s=s: (s[i], i))) for s in stretches)
    return sum(-n / len(stretches) * math.log2(n / len(stretches)) for n in counts.values())


@pytest.mark.parametrize(("order", "bits"), [(2, 0.918), (3, 1.522)])
def test_published_example(order, bits):
    assert permutation_entropy(PUBLISHED, order, normalised=False) == pytest.approx(bits, abs=5e-4)
    normalised = permutation_entropy(PUBLISHED, order)
    assert normalised == pytest.approx(bits / math.log2(math.factorial(order)), abs=5e-4)


@pytest.mark.parametrize("x", [[1, 2, 3, 4, 5, 9], [9, 5, 4, 3, 2, 1], [0.5] * 8])
def test_one_order_alone_has_no_entropy(x):
    found = permutation_entropy(x)
    assert found == 0
    assert math.copysign(1, found) == 1


def test_alternating_series_have_two_orders():
    # up-down-up and down-up-down: of 3! = 6 orders two occur, equally often, so 1 bit of log2(6)
    assert permutation_entropy([0, 1] * 5) == pytest.approx(1 / math.log2(6))
    assert permutation_entropy([0, 1] * 5, order=2, delay=2) == 0


def test_all_orders_equally_often_are_the_most():
    x = [1, 3, 2, 4]  # rises, falls and rises
    assert permutation_entropy([*x, 0], order=2) == pytest.approx(1)
    every_order = [0, 1, 5, 4, 3, 7, 2, 6]
    assert sorted(map(tuple, ordinal_patterns(every_order, 3).tolist())) == [
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (1, 2, 0),
        (2, 0, 1),
        (2, 1, 0),
    ]
    assert permutation_entropy(every_order) == pytest.approx(1)


def test_of_equal_values_the_earlier_is_the_smaller():
    assert ordinal_patterns([5, 5, 1], 3).tolist() == [[2, 0, 1]]


@given(series, orders, delays)
def test_equals_a_loop(x, order, delay):
    assert permutation_entropy(x, order, delay, normalised=False) == pytest.approx(by_loops(x, order, delay))


@given(series, orders, delays)
def test_no_monotone_change_of_scale_matters(x, order, delay):
    values = np.array(x, dtype=np.float64)
    found = permutation_entropy(values, order, delay)
    assert 0 <= found <= 1 + 1e-12
    for changed in (3 * values - 7, values**3, np.exp(values / 10)):
        assert permutation_entropy(changed, order, delay) == found


@given(st.permutations(range(15)), orders)
def test_upside_down_and_backwards_is_as_varied(x, order):
    found = permutation_entropy(x, order)
    assert permutation_entropy(-np.array(x), order) == pytest.approx(found)
    assert permutation_entropy(x[::-1], order) == pytest.approx(found)


def test_series_that_cannot_be_ordered_are_errors():
    with refusal("x", "at least 5 values for order 3 and delay 2"):
        permutation_entropy([1, 2, 3, 4], 3, 2)
    with refusal("x", "shape"):
        permutation_entropy([[1, 2, 3]], 2)
    with refusal("x", "finite"):
        permutation_entropy([1, math.nan, 3], 2)
    with refusal("order"):
        permutation_entropy([1, 2, 3], 1)
    with refusal("delay"):
        permutation_entropy([1, 2, 3], 2, 0)
