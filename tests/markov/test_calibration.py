"""Sharpness against a fine grid, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from transpl.markov.calibration import DULLEST, MOST_TEMPERED, SHARPEST, fit_sharpness, fit_temper, tempered


def drawn(seed, n=60, K=3):
    """Labels drawn from the very probabilities that the scores stand for."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, K)) * 2
    labels = np.array([rng.choice(K, p=p) for p in softmax(scores, axis=1)])
    return scores, labels


def loss(a, scores, labels):
    return -log_softmax(a * scores, axis=1)[np.arange(len(labels)), labels].mean()


@pytest.mark.parametrize("seed", range(5))
def test_no_point_of_a_grid_is_better(seed):
    scores, labels = drawn(seed)
    a = fit_sharpness(lambda a: softmax(a * scores, axis=1), labels)
    grid = [loss(point, scores, labels) for point in np.geomspace(1e-2, 1e2, 400)]
    assert loss(a, scores, labels) <= min(grid) + 1e-6


def test_scores_that_are_too_sure_by_a_factor_are_dulled_by_it():
    scores, labels = drawn(1, n=400)
    fair = fit_sharpness(lambda a: softmax(a * scores, axis=1), labels)
    assert fair == pytest.approx(1, abs=0.25)
    assert fit_sharpness(lambda a: softmax(a * 5 * scores, axis=1), labels) == pytest.approx(fair / 5, rel=1e-2)


def test_order_of_rows_and_classes_does_not_matter():
    scores, labels = drawn(2)
    rows, classes = np.random.default_rng(0).permutation(60), np.array([2, 0, 1])
    turned = scores[rows][:, classes]
    a = fit_sharpness(lambda a: softmax(a * scores, axis=1), labels)
    b = fit_sharpness(lambda a: softmax(a * turned, axis=1), np.argsort(classes)[labels[rows]])
    assert a == pytest.approx(b, rel=1e-6)


def test_scores_that_are_always_right_stay_within_bounds():
    labels = np.arange(3)
    a = fit_sharpness(lambda a: softmax(a * np.eye(3), axis=1), labels)
    assert 10 < a <= SHARPEST
    assert fit_sharpness(lambda a: softmax(a * np.eye(3), axis=1), labels, sharpest=2.0) == pytest.approx(2, rel=1e-3)
    worst = fit_sharpness(lambda a: softmax(-a * np.eye(3), axis=1), labels)
    assert DULLEST <= worst < 0.01


def test_rows_of_an_impossible_class_say_nothing():
    scores, labels = drawn(3)
    more, unknown = np.vstack([scores, [0.0, 0.0, 0.0]]), np.append(labels, 2)

    def without_class_two(values):
        return lambda a: softmax(np.where([True, True, False], a * values, -np.inf), axis=1)

    known = labels != 2
    found = fit_sharpness(without_class_two(more), unknown)
    assert found == pytest.approx(fit_sharpness(without_class_two(scores[known]), labels[known]), rel=1e-6)
    assert fit_sharpness(without_class_two(more[-1:]), unknown[-1:]) == 1.0


def test_labels_of_other_windows_are_refused():
    with refusal("labels", "shape"):
        fit_sharpness(lambda a: np.full((4, 2), 0.5), [0, 1])


def test_tempering_is_a_power():
    np.testing.assert_allclose(tempered(np.array([[0.8, 0.2, 0.0]]), 0.5), [[2 / 3, 1 / 3, 0]])
    y = np.array([[0.8, 0.2]])
    assert tempered(y, 1.0) is y


def test_what_is_certain_stays_as_it_is():
    """A prior of 1 for one class, say: no power changes it, and none is to be carried over to other answers."""
    assert fit_temper([np.eye(3)], 0.5) == 1.0


@given(seed=st.integers(0, 1000), wanted=st.floats(0.0, 1.0))
def test_the_mean_confidence_is_the_one_asked_for_or_the_nearest_that_can_be_had(seed, wanted):
    y = softmax(4 * drawn(seed, n=7)[0], axis=1)
    y[0] = 1, 0, 0  # a class that is certain stays so
    c = fit_temper([y], wanted)
    assert MOST_TEMPERED <= c <= 1
    least, most = (tempered(y, bound).max(axis=1).mean() for bound in (MOST_TEMPERED, 1.0))
    assert tempered(y, c).max(axis=1).mean() == pytest.approx(np.clip(wanted, least, most), abs=1e-6)
    assert np.array_equal(tempered(y, c).argmax(axis=1), y.argmax(axis=1))
    assert fit_temper([y[:2], y[2:]], wanted) == c
    assert fit_temper([y[::-1, ::-1]], wanted) == pytest.approx(c, rel=1e-6)
