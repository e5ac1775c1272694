"""The parts of an explanation: they add up, by loops and under permutation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from conftest import refusal
from made_up_explanation import CHANNELS, CLASSES, made_up

from transpl.markov import confidence

PRIOR = np.array([0.2, 0.3, 0.5])
CASES = [
    {},
    {"ragged": True},
    {"smoothing": "additive"},
    {"length": "codes"},
    {"prior": PRIOR, "prior_temperature": 2.5},
    {"ragged": True, "length": "codes", "prior": PRIOR},
    {"absent": 1},
    {"weights": (1e-9, 1e-8, 1e-9, 1e-8)},
    {"weights": (0.4,)},
    {"shares": np.array([0.75, 0.0, 0.0, 0.25]), "absent": 1},
]


def softmax(scores):
    parts = [math.exp(score - max(scores)) for score in scores]
    return [part / sum(parts) for part in parts]


def by_loops(e, w):
    """Probabilities of one window from the stored numbers, in plain Python."""
    K = len(e.classes)
    prior = [0.0 if e.prior is None else math.log(e.prior[k]) / e.prior_temperature for k in range(K)]
    y = [0.0] * K
    for d, share in enumerate(e.shares.tolist()):
        s = [code for code in e.codes[w, d].tolist() if code >= 0]
        L = len(s) - 1 + (e.length == "codes")
        scores = [sum(float(e.log_probabilities[k, d, i, j]) for i, j in pairwise(s)) / L for k in range(K)]
        says = softmax([scores[k] + prior[k] for k in range(K)])
        y = [y[k] + share * says[k] for k in range(K)]
    return [p / sum(y) for p in y]


@pytest.mark.parametrize("case", CASES)
def test_stored_numbers_give_the_probabilities(case):
    e = made_up(**case)
    np.testing.assert_allclose(e.probabilities, [by_loops(e, w) for w in range(len(e))], atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_parts_add_up(case):
    e = made_up(1, **case)
    np.testing.assert_allclose(e.votes.sum(axis=1), e.probabilities, atol=1e-12)
    np.testing.assert_allclose(e.probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(e.posteriors.sum(axis=2), 1, atol=1e-12)
    sums = e.transition_log_probabilities.sum(axis=2) / e.divisors[..., None]
    np.testing.assert_allclose(sums, e.log_likelihoods, atol=1e-12)


def test_labels_and_confidence_are_those_of_the_vote():
    e = made_up()
    assert e.labels.tolist() == [CLASSES[k] for k in e.probabilities.argmax(axis=1)]
    assert e.answer_labels.tolist() == [CLASSES[k] for k in e.answers.argmax(axis=1)]
    assert np.array_equal(e.confidence, e.probabilities.max(axis=1))
    assert np.array_equal(replace(e, confidence_rule="kl").confidence, confidence(e.probabilities, "kl"))


def test_a_class_without_source_rows_gets_probability_zero():
    assert (made_up(absent=1).probabilities[:, 1] == 0).all()


def test_order_of_classes_and_channels_changes_nothing_else():
    e = made_up(prior=PRIOR)
    c, d = np.array([2, 0, 1]), np.array([3, 1, 0, 2])
    turned = replace(
        e,
        classes=e.classes[c],
        channel_names=tuple(e.channel_names[i] for i in d),
        codes=e.codes[:, d],
        log_probabilities=e.log_probabilities[c][:, d],
        distances=e.distances[d],
        weights=e.weights[d],
        shares=e.shares[d],
        answers=e.answers[:, c],
        prior=e.prior[c],
        signals=e.signals[:, d],
    )
    np.testing.assert_allclose(turned.probabilities, e.probabilities[:, c], atol=1e-12)
    np.testing.assert_allclose(turned.posteriors, e.posteriors[:, d][..., c], atol=1e-12)
    assert [turned.sentence(w) for w in range(len(e))] == [e.sentence(w) for w in range(len(e))]
    one, other = e.top_evidence(3), turned.top_evidence(3)
    assert [t.channel for t in one.transitions_for] == [t.channel for t in other.transitions_for]
    assert [t.contribution for t in one.transitions_for] == pytest.approx(
        [t.contribution for t in other.transitions_for], abs=1e-12
    )


@pytest.mark.parametrize(
    ("rows", "kept"),
    [(3, [3]), (slice(2, 5), [2, 3, 4]), ([5, 1], [5, 1]), (np.arange(12) > 9, [10, 11]), (-1, [11]), (slice(0), [])],
)
def test_rows_are_chosen_whole(rows, kept):
    e = made_up()
    some, kept = e[rows], np.array(kept, int)
    assert len(some) == len(kept)
    assert some.windows.tolist() == (100 + kept).tolist()
    assert np.array_equal(some.codes, e.codes[kept])
    assert np.array_equal(some.signals, e.signals[kept])
    assert np.array_equal(some.nearest.rows, e.nearest.rows[kept])
    np.testing.assert_allclose(some.probabilities, e.probabilities[kept], rtol=1e-15)


def test_a_choice_may_lack_signals_and_neighbours():
    e = made_up(signals=None, nearest=None)[2]
    assert (e.signals, e.nearest) == (None, None)


@pytest.mark.parametrize("window", [12, -1, 1.5, True, "0"])
def test_a_window_that_is_not_there_is_refused(window):
    with refusal("window", r"0\.\.11"):
        made_up().sentence(window)


@pytest.mark.parametrize(
    "change",
    [
        {"answers": np.ones((12, 2))},
        {"distances": np.ones(3)},
        {"prior": np.ones(2)},
        {"signals": np.ones((12, 4))},
        {"log_probabilities": np.zeros((3, 4, 5, 4))},
        {"windows": np.arange(3)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change):
    with refusal(next(iter(change))):
        made_up(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "guess"},
        {"length": "long"},
        {"confidence_rule": "x"},
        {"prior_temperature": 0},
    ],
)
def test_settings_that_do_not_exist_are_refused(change):
    with refusal(next(iter(change))):
        made_up(**change)


def test_channel_names_are_kept_as_they_are():
    assert made_up(channel_names=list(CHANNELS)).channel_names == CHANNELS
