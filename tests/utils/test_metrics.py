"""Scores against small sums done by hand, and the rule for absent classes."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal

from transpl._utils import metrics

Y = np.array([0, 0, 1, 1])


def one_hot(labels, n_classes):
    return np.eye(n_classes)[labels]


def test_scores_by_hand():
    labels = np.array([0, 1, 1, 1])
    assert metrics.accuracy(Y, labels) == 0.75
    assert metrics.macro_f1(Y, labels) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert metrics.binary_f1(Y, labels) == pytest.approx(4 / 5)
    assert metrics.balanced_accuracy(Y, labels) == 0.75


def test_a_class_that_is_absent_from_truth_and_prediction_does_not_count():
    assert metrics.macro_f1([0, 0, 2], [0, 0, 2]) == 1
    assert metrics.scores([0, 0, 2], one_hot([0, 0, 2], 4))["macro_f1"] == 1


def test_a_class_that_is_only_predicted_counts_with_zero():
    labels = [0, 0, 1, 3]
    assert metrics.macro_f1(Y, labels) == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert metrics.balanced_accuracy(Y, labels) == pytest.approx((1 + 1 / 2) / 2)


def test_a_class_that_is_only_in_the_truth_counts_with_zero():
    assert metrics.macro_f1([0, 1, 2], [0, 1, 1]) == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_binary_f1_is_not_macro_f1():
    """Predicting the frequent class 1 throughout: F1 above accuracy, as in the paper's PTB table (92.3 and 96.0)."""
    y = np.array([1] * 12 + [0])
    always = np.ones(13, int)
    assert metrics.accuracy(y, always) == pytest.approx(0.923, abs=5e-4)
    assert metrics.binary_f1(y, always) == pytest.approx(0.960, abs=5e-4)
    assert metrics.macro_f1(y, always) == pytest.approx(0.480, abs=5e-4)
    assert metrics.binary_f1([0, 0], [0, 0]) == 0
    assert "binary_f1" in metrics.scores(y, one_hot(always, 2))
    assert "binary_f1" not in metrics.scores(y, one_hot(always, 3))


def test_calibration_error_by_hand():
    assert metrics.calibration_error(Y, one_hot(Y, 2)) == 0
    assert metrics.calibration_error(Y, one_hot(1 - Y, 2)) == 1
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])  # two bins: right and right, right and right
    assert metrics.calibration_error(Y, p) == pytest.approx((2 * 0.1 + 2 * 0.4) / 4)
    half = np.array([[0.7, 0.3], [0.3, 0.7], [0.3, 0.7], [0.7, 0.3]])  # one bin, half right, confidence 0.7
    assert metrics.calibration_error(Y, half) == pytest.approx(0.2)


def test_bins_of_the_calibration_error_do_not_mix():
    """One bin would let over- and underconfidence cancel."""
    p = np.array([[0.95, 0.05], [0.95, 0.05], [0.45, 0.55], [0.45, 0.55]])
    y = np.array([0, 1, 1, 1])
    assert metrics.calibration_error(y, p) == pytest.approx((2 * 0.45 + 2 * 0.45) / 4)
    assert metrics.calibration_error(y, p, bins=1) == pytest.approx(0)


def test_the_right_end_belongs_to_a_bin():
    p = np.array([[0.8, 0.2], [0.75, 0.25]])  # 4/5 closes the fourth of five bins, which (0.6, 0.8] shares with 0.75
    assert metrics.calibration_error([0, 1], p, bins=5) == pytest.approx(abs(1 - 0.8 - 0.75) / 2)


@pytest.mark.parametrize("score", [metrics.scores, metrics.calibration_error])
def test_what_are_no_probabilities_is_refused(score):
    for bad in (np.full((4, 2), 0.4), np.full((4, 2), np.nan), np.tile([1.5, -0.5], (4, 1))):
        with refusal("probabilities", "sum to 1"):
            score(Y, bad)
    for shape in ((3, 2), (4,), (0, 2)):
        with refusal("probabilities", r"\(n, K\)"):
            score(Y[: shape[0]] if shape[0] == 0 else Y, np.ones(shape))
