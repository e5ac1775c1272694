"""A channel's margin is shared out among its transitions, also where they cancel each other out."""

from __future__ import annotations

import numpy as np
import pytest

from transpl.markov.contributions import transition_parts


def parts_of_one_channel(scores, prior=0.0, share=1.0):
    """Of two classes, whose probabilities follow from the odds."""
    scores = np.array([scores])
    p = 1 / (1 + np.exp(-scores.sum() - prior))
    a, b = np.array([share * p]), np.array([share * (1 - p)])
    return transition_parts(a + b, scores, prior)[0].tolist(), float(a[0] - b[0])


def test_by_hand():
    # Odds of log 2 + log 2 are 4 to 1: p = 4/5 against 1/5, of which each transition has half.
    transitions, channel = parts_of_one_channel([np.log(2), np.log(2)], share=0.5)
    assert channel == pytest.approx(0.3)
    assert transitions == pytest.approx([0.15, 0.15])
    # The prior takes one of the two back: log 2 in all, p = 2/3, and each transition has what all have together.
    transitions, channel = parts_of_one_channel([np.log(2), np.log(2)], prior=-np.log(2))
    assert channel == pytest.approx(1 / 3)
    assert transitions == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.parametrize("nearly", [0.0, 1e-12, -1e-9])
def test_transitions_that_cancel_each_other_out_have_the_limit_of_their_parts(nearly):
    # tanh(o / 2) / o -> 1/2: half of each score, and nothing in all.
    transitions, channel = parts_of_one_channel([1.0 + nearly, -1.0], share=0.6)
    assert channel == pytest.approx(0.0, abs=1e-9)
    assert transitions == pytest.approx([0.3, -0.3], abs=1e-9)


def test_infinite_odds_leave_nothing_to_the_transitions():
    assert transition_parts(np.array([1.0]), np.array([[np.inf, 1.0]]), 0.0).tolist() == [[0.0, 0.0]]
