"""Which windows of the target are counted to the classes, and how much they weigh beside the source's."""

from __future__ import annotations

import numpy as np
import pytest

from transpl.markov import TransitionCounts
from transpl.methods.refinement import counted_to_classes, surest_of_each_class, weighed_against_source
from transpl.methods.transpl_settings import TransPLPlusSettings
from transpl.methods.vote import Coded, Vote


def counts(total):
    """(1, 1, 2, 2) with `total` transitions."""
    return TransitionCounts(np.array([[[[total - 1, 1], [0, 0]]]]))


@pytest.mark.parametrize(("source", "target", "weight"), [(100, 100, 10), (100, 400, 2), (400, 100, 40), (3, 5000, 1)])
def test_the_target_counts_ten_times_the_source_whichever_is_larger(source, target, weight):
    found = weighed_against_source(counts(target), counts(source))
    assert found == TransitionCounts(counts(target).counts * weight)


def test_a_target_without_transitions_adds_nothing():
    nothing = TransitionCounts.empty(1, 2, 1)
    assert weighed_against_source(nothing, counts(10)) == nothing


def test_the_surest_of_each_class_by_hand():
    labels, confidence = np.array([0, 0, 0, 1, 2, 2]), np.array([0.5, 0.9, 0.7, 0.1, 0.4, 0.4])
    assert surest_of_each_class(labels, confidence, 0.5).tolist() == [False, True, True, True, True, False]
    assert surest_of_each_class(labels, confidence, 1.0).all()


def test_a_share_is_what_it_says():
    assert surest_of_each_class(np.zeros(100, int), np.arange(100.0), 0.07).sum() == 7


def test_windows_of_a_known_label_are_always_counted():
    labels, confidence = np.zeros(4, int), np.array([np.inf, 0.9, np.inf, np.inf])
    assert surest_of_each_class(labels, confidence, 0.25).tolist() == [True, False, True, True]


@pytest.mark.parametrize("surest_first", [True, False])
def test_windows_whose_probability_is_one_are_told_apart_all_the_same(surest_first):
    """Class 0 stays in code 0: windows that leave it once are less sure, though all are sure to the last bit."""
    log_p = np.log([[[[0.9, 0.1], [0.5, 0.5]]], [[[0.1, 0.9], [0.5, 0.5]]]])  # (K, D, n_c, n_c)
    vote = Vote(TransPLPlusSettings(), log_p, np.ones(1), sharpness=40.0)
    codes = np.zeros((6, 1, 10), np.int64)
    codes[3:, 0, -1] = 1
    codes = codes if surest_first else codes[::-1]
    assert (vote.probabilities(Coded(codes))[:, 0] == 1.0).all()
    found = counted_to_classes(vote, lambda: [(slice(0, 6), Coded(codes))], share=0.5)
    assert found.counts[0, 0].tolist() == [[3 * 9, 0], [0, 0]]
