"""Labels, confidence and probabilities of a vote."""

from __future__ import annotations

import numpy as np
import pytest

from transpl.markov import confidence
from transpl.methods import TransPLSettings
from transpl.methods.transpl.transpl_state import Vote

# (K, D, n_c, n_c): class 0 stays in code 0, class 1 leaves it.
LOG_P = np.log([[[[0.9, 0.1], [0.5, 0.5]]], [[[0.1, 0.9], [0.5, 0.5]]]])


@pytest.mark.parametrize("rule", ["max", "kl"])
def test_labels_and_confidence_are_those_of_the_probabilities(rule):
    vote = Vote(TransPLSettings(confidence=rule), LOG_P, np.ones(1))
    codes = np.array([[[0, 0, 0]], [[0, 1, 1]]])
    found = vote(codes)
    assert found.labels.tolist() == [0, 1]
    assert np.array_equal(found.probabilities, vote.probabilities(codes))
    assert np.array_equal(found.confidence, confidence(found.probabilities, rule))
