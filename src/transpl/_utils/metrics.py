"""Scores of labels and probabilities, with one rule for classes that are absent from a test part.

Scikit-learn's metrics load slowly, so they are imported where a score is computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import invalid

BINS = 15
_UNIT_SUM = 1e-6
_LEAST_PROBABILITY = 1e-12


def scores(y: ArrayLike, probabilities: ArrayLike) -> dict[str, float]:
    """All scores of class probabilities (n, K) against class indices y (n,); "binary_f1" for two classes only."""
    truth, p = _checked(y, probabilities)
    return {
        **label_scores(truth, p.argmax(axis=1), p.shape[1]),
        "calibration_error": calibration_error(truth, p),
    }


def label_scores(y: ArrayLike, labels: ArrayLike, n_classes: int) -> dict[str, float]:
    """The scores that labels alone allow."""
    found = {
        "accuracy": accuracy(y, labels),
        "macro_f1": macro_f1(y, labels),
        "balanced_accuracy": balanced_accuracy(y, labels),
    }
    return found | ({"binary_f1": binary_f1(y, labels)} if n_classes == 2 else {})


def accuracy(y: ArrayLike, labels: ArrayLike) -> float:
    r"""(1/n) \sum_i [labels_i = y_i]."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(y, labels))


def macro_f1(y: ArrayLike, labels: ArrayLike) -> float:
    r"""mean_{k \in C} F1_k, F1_k = 2 TP_k / (2 TP_k + FP_k + FN_k), C the classes present in y or in labels.

    A class that is absent from both has no F1 and does not count; one that is only predicted counts with 0.
    """
    from sklearn.metrics import f1_score

    return float(f1_score(y, labels, average="macro", zero_division=0))


def binary_f1(y: ArrayLike, labels: ArrayLike) -> float:
    """F1 of class 1 of two, as in the paper's code for PTB; 0 if class 1 is neither present nor predicted.

    It is not the macro-F1: predicting class 1 throughout can give more than the accuracy.
    """
    from sklearn.metrics import f1_score

    return float(f1_score(y, labels, labels=[1], average="macro", zero_division=0))


def balanced_accuracy(y: ArrayLike, labels: ArrayLike) -> float:
    r"""mean_{k \in C} TP_k / n_k, n_k the rows of class k, C the classes present in y."""
    from sklearn.metrics import recall_score

    return float(recall_score(y, labels, labels=np.unique(np.asarray(y)), average="macro", zero_division=0))


def cross_entropies(probabilities: NDArray[np.float64], y: NDArray[np.integer]) -> NDArray[np.float64]:
    r"""l_i = -log p_{i, y_i}, (n,); probabilities below 1e-12 count as 1e-12."""
    return -np.log(np.maximum(probabilities[np.arange(len(y)), y], _LEAST_PROBABILITY))


def calibration_error(y: ArrayLike, probabilities: ArrayLike, bins: int = BINS) -> float:
    r"""ECE = \sum_b (n_b / n) abs(acc_b - conf_b) over bins ((b - 1) / B, b / B] of the confidence max_k p_k.

    acc_b is the accuracy of the n_b rows in bin b, conf_b their mean confidence (Guo et al. 2017).
    """
    truth, p = _checked(y, probabilities)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == truth
    b = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gap = np.bincount(b, weights=right - confidence, minlength=bins)  # n_b (acc_b - conf_b)
    return float(np.abs(gap).sum() / len(truth))


def _checked(y: ArrayLike, probabilities: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    truth, p = np.asarray(y), np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2 or truth.shape != (len(p),) or len(p) == 0:
        got = f"y {truth.shape} and probabilities {p.shape}"
        raise invalid("probabilities", expected="(n, K) beside y (n,)", got=got, advice="Pass one row per label.")
    if not np.isfinite(p).all() or (p < 0).any() or np.abs(p.sum(axis=1) - 1).max() > _UNIT_SUM:
        raise invalid("probabilities", expected="rows that sum to 1", got="other rows", advice="Normalise them.")
    return truth, p
