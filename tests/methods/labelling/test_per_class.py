"""The most confident share of each class."""

import itertools

import numpy as np
import pytest
from conftest import refusal

from transpl.methods.labelling import most_confident_per_class, round_share

LABELS = np.array([0, 0, 0, 0, 2, 2, 5])
CONFIDENCE = np.array([0.1, 0.9, 0.5, 0.7, 0.3, 0.2, 0.0])


@pytest.mark.parametrize(
    ("share", "rows"),
    [(0.0, []), (0.01, [1, 4, 6]), (0.5, [1, 3, 4, 6]), (0.75, [1, 2, 3, 4, 6]), (1.0, [0, 1, 2, 3, 4, 5, 6])],
)
def test_each_predicted_class_gives_its_share_and_at_least_one(share, rows):
    assert np.flatnonzero(most_confident_per_class(LABELS, CONFIDENCE, share)).tolist() == rows


def test_a_share_is_what_it_says():
    assert most_confident_per_class(np.zeros(90, int), np.arange(90.0), 0.7).sum() == 63


def test_selections_of_growing_shares_contain_each_other():
    rng = np.random.default_rng(0)
    labels, confidence = rng.integers(0, 6, 200), rng.random(200).round(1)  # with ties
    chosen = [most_confident_per_class(labels, confidence, round_share(i, 11)) for i in range(11)]
    assert not chosen[0].any()
    assert chosen[-1].all()
    assert all((a <= b).all() for a, b in itertools.pairwise(chosen))


def test_of_equal_confidence_the_first_rows_are_taken():
    assert most_confident_per_class([1, 1, 1, 1], [0.5] * 4, 0.5).tolist() == [True, True, False, False]


def test_no_rows_are_no_matter():
    assert most_confident_per_class(np.zeros(0, int), [], 0.5).tolist() == []


def test_shares_of_rounds_go_from_nothing_to_all():
    assert [round_share(i, 5) for i in range(6)] == [0, 0.25, 0.5, 0.75, 1, 1]
    assert round_share(0, 1) == 1.0


def test_input_that_cannot_be_used_is_refused():
    with refusal("share"):
        most_confident_per_class(LABELS, CONFIDENCE, 1.1)
    with refusal("confidence"):
        most_confident_per_class(LABELS, CONFIDENCE[1:], 0.5)
    with refusal("rounds"):
        round_share(0, 0)
