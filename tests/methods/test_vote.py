"""Votes of some of the channels, their confidence, and how sharp a vote is made on held-out windows."""

from __future__ import annotations

import numpy as np
import pytest
from vote_by_hand import likelihoods_by_hand, sharpness_on_a_grid

from transpl.markov import confidence
from transpl.methods.transpl_settings import TransPLPlusSettings
from transpl.methods.vote import Coded, HeldOut, Vote, calibrated

SETTINGS = TransPLPlusSettings()
# (K, D, n_c, n_c): class 0 stays in code 0, class 1 leaves it.
LOG_P = np.log([[[[0.9, 0.1], [0.5, 0.5]]], [[[0.1, 0.9], [0.5, 0.5]]]])


def test_some_of_the_channels_share_the_whole_vote():
    vote = Vote(SETTINGS, np.tile(LOG_P, (1, 4, 1, 1)), np.array([0.6, 0.2, 0.2, 0.0]))
    some = vote.of_channels(slice(1, 4))
    assert some.shares.tolist() == [0.5, 0.5, 0.0]
    assert some.log_probabilities.shape == (2, 3, 2, 2)


def test_channels_of_which_none_has_a_share_count_alike():
    vote = Vote(SETTINGS, np.tile(LOG_P, (1, 4, 1, 1)), np.array([0.75, 0.25, 0.0, 0.0]))
    assert vote.of_channels(slice(2, 4)).shares.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("rule", ["max", "kl"])
def test_labels_and_confidence_are_those_of_the_probabilities(rule):
    vote = Vote(TransPLPlusSettings(confidence=rule), LOG_P, np.ones(1))
    coded = Coded(np.array([[[0, 0, 0]], [[0, 1, 1]]]))
    found = vote(coded)
    assert found.labels.tolist() == [0, 1]
    assert np.array_equal(found.probabilities, vote.probabilities(coded))
    assert np.array_equal(found.confidence, confidence(found.probabilities, rule))


def test_windows_that_are_all_told_apart_make_codes_and_classifier_as_sharp_as_they_may_be():
    """Two channels of nine transitions each, as if all were independent; and the classifier as it is."""
    codes = np.zeros((4, 2, 10), np.int64)
    codes[2:, :, 1::2] = 1
    opinions = np.repeat([[0.9, 0.1], [0.1, 0.9]], 2, axis=0)
    held_out = HeldOut(codes, opinions, np.repeat([0, 1], 2))
    assert calibrated(SETTINGS, np.tile(LOG_P, (1, 2, 1, 1)), held_out) == pytest.approx((2 * 9, 1.0), rel=1e-3)


def test_sharpness_is_the_best_on_a_grid_for_codes_and_classifier_each_alone():
    """Of a product of channels that count alike, where labels are often right and often wrong."""
    rng = np.random.default_rng(0)
    log_p, opinions = np.log(rng.dirichlet([1, 1], (2, 2, 2))), rng.dirichlet([1, 1], 40)
    codes, labels = rng.integers(0, 2, (40, 2, 10)), rng.integers(0, 2, 40)
    scores = likelihoods_by_hand(codes, log_p)
    labels[:25] = (scores + np.log(opinions))[:25].argmax(axis=1)
    a, b = sharpness_on_a_grid(scores, labels, 2 * 9), sharpness_on_a_grid(np.log(opinions), labels, 1.0)
    assert 0.1 < a < 15
    assert 0.1 < b < 0.9
    assert calibrated(SETTINGS, log_p, HeldOut(codes, opinions, labels)) == pytest.approx((a, b), rel=2e-3)
