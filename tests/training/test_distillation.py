"""The convex problem against scikit-learn, and by its own conditions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from transpl.training.distillation import distil

RNG = np.random.default_rng(0)
S = RNG.normal(size=(30, 4)) + np.array([1, 0, 0, 5])
T = RNG.normal(size=(20, 4)) * np.array([1, 2, 1, 1])
Y = RNG.integers(0, 3, 30)
VOTES = RNG.dirichlet(np.ones(3), 20)


def probabilities(head, Z):
    logits = Z @ head.W.T + head.b
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_hard_votes_are_weighted_logistic_regression():
    hard = np.eye(3)[VOTES.argmax(axis=1)]
    head = distil(S, Y, T, hard, penalty=0.1)
    Z = np.concatenate([S, T])
    scaled = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    weights = np.repeat([1 / 30, 1 / 20], [30, 20])
    oracle = LogisticRegression(C=10, tol=1e-10, max_iter=10000)
    oracle.fit(scaled, np.concatenate([Y, hard.argmax(axis=1)]), sample_weight=weights)
    assert probabilities(head, Z) == pytest.approx(oracle.predict_proba(scaled), abs=2e-4)


def test_without_penalty_soft_votes_are_met_on_average():
    """At the optimum the mean of p is the mean of what was to be learnt, source and target counting alike."""
    head = distil(S, Y, T, VOTES, penalty=1e-9)
    wanted = np.eye(3)[Y].mean(axis=0) + VOTES.mean(axis=0)
    assert probabilities(head, S).mean(axis=0) + probabilities(head, T).mean(axis=0) == pytest.approx(wanted, abs=1e-3)


def test_units_and_constant_features_do_not_matter():
    scale, shift = np.array([1, 100, 0.01, 3]), np.array([0, 5, -2, 1])
    plain, other = distil(S, Y, T, VOTES), distil(S * scale + shift, Y, T * scale + shift, VOTES)
    assert probabilities(other, T * scale + shift) == pytest.approx(probabilities(plain, T), abs=1e-4)
    constant = distil(np.c_[S, np.ones(30)], Y, np.c_[T, np.ones(20)], VOTES)
    assert probabilities(constant, np.c_[T, np.ones(20)]) == pytest.approx(probabilities(plain, T), abs=1e-4)


def test_a_class_that_nobody_has_gets_next_to_nothing():
    votes = np.zeros((20, 3))
    votes[:, :2] = VOTES[:, :2] / VOTES[:, :2].sum(axis=1, keepdims=True)
    assert probabilities(distil(S, Y % 2, T, votes), T)[:, 2].max() < 0.05
