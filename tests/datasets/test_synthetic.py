"""Made data: seeded, complete, easy within a domain and harder across."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from transpl._utils.errors import InputError
from transpl.datasets import Dataset, make_shifted


def test_same_seed_same_data() -> None:
    one, same, other = make_shifted(seed=1), make_shifted(seed=1), make_shifted(seed=2)
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.y, same.y)
    assert (one.X != other.X).any()


def test_no_global_seed_is_touched() -> None:
    shared = check_random_state(None)  # numpy's own generator
    before = shared.get_state(legacy=False)
    make_shifted(n_train=6, n_test=4)
    after = shared.get_state(legacy=False)
    assert before["state"]["pos"] == after["state"]["pos"]
    np.testing.assert_array_equal(before["state"]["key"], after["state"]["key"])


def test_defaults() -> None:
    dataset = make_shifted()
    assert dataset.X.shape == (3 * 180, 3, 64)
    assert dataset.domains == (0, 1, 2)
    assert len(dataset.pairs) == 6


@settings(max_examples=30, deadline=None)
@given(
    n_train=st.integers(5, 30),
    n_test=st.integers(5, 20),
    n_classes=st.integers(2, 5),
    n_channels=st.integers(1, 4),
    length=st.integers(2, 40),
    n_domains=st.integers(2, 4),
    shift=st.floats(0, 3),
    imbalance=st.floats(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_part_has_its_size_and_every_class(
    n_train: int,
    n_test: int,
    n_classes: int,
    n_channels: int,
    length: int,
    n_domains: int,
    shift: float,
    imbalance: float,
    seed: int,
) -> None:
    dataset = make_shifted(n_train, n_test, n_classes, n_channels, length, n_domains, shift, imbalance, seed)
    assert dataset.X.shape == (n_domains * (n_train + n_test), n_channels, length)
    for i in dataset.domains:
        part = dataset.domain(i)
        assert (len(part.y_train), len(part.y_test)) == (n_train, n_test)
        assert set(part.y_train) == set(part.y_test) == set(range(n_classes))


def features(X: NDArray[np.float32]) -> NDArray[np.float64]:
    spectrum = np.abs(np.fft.rfft(X - X.mean(axis=2, keepdims=True), axis=2))[:, :, 1:16]
    return np.concatenate([X.mean(axis=2), X.std(axis=2), np.log1p(spectrum).reshape(len(X), -1)], axis=1)


def accuracies(dataset: Dataset) -> tuple[list[float], list[float]]:
    """Score a plain classifier of each domain on its own test part, and on those of the others."""
    within: list[float] = []
    across: list[float] = []
    parts = {i: dataset.domain(i) for i in dataset.domains}
    models = {
        i: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(features(p.X_train), p.y_train)
        for i, p in parts.items()
    }
    for (s, model), (t, part) in product(models.items(), parts.items()):
        (within if s == t else across).append(model.score(features(part.X_test), part.y_test))
    return within, across


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_easy_within_a_domain_and_harder_across(seed: int) -> None:
    within, across = accuracies(make_shifted(seed=seed))
    assert min(within) > 0.85
    assert np.mean(across) < np.mean(within) - 0.15


def test_without_shift_domains_are_alike() -> None:
    dataset = make_shifted(shift=0)
    within, across = accuracies(dataset)
    assert abs(np.mean(across) - np.mean(within)) < 0.05
    counts = [np.bincount(dataset.y[dataset.domain_ids == i]).tolist() for i in dataset.domains]
    assert counts == [[60, 60, 60]] * 3


def test_class_proportions_differ_between_domains() -> None:
    dataset = make_shifted(imbalance=1.0)
    counts = {tuple(np.bincount(dataset.y[dataset.domain_ids == i])) for i in dataset.domains}
    assert len(counts) == 3


def test_one_channel_stays_and_the_others_move() -> None:
    """Spread of a channel, relative to the reference domain: gain moves it, and one channel has none."""
    dataset = make_shifted(n_train=600, imbalance=0, shift=2)
    spread = np.array([dataset.domain(i).X_train.std(axis=(0, 2)) for i in dataset.domains])
    change = np.abs(np.log(spread[1:] / spread[0]))
    assert (change.min(axis=1) < 0.1).all()
    assert (change.max(axis=1) > 0.5).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_train": 2},
        {"n_test": 0},
        {"n_classes": 1},
        {"n_channels": 0},
        {"length": 1},
        {"n_domains": 1},
        {"shift": -1.0},
        {"imbalance": float("nan")},
    ],
)
def test_wrong_sizes_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        make_shifted(**wrong)  # type: ignore[arg-type]
