"""Shallow classifiers on features: what they standardise with, and what they answer."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_waves, refusal
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from transpl.council.witnesses.linear import statistics
from transpl.methods.registry import create
from transpl.methods.shallow import Standardiser
from transpl.windows import Labelled, Windows, as_windows

K = 3
NAMES = ("features-linear", "features-trees")


def labelled(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, n_classes=K, **shift)
    return Labelled(as_windows(X), y, K)


SOURCE, TARGET, TEST = labelled(60, 0), labelled(30, 1), labelled(24, 2)


def other_units(windows: Windows) -> Windows:
    gain, offset = np.array([[3.0], [0.2]]), np.array([[-5.0], [40.0]])
    return as_windows(windows.values * gain + offset)


def fitted(name: str, source: Labelled = SOURCE, **settings):
    method = create(name, **settings)
    method.fit_source(source)
    return method


def adapted(name: str, target: Windows, **settings):
    method = fitted(name, **settings)
    method.adapt(target)
    return method


@pytest.mark.parametrize("name", NAMES)
def test_other_units_make_no_difference_to_a_domain_that_is_standardised_by_itself(name):
    plain, moved = adapted(name, TARGET.windows), adapted(name, other_units(TARGET.windows))
    expected = plain.predict_proba(TEST.windows)
    assert np.abs(moved.predict_proba(other_units(TEST.windows)) - expected).max() < 0.02
    assert (expected.argmax(axis=1) == TEST.y).mean() > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_without_normalisation_adapting_changes_nothing(name):
    before = fitted(name, standardise="source").predict_proba(TEST.windows)
    after = adapted(name, other_units(TARGET.windows), standardise="source").predict_proba(TEST.windows)
    assert np.array_equal(before, after)


@pytest.mark.parametrize("name", NAMES)
def test_test_windows_are_never_standardised_by_their_own_moments(name):
    method = adapted(name, TARGET.windows)
    together = method.predict_proba(TEST.windows)
    alone = np.concatenate([method.predict_proba(TEST.windows[[i]]) for i in range(len(TEST.y))])
    assert np.allclose(alone, together)


@pytest.mark.parametrize("name", NAMES)
def test_labels_in_one_shot_use_the_moments_of_the_windows_themselves(name):
    method = adapted(name, other_units(TARGET.windows))
    labels = method.one_shot_labels(TARGET.windows)
    assert np.array_equal(labels.probabilities, adapted(name, TARGET.windows).predict_proba(TARGET.windows))


@pytest.mark.parametrize("name", NAMES)
def test_a_class_without_source_windows_has_probability_zero(name):
    method = fitted(name, Labelled(SOURCE.windows, np.where(SOURCE.y == 1, 2, SOURCE.y), K))
    p = method.predict_proba(TEST.windows)
    assert (p[:, 1] == 0).all()
    assert np.allclose(p.sum(axis=1), 1)


def test_the_linear_one_is_a_logistic_regression_on_standardised_statistics():
    def scaled(windows: Windows, domain: Windows) -> np.ndarray:
        signals = domain.values.astype(float).transpose(1, 0, 2).reshape(2, -1)
        mean, deviation = signals.mean(axis=1), signals.std(axis=1)
        return statistics((windows.values - mean[:, None]) / deviation[:, None])

    columns = [StandardScaler().fit(scaled(part, part)) for part in (SOURCE.windows, TARGET.windows)]
    model = LogisticRegression(C=0.5, max_iter=1000)
    model.fit(columns[0].transform(scaled(SOURCE.windows, SOURCE.windows)), SOURCE.y)
    expected = model.predict_proba(columns[1].transform(scaled(TEST.windows, TARGET.windows)))
    found = adapted("features-linear", TARGET.windows, C=0.5).predict_proba(TEST.windows)
    assert np.allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(("rows_are", "shape"), [("windows", (24, 2, 32)), ("flat", (24, 64))])
def test_rows_other_than_features_are_standardised_signals(rows_are, shape):
    rows = Standardiser.fit(rows_are, TEST.windows).rows(TEST.windows)
    assert rows.shape == shape
    by_channel = rows.reshape(24, 2, 32)
    assert np.allclose(by_channel.mean(axis=(0, 2)), 0, atol=1e-5)
    assert np.allclose(by_channel.std(axis=(0, 2)), 1, atol=1e-5)


@pytest.mark.parametrize("wrong", [{"standardise": "window"}, {"C": 0.0}])
def test_wrong_settings_are_refused(wrong):
    with refusal(next(iter(wrong))):
        create("features-linear", **wrong)
    with refusal("n_trees"):
        create("features-trees", n_trees=0)
