"""Labels that a person gave: counted and obeyed."""

from __future__ import annotations

import numpy as np

from transpl.markov import TransitionCounts, few_label_counts
from transpl.windows import PseudoLabels, override_labels


def codes(n: int, seed: int, length: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, (n, 2, length))


def test_ten_labelled_windows_count_as_much_as_all_of_their_class():
    y = np.repeat([0, 1], [300, 12])
    source = TransitionCounts.from_codes(codes(312, 0), 4, y, 3)
    few, labels = codes(20, 1), np.repeat([0, 1], 10)
    found = few_label_counts(few, labels, source).counts.sum(axis=(1, 2, 3))
    total = source.counts.sum(axis=(1, 2, 3))
    assert found[0] == total[0]  # 10 windows, 30 times each
    assert found[1] == 10 * 2 * 5  # 12 / 10 is 1: never less than once
    assert found[2] == 0


def test_counts_are_whole_multiples_of_what_was_seen():
    source = TransitionCounts.from_codes(codes(100, 0), 4, np.zeros(100, int), 1)
    few = codes(3, 1)
    few[1, :, 4:] = -1  # shorter: the mean of the three decides
    one = (3 * 10 - 4) / 3
    expected = TransitionCounts.from_codes(few, 4).counts * round(100 * 2 * 5 / (10 * one))
    assert np.array_equal(few_label_counts(few, np.zeros(3, int), source).counts[0], expected)


def test_known_labels_take_the_place_of_pseudo_labels():
    p = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
    before = PseudoLabels.from_probabilities(p)
    after = override_labels(before, np.array([1, -1, 0]))
    assert after.labels.tolist() == [1, 1, 0]
    assert after.confidence.tolist() == [1.0, 0.7, 1.0]
    assert after.probabilities.tolist() == [[0.0, 1.0], [0.3, 0.7], [1.0, 0.0]]
    assert before.labels.tolist() == [0, 1, 0]  # the caller's arrays stay
