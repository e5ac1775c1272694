"""Which windows are shown."""

from __future__ import annotations

import numpy as np
import pytest

from transpl.markov import windows_to_explain
from transpl.markov.explanation import equal_quotas
from transpl.windows import evenly_spaced


def test_few_rows_stand_for_many():
    assert evenly_spaced(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert evenly_spaced(10, 4).tolist() == [0, 3, 6, 9]
    assert evenly_spaced(10, 0).tolist() == evenly_spaced(0, 4).tolist() == []


def test_a_few_are_all_shown():
    assert windows_to_explain(np.full((400, 2), 0.5)).tolist() == list(range(400))


def test_half_are_the_least_confident_and_the_rest_are_spread():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.6, 0.6, 0.6], 3000)
    chosen = windows_to_explain(p, 60)
    assert len(chosen) == len(set(chosen.tolist())) == 60
    assert (np.diff(chosen) > 0).all()
    doubtful = np.argsort(p.max(axis=1))[:30]
    assert set(doubtful) <= set(chosen)
    rest = np.setdiff1d(chosen, doubtful)
    assert np.bincount(p[rest].argmax(axis=1)).tolist() == [10, 10, 10]
    others = np.setdiff1d(np.arange(3000), doubtful)
    for k in range(3):
        mine = p[others[p[others].argmax(axis=1) == k]].max(axis=1)
        shown = np.sort(p[rest[p[rest].argmax(axis=1) == k]].max(axis=1))
        assert shown[0] == mine.min()
        assert shown[-1] == mine.max()


def test_the_choice_depends_on_nothing_but_the_numbers():
    p = np.random.default_rng(1).dirichlet([1, 1], 500)
    assert np.array_equal(windows_to_explain(p, 50), windows_to_explain(p.copy(), 50))


def test_a_rare_class_is_shown_whole_and_its_room_is_used():
    p = np.tile([0.9, 0.1], (1000, 1))
    p[::400] = [0.02, 0.98]
    chosen = windows_to_explain(p, 100)
    assert len(chosen) == 100
    assert {0, 400, 800} <= set(chosen.tolist())


@pytest.mark.parametrize(
    ("sizes", "total", "quotas"),
    [([9, 9, 9], 6, [2, 2, 2]), ([9, 9, 9], 7, [3, 2, 2]), ([1, 9, 0], 6, [1, 5, 0]), ([1, 1], 5, [1, 1])],
)
def testequal_quotas_are_as_equal_as_sizes_allow(sizes, total, quotas):
    assert equal_quotas(np.array(sizes), total).tolist() == quotas
