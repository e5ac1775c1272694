"""Confidence by the labels that stayed the same, with votes whose answers are written down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from transpl.markov.calibration import MOST_TEMPERED, tempered
from transpl.methods.tempering import temper_by_kept_labels

BEFORE = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]])
AFTER = np.array([[0.99, 0.01], [0.9, 0.1], [0.05, 0.95], [0.7, 0.3]])  # the last has another label


class Written(NamedTuple):
    answers: NDArray[np.float64]

    def probabilities(self, rows):
        return self.answers[rows]


def found(rows=4, chunk=4, after=AFTER):
    parts = [slice(first, min(first + chunk, rows)) for first in range(0, rows, chunk)]
    return temper_by_kept_labels(Written(BEFORE), Written(after), ((part, part) for part in parts))


def test_mean_confidence_is_the_share_of_kept_labels():
    c = found()
    assert c < 1
    assert tempered(AFTER, c).max(axis=1).mean() == pytest.approx((3 + 1) / (4 + 2))


def test_chunks_do_not_matter():
    assert found(chunk=1) == found(chunk=3) == found()


def test_a_single_window_is_neither_certain_nor_worthless():
    assert tempered(AFTER[:1], found(rows=1)).max() == pytest.approx(2 / 3)


def test_a_vote_that_is_less_sure_anyway_stays_as_it_is():
    assert found(after=BEFORE.clip(0.4, 0.6)) == 1.0


def test_if_no_label_stayed_confidence_is_next_to_nothing():
    assert found(after=1 - BEFORE) == MOST_TEMPERED
