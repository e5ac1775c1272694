"""Means over pairs and seeds."""

from __future__ import annotations

import numpy as np
import pytest

from transpl.benchmark.measures import means_over_equal_seeds, spread_over_seeds


def test_spread_is_over_seeds_of_means_over_pairs():
    found = spread_over_seeds([(0, 10.0), (0, 20.0), (1, 30.0), (1, 50.0)])
    assert (found.mean, found.n) == (27.5, 4)
    assert found.std == pytest.approx(np.std([15.0, 40.0], ddof=1))
    assert spread_over_seeds([(0, 10.0), (0, 20.0)]).std is None


def test_a_row_that_lacks_a_seed_of_another_has_no_mean_there():
    scores = {
        "a": {"0-1": {0: 10.0, 1: 20.0}, "1-2": {0: 10.0, 1: 20.0}},
        "b": {"0-1": {0: 30.0, 1: 50.0}, "1-2": {1: 50.0}},
    }
    assert means_over_equal_seeds(scores) == {"a": {"0-1": 15.0, "1-2": 15.0}, "b": {"0-1": 40.0, "1-2": None}}


def test_as_many_but_other_seeds_are_not_the_same():
    assert means_over_equal_seeds({"a": {"0-1": {0: 1.0}}, "b": {"0-1": {1: 2.0}}}) == {
        "a": {"0-1": None},
        "b": {"0-1": None},
    }


def test_a_seed_that_no_row_has_is_not_required():
    assert means_over_equal_seeds({"a": {"0-1": {}}, "b": {"0-1": {}}}) == {"a": {"0-1": None}, "b": {"0-1": None}}
    assert means_over_equal_seeds({"a": {"0-1": {0: 1.0}}, "b": {"0-1": {0: 2.0}}})["b"] == {"0-1": 2.0}
