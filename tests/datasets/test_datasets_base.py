"""A Dataset checks itself, and hands out its domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from transpl._utils.errors import InputError
from transpl.datasets import Dataset, Domain


def parts(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    usual = {
        "name": "tiny",
        "X": rng.standard_normal((8, 2, 5)),
        "y": np.array([0, 1, 0, 1, 0, 1, 0, 1]),
        "domain_ids": np.array([3, 3, 3, 3, 7, 7, 7, 7]),
        "split": np.array([0, 0, 1, 1, 0, 1, 0, 1]),
        "class_names": ("sit", "walk"),
        "channel_names": ("x", "y"),
        "pairs": ((3, 7), (7, 3)),
    }
    return {**usual, **changes}


def test_types_and_domains() -> None:
    dataset = Dataset(**parts())
    assert (dataset.X.dtype, dataset.y.dtype, dataset.domain_ids.dtype, dataset.split.dtype) == (
        np.dtype("f4"),
        np.dtype("i8"),
        np.dtype("i8"),
        np.dtype("i1"),
    )
    assert len(dataset) == 8
    assert dataset.domains == (3, 7)
    assert all(type(i) is int for i in dataset.domains)
    assert dataset.pairs == ((3, 7), (7, 3))


def test_domain_gives_the_right_rows() -> None:
    dataset = Dataset(**parts())
    seven = dataset.domain(7)
    assert isinstance(seven, Domain)
    np.testing.assert_array_equal(seven.X_train, dataset.X[[4, 6]])
    np.testing.assert_array_equal(seven.X_test, dataset.X[[5, 7]])
    np.testing.assert_array_equal(seven.y_train, [0, 0])
    np.testing.assert_array_equal(seven.y_test, [1, 1])


def test_groups_of_a_domain() -> None:
    assert Dataset(**parts()).domain_groups(7) == (None, None)
    train, test = Dataset(**parts(groups=np.arange(8, dtype=np.int16) // 2)).domain_groups(7)
    assert (train.tolist(), test.tolist()) == ([2, 3], [2, 3])
    with pytest.raises(InputError, match="one of 3, 7, got 4"):
        Dataset(**parts()).domain_groups(4)
    for groups in (np.zeros(7, int), np.zeros(8)):
        with pytest.raises(InputError, match="groups: expected 8 whole numbers"):
            Dataset(**parts(groups=groups))


def test_domain_gives_copies() -> None:
    dataset = Dataset(**parts())
    dataset.domain(3).X_train[:] = 0
    assert (dataset.X[0] != 0).any()


def test_unknown_domain_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="one of 3, 7, got 4"):
        Dataset(**parts()).domain(4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((8, 5))}, "X: expected .*shape"),
        ({"X": np.zeros((0, 2, 5))}, "X: expected"),
        ({"X": np.full((8, 2, 5), np.nan)}, "80 that are not"),
        ({"X": np.full((8, 2, 5), 1e300)}, "finite numbers that fit float32"),
        ({"X": np.full((8, 2, 5), "a")}, "X: expected numbers"),
        ({"y": np.zeros(7, int)}, "y: expected 8 whole numbers"),
        ({"y": np.zeros(8)}, "y: expected 8 whole numbers"),
        ({"y": np.full(8, 2)}, r"class indices in 0\.\.1"),
        ({"y": np.full(8, -1)}, r"class indices in 0\.\.1"),
        ({"domain_ids": np.zeros((8, 1), int)}, "domain_ids: expected 8"),
        ({"split": np.full(8, 2)}, r"split: expected only 0 \(train\) and 1 \(test\), got \[2\]"),
        ({"channel_names": ("x",)}, "channel_names: expected 2 names, got 1"),
        ({"class_names": ("sit", "sit")}, "class_names: expected no name twice"),
        ({"pairs": ((3, 8),)}, "among 3, 7, got also 8"),
        ({"pairs": (3, 7)}, "pairs: expected"),
    ],
)
def test_unsound_parts_are_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Dataset(**parts(**changes))
    assert "\n" not in str(caught.value)
