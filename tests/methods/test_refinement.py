"""Which windows of the target are counted to the classes, and how much they weigh beside the source's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from transpl.markov import TransitionCounts
from transpl.methods.refinement import counted_to_classes, following, surest_of_each_class, weighed_against_source
from transpl.methods.transpl_settings import TransPLPlusSettings
from transpl.methods.vote import Coded, Vote

# (K, D, n_c, n_c): class 0 stays in code 0, class 1 leaves it.
LOG_P = np.log([[[[0.9, 0.1], [0.5, 0.5]]], [[[0.1, 0.9], [0.5, 0.5]]]])


def staying(n, leaving_once):
    """Codes (n, 1, 10) of class 0, the last of which leave code 0 at their end."""
    codes = np.zeros((n, 1, 10), np.int64)
    codes[n - leaving_once :, 0, -1] = 1
    return codes


def chunks_of(codes):
    return lambda: [(slice(0, len(codes)), Coded(codes))]


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
    vote = Vote(TransPLPlusSettings(), LOG_P, np.ones(1), sharpness=40.0)
    codes = staying(6, leaving_once=3)
    codes = codes if surest_first else codes[::-1]
    assert (vote.probabilities(Coded(codes))[:, 0] == 1.0).all()
    found = counted_to_classes(vote, chunks_of(codes), share=0.5)
    assert found.counts[0, 0].tolist() == [[3 * 9, 0], [0, 0]]


def test_what_a_person_said_comes_before_windows_that_are_surer():
    """One of six is wanted: the two that the person named, though they are the least sure; their word is taken."""
    vote = Vote(TransPLPlusSettings(), LOG_P, np.ones(1), sharpness=40.0)
    codes = staying(6, leaving_once=3)
    said = np.array([-1, -1, -1, 0, 0, -1])
    found = counted_to_classes(vote, chunks_of(codes), 1 / 6, said)
    assert found.counts[0, 0].tolist() == [[2 * 8, 2], [0, 0]]
    said[3] = 1
    found = counted_to_classes(vote, chunks_of(codes), 1 / 6, said)
    assert found.counts[:, 0].tolist() == [[[8, 1], [0, 0]], [[8, 1], [0, 0]]]


def test_the_target_is_weighed_against_the_source_and_joins_all_that_is_known(monkeypatch):
    """40 transitions of the source, 400 of all that is known, 54 of the target: w = round(10 * 40 / 54) = 7."""
    settings = replace(TransPLPlusSettings(), refine_rounds=1, refine_share=1.0, epsilon=0.3)
    source, known = (TransitionCounts(np.full((2, 1, 2, 2), each)) for each in (5, 50))
    asked = []
    monkeypatch.setattr(
        "transpl.methods.refinement.class_log_probabilities", lambda *about: asked.append(about) or LOG_P
    )
    found = following(Vote(settings, LOG_P, np.ones(1)), chunks_of(staying(6, leaving_once=0)), source, known)
    assert found.counts[:, 0].tolist() == [[[7 * 54, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert asked == [(known + found, "pseudocount", 0.3)]
