"""Sentences: true, and in good English."""

from __future__ import annotations

import re

import numpy as np
import pytest
from made_up_explanation import CHANNELS, CLASSES, made_up

from transpl.markov.explanation import listed


def said(weights, votes, *, answers=None, mode="finetune"):
    """A window whose channels give its classes these probabilities."""
    votes = np.array(votes, float)
    D = len(weights)
    table = np.log(np.broadcast_to(votes.T[:, :, None, None], (3, D, 5, 5)))
    e = made_up(
        n=1,
        weights=weights,
        log_probabilities=np.ascontiguousarray(table),
        answers=np.array([[0.6, 0.2, 0.2] if answers is None else answers]),
        mode=mode,
        channel_names=("total_acc_x", "total_acc_y", "body_acc_z", "body_gyro_z", *"abcdef")[:D],
    )
    return e.sentence(0)


SIT, FLAT, STAND = [0.8, 0.1, 0.1], [0.34, 0.33, 0.33], [0.1, 0.8, 0.1]


def test_the_example_of_the_documentation():
    assert said((1.0, 0.9, 0.12), [SIT, SIT, STAND]) == (
        "sit, 0.76: channel total_acc_x carried 52 % of the vote; body_acc_z was set aside, weight 0.12."
    )


def test_several_channels_that_carry_the_vote_are_joined():
    assert said((1.0, 1.0, 1.0, 0.12), [SIT, SIT, FLAT, STAND]) == (
        "sit, 0.63: channels total_acc_x and total_acc_y carried 82 % of the vote; "
        "body_gyro_z was set aside, weight 0.12."
    )


def test_at_most_three_channels_are_named():
    votes = [[0.5 + i / 100, 0.25, 0.25] for i in range(10)]
    text = said((1.0,) * 10, np.array(votes) / np.sum(votes, axis=1, keepdims=True))
    assert re.search(r": channels f, e and d carried 31 % of the vote\.$", text)


def test_channels_that_carried_alike():
    assert said((1.0,) * 4, [SIT] * 4) == "sit, 0.80: all 4 channels carried about the same part of the vote."
    assert said((0.7, 0.7), [SIT] * 2) == "sit, 0.80: both channels carried about the same part of the vote."


def test_a_single_channel():
    assert said((0.4,), [SIT]) == "sit, 0.80: its one channel, total_acc_x, carried the whole vote."


def test_several_channels_set_aside():
    assert said((1.0, 0.12, 0.001), [SIT, STAND, STAND]).endswith(
        "; body_acc_z and total_acc_y were set aside, weights below 0.01 and 0.12."
    )
    many = said((1.0, *[0.1, 0.2, 0.05, 0.03] * 2), [SIT, *[STAND] * 8])
    assert many.endswith("; 8 channels were set aside, weights 0.03 to 0.20.")
    equal = said((1.0, *[1e-9] * 5), [SIT, *[STAND] * 5])
    assert equal.endswith("; 5 channels were set aside, weights below 0.01.")


def test_channels_that_all_shifted_away():
    assert said((1e-9, 1e-8), [SIT, SIT]) == (
        "sit, 0.80: both channels carried about the same part of the vote; "
        "every channel has shifted away, so all count alike."
    )


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("finetune", "The fine-tuned network answers walk, 0.70."),
        ("source", "The source network, which is not adapted, answers walk, 0.70."),
        ("markov", "With the class proportions given to adapt the answer is walk, 0.70."),
    ],
)
def test_another_answer_is_told(mode, words):
    text = said((1.0,), [SIT], answers=[0.2, 0.1, 0.7], mode=mode)
    assert text == f"sit, 0.80: its one channel, total_acc_x, carried the whole vote. {words}"


def test_parts_are_those_of_the_label():
    e = made_up(3)
    for window in range(len(e)):
        k = e.probabilities[window].argmax()
        parts = e.votes[window, :, k] / e.votes[window, :, k].sum()
        label, p, names, percent = re.match(
            r"(\w+), (\d\.\d\d): channels? ([\w, ]+?) carried (\d+) %", e.sentence(window)
        ).groups()
        chosen = [CHANNELS.index(name) for name in re.split(", | and ", names)]
        assert label == CLASSES[k]
        assert float(p) == round(e.probabilities[window, k], 2)
        assert int(percent) == round(100 * parts[chosen].sum())
        assert set(chosen) == set(np.argsort(-parts)[: len(chosen)])


def test_lists_of_words():
    assert [listed(list("abc")[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
