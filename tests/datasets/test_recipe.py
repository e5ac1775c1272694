"""Who trains and who tests: AdaTime's rule against the published files, and groups that stay together."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedShuffleSplit

from transpl._utils.errors import InputError
from transpl.datasets.recipe import group_test_rows, split_each, stratified_test_rows

SHARED = Path(__file__).parents[3] / "shared" / "data"
LABELS = st.lists(st.integers(0, 5), min_size=1, max_size=80)


@pytest.mark.skipif(not (SHARED / "ucihar.npz").is_file(), reason=f"the shared prepared data are not at {SHARED}")
def test_all_thirty_published_splits_row_by_row() -> None:
    with np.load(SHARED / "ucihar.npz") as file:
        oracle = {key: file[key] for key in ("y", "domain", "split", "uci_row")}
    for user in range(1, 31):
        mine = oracle["domain"] == user
        in_host_order = np.argsort(oracle["uci_row"][mine])
        rows, y = oracle["uci_row"][mine][in_host_order], oracle["y"][mine][in_host_order]
        parts = stratified_test_rows(y, 0.3, 1)
        np.testing.assert_array_equal(rows[parts.train], oracle["uci_row"][mine & (oracle["split"] == 0)])
        np.testing.assert_array_equal(rows[parts.test], oracle["uci_row"][mine & (oracle["split"] == 1)])


def test_the_arithmetic_decides_ties() -> None:
    """Of 42 train windows, 12 and 22 of 60 leave remainders that are equal only if the product is taken first."""
    sizes, draws = np.array([12, 22, 26]), 42
    assert len(np.unique((draws * sizes / 60) % 1)) == 2
    assert len(np.unique((sizes / 60 * draws) % 1)) == 3
    y = np.repeat(np.arange(3), sizes)
    allocations = {tuple(np.bincount(y[stratified_test_rows(y, 0.3, seed).train])) for seed in range(20)}
    assert allocations == {(9, 15, 18), (8, 16, 18)}  # drawn by lot


def test_sizes_of_powers_of_two_agree_with_scikit_learn() -> None:
    """Where no quotient is rounded, old and new arithmetic are the same, so today's scikit-learn is an oracle."""
    for seed in range(5):
        y = np.random.default_rng(seed).permutation(np.repeat(np.arange(4), (16, 32, 64, 16)))
        rule = StratifiedShuffleSplit(n_splits=1, test_size=0.25, random_state=seed)
        train, test = next(rule.split(y, y))
        found = stratified_test_rows(y, 0.25, seed)
        np.testing.assert_array_equal(found.train, train)
        np.testing.assert_array_equal(found.test, test)


@settings(max_examples=200, deadline=None)
@given(y=LABELS, seed=st.integers(0, 1000))
def test_every_row_once_and_ceil_of_the_share(y: list[int], seed: int) -> None:
    labels = np.array(y)
    train, test = stratified_test_rows(labels, 0.3, seed)
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(y)))
    sizes = np.bincount(labels)
    spare = int(np.maximum(sizes - 1, 0).sum())
    assert len(test) == min(ceil(0.3 * len(y)), spare)
    assert set(labels[train]) == set(y)
    again = stratified_test_rows(labels, 0.3, seed)
    np.testing.assert_array_equal(again.train, train)


def test_a_lone_window_trains() -> None:
    y = np.array([0] * 20 + [1] + [2] * 9)
    for seed in range(20):
        train, test = stratified_test_rows(y, 0.3, seed)
        assert 20 in train
        assert len(test) == 9
    only = stratified_test_rows([0, 1, 2])
    assert (len(only.train), len(only.test)) == (3, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "y: expected"),
        (([[0, 1]],), "y: expected"),
        (([0, 1], 0.0), "share: expected"),
        (([0, 1], 1.0), "share: expected"),
        (([0, 1], 0.3, -1), "seed: expected"),
    ],
)
def test_bad_arguments(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stratified_test_rows(*arguments)  # type: ignore[arg-type]


def test_every_domain_is_split_by_itself() -> None:
    domain = np.array([5, 2] * 30)
    y = np.arange(60) % 3
    order, split = split_each(domain, y)
    np.testing.assert_array_equal(domain[order], np.repeat([2, 5], 30))
    np.testing.assert_array_equal(split, np.tile(np.repeat([0, 1], (21, 9)), 2))
    alone = stratified_test_rows(y[domain == 5])
    np.testing.assert_array_equal(order[30:51], np.flatnonzero(domain == 5)[alone.train])
    with pytest.raises(InputError, match="domain: expected"):
        split_each([1, 2], [0])


@settings(max_examples=200, deadline=None)
@given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=30),
    rows=st.lists(st.integers(0, 29), min_size=1, max_size=120),
    share=st.sampled_from([0.1, 0.3, 0.5, 0.9]),
    seed=st.integers(0, 100),
)
def test_groups_stay_together(labels: list[int], rows: list[int], share: float, seed: int) -> None:
    groups = np.array([f"patient{row % len(labels):02}" for row in rows])
    y = np.array([labels[row % len(labels)] for row in rows])
    train, test = group_test_rows(groups, y, share, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(rows)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    assert not set(groups[train]) & set(groups[test])
    for label in set(y.tolist()):
        n = len(set(groups[y == label]))
        tested = len(set(groups[test][y[test] == label]))
        assert tested == 0 if n == 1 else 1 <= tested <= n - 1
        assert abs(tested - share * n) <= 1


def test_group_sizes_are_rounded_per_label() -> None:
    groups = np.arange(15)
    y = np.repeat([0, 1], (11, 4))
    test = group_test_rows(groups, y, 0.3, 1).test
    np.testing.assert_array_equal(np.bincount(y[test]), [3, 1])
    assert any(not np.array_equal(group_test_rows(groups, y, 0.3, seed).test, test) for seed in range(2, 6))


def test_a_group_with_two_labels_is_refused() -> None:
    with pytest.raises(InputError, match=r"groups: expected.*'p1' with 0 and 1"):
        group_test_rows(["p1", "p2", "p1"], [0, 0, 1])
    with pytest.raises(InputError, match="groups: expected"):
        group_test_rows(["p1"], [0, 1])
