"""A Dataset checks itself and gives its domains; scaling uses the right statistics and nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from transpl import datasets
from transpl._utils.errors import InputError
from transpl.datasets import Dataset, Domain
from transpl.datasets.cards import Provenance, publish
from transpl.datasets.dataset import RULES, TEST, TRAIN, normalised
from transpl.datasets.prepared import save_prepared
from transpl.datasets.recipes.synthetic import make_shifted


def fields(**changes: Any) -> dict[str, Any]:
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
    dataset = Dataset(**fields())
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
    dataset = Dataset(**fields())
    seven = dataset.domain(7)
    assert isinstance(seven, Domain)
    np.testing.assert_array_equal(seven.X_train, dataset.X[[4, 6]])
    np.testing.assert_array_equal(seven.X_test, dataset.X[[5, 7]])
    np.testing.assert_array_equal(seven.y_train, [0, 0])
    np.testing.assert_array_equal(seven.y_test, [1, 1])


def test_groups_of_a_domain() -> None:
    assert Dataset(**fields()).domain_groups(7) == (None, None)
    train, test = Dataset(**fields(groups=np.arange(8, dtype=np.int16) // 2)).domain_groups(7)
    assert (train.tolist(), test.tolist()) == ([2, 3], [2, 3])
    with pytest.raises(InputError, match="one of 3, 7, got 4"):
        Dataset(**fields()).domain_groups(4)
    for groups in (np.zeros(7, int), np.zeros(8)):
        with pytest.raises(InputError, match="groups: expected"):
            Dataset(**fields(groups=groups))


def test_domain_gives_copies() -> None:
    dataset = Dataset(**fields())
    dataset.domain(3).X_train[:] = 0
    assert (dataset.X[0] != 0).any()


def test_unknown_domain_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="one of 3, 7, got 4"):
        Dataset(**fields()).domain(4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((8, 5))}, "X: expected .*shape"),
        ({"X": np.zeros((0, 2, 5))}, "X: expected"),
        ({"X": np.full((8, 2, 5), np.nan)}, "80 that are not"),
        ({"X": np.full((8, 2, 5), 1e300)}, "finite numbers that fit float32"),
        ({"X": np.full((8, 2, 5), "a")}, "X: expected numbers"),
        ({"y": np.zeros(7, int)}, "y: expected"),
        ({"y": np.zeros(8)}, "y: expected"),
        ({"y": np.full(8, 2)}, r"class indices in 0\.\.1"),
        ({"y": np.full(8, -1)}, r"class indices in 0\.\.1"),
        ({"domain_ids": np.zeros((8, 1), int)}, "domain_ids: expected 8"),
        ({"split": np.full(8, 2)}, r"split: expected.*\[2\]"),
        ({"channel_names": ("x",)}, "channel_names: expected.*1"),
        ({"class_names": ("sit", "sit")}, "class_names: expected"),
        ({"pairs": ((3, 8),)}, "among 3, 7, got also 8"),
        ({"pairs": (3, 7)}, "pairs: expected"),
    ],
)
def test_unsound_parts_are_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Dataset(**fields(**changes))
    assert "\n" not in str(caught.value)


def made() -> Dataset:
    return make_shifted(n_train=12, n_test=8, length=16, n_domains=3)


def part(dataset: Dataset, domain: int, split: int) -> np.ndarray:
    return dataset.X[(dataset.domain_ids == domain) & (dataset.split == split)]


def assert_standard(X: np.ndarray) -> None:
    np.testing.assert_allclose(X.mean(axis=(0, 2), dtype=float), 0, atol=1e-5)
    np.testing.assert_allclose(X.std(axis=(0, 2), dtype=float), 1, atol=1e-5)


def changed(dataset: Dataset, rows: np.ndarray) -> Dataset:
    X = dataset.X.copy()
    X[rows] = 5 + 3 * X[rows]
    return Dataset(
        "changed", X, dataset.y, dataset.domain_ids, dataset.split, dataset.class_names, dataset.channel_names
    )


def test_none_is_the_same_object() -> None:
    dataset = made()
    assert normalised(dataset) is dataset


def test_domain_uses_only_the_domains_own_train_part() -> None:
    dataset = made()
    scaled = normalised(dataset, "domain")
    for domain in dataset.domains:
        assert_standard(part(scaled, domain, TRAIN))
    other = normalised(changed(dataset, (dataset.split == TEST) | (dataset.domain_ids == 2)), "domain")
    for domain in (0, 1):
        np.testing.assert_array_equal(part(other, domain, TRAIN), part(scaled, domain, TRAIN))


def test_per_split_standardises_each_part_by_itself() -> None:
    scaled = normalised(made(), "per_split")
    for domain in scaled.domains:
        for split in (TRAIN, TEST):
            assert_standard(part(scaled, domain, split))


def test_source_stats_use_only_the_sources_train_part_and_keep_the_shift() -> None:
    dataset = made()
    scaled = normalised(dataset, "source_stats", source=1)
    assert_standard(part(scaled, 1, TRAIN))
    train = part(dataset, 1, TRAIN)
    mean, std = train.mean(axis=(0, 2), keepdims=True), train.std(axis=(0, 2), keepdims=True)
    np.testing.assert_allclose(scaled.X * std + mean, dataset.X, atol=1e-4)
    everything_else = (dataset.split == TEST) | (dataset.domain_ids != 1)
    other = normalised(changed(dataset, everything_else), "source_stats", source=1)
    np.testing.assert_array_equal(part(other, 1, TRAIN), part(scaled, 1, TRAIN))


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "none"])
@pytest.mark.parametrize("value", [0.0, 0.1, 12345.678])
def test_a_constant_channel_becomes_zero(rule: str, value: float) -> None:
    dataset = made()
    dataset.X[:, 1] = value
    scaled = normalised(dataset, rule, source=0)
    np.testing.assert_allclose(scaled.X[:, 1], 0, atol=1e-3)
    assert np.isfinite(scaled.X).all()


def test_the_rest_is_untouched_and_the_original_too() -> None:
    dataset = made()
    before = dataset.X.copy()
    scaled = normalised(dataset, "domain")
    np.testing.assert_array_equal(dataset.X, before)
    np.testing.assert_array_equal(scaled.y, dataset.y)
    assert (scaled.name, scaled.pairs, scaled.X.dtype) == (dataset.name, dataset.pairs, np.float32)


@pytest.mark.parametrize(
    ("rule", "source", "message"),
    [
        ("zscore", None, "normalise: expected one of 'none'"),
        ("source_stats", None, "source: expected one of"),
        ("source_stats", 9, "source: expected one of 0, 1, 2, got 9"),
    ],
)
def test_misuse(rule: str, source: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        normalised(made(), rule, source)


def test_a_domain_without_train_windows() -> None:
    dataset = made()
    dataset.split[dataset.domain_ids == 2] = TEST
    with pytest.raises(InputError, match="none in domain 2"):
        normalised(dataset, "domain")
    assert_standard(part(normalised(dataset, "per_split"), 2, TEST))


def test_load_scales_and_refuses_to_scale_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPL_DATA", str(tmp_path))
    assert_standard(part(datasets.load("synthetic", normalise="per_split"), 0, TEST))
    assert_standard(part(datasets.load("synthetic", normalise="source_stats", source=2), 2, TRAIN))
    npz = tmp_path / "mine.npz"
    save_prepared(normalised(made(), "per_split"), npz)
    assert len(datasets.load("mine", normalise="domain")) == 60  # no card: nothing is known
    publish(npz, npz, Provenance("prepare", "Mine", "rule", [], {}, normalise="per_split"))
    assert len(datasets.load("mine")) == 60
    with pytest.raises(InputError, match=r"normalise: expected"):
        datasets.load("mine", normalise="domain")


ROWS: dict[str, Any] = {
    "y": [0, 0],
    "domain_ids": [0, 1],
    "split": [0, 1],
    "class_names": ["a"],
    "channel_names": ["x"],
}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("split", [0, 256]),  # 0 in 8 bits
        ("domain_ids", np.array([0, 2**64 - 1], np.uint64)),  # -1 in 64 bits with a sign
        ("y", np.ma.masked_array([0, 0], [False, True])),
        ("X", np.ma.masked_array(np.zeros((2, 1, 4)), np.arange(8).reshape(2, 1, 4) == 5)),
    ],
)
def test_numbers_that_would_wrap_and_masked_entries_are_refused(field: str, values: Any) -> None:
    with pytest.raises(InputError, match=rf"\A{field}: "):
        Dataset(**{"name": "tiny", "X": np.zeros((2, 1, 4)), **ROWS, field: values})
