"""One window: the likelihoods that `markov` gives, and a rule that chooses without labels."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import refusal
from tiny_subject import DATA, tiny_subject

from transpl import markov
from transpl.methods import PseudoLabels
from transpl.report.figures.window_likelihoods import likelihood_study, most_telling


def test_likelihoods_are_those_of_the_codes():
    subject = tiny_subject()
    found = likelihood_study(subject, window=70, channel="channel_2")
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    method = subject.method
    codes = method.codes(subject.windows.target)
    expected = markov.log_likelihoods(codes, method.state.class_counts)[7, 2]
    np.testing.assert_allclose([each["log_likelihood"] for each in found["classes"]], expected)
    shares = np.exp(expected) / np.exp(expected).sum()
    np.testing.assert_allclose([each["share"] for each in found["classes"]], shares)
    assert found["codes"] == codes[7, 2].tolist()
    assert found["signal"] == DATA.domain(1).X_train[7, 2].tolist()
    labels = method.one_shot_labels(subject.windows.target)
    assert found["label"] == DATA.class_names[labels.labels[7]]
    assert found["probability"] == pytest.approx(labels.probabilities[7].max())
    rows = np.array(found["matrices"]).sum(axis=-1)
    assert np.all(np.isclose(rows, 1) | (rows == 0))


def test_a_class_without_source_windows_has_no_likelihood():
    subject = tiny_subject()
    method = subject.method
    counts = method.state.class_counts.counts.copy()
    counts[1] = 0
    other = type(method)(method.settings, method.execution)
    other.state = replace(method.state, class_counts=markov.TransitionCounts(counts))
    found = likelihood_study(replace(subject, method=other))
    assert found["classes"][1] == {"name": "class_1", "log_likelihood": None, "share": 0.0}


def test_rule_takes_varied_codes_of_a_trusted_window_in_a_channel_that_agrees():
    #          constant            varied              varied, but not sure
    codes = np.array([[[0, 0, 0, 0], [0, 1, 0, 2]], [[0, 0, 0, 0], [0, 1, 2, 0]], [[0, 1, 1, 1], [2, 1, 0, 2]]])
    likelihoods = np.log(np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.7, 0.3]], [[0.6, 0.4], [0.6, 0.4]]]))
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]])
    labels = PseudoLabels.from_probabilities(p)
    assert most_telling(codes, likelihoods, np.array([1.0, 0.8]), labels) == (1, 1)
    assert most_telling(codes, likelihoods, np.array([1.0, 0.1]), labels) == (0, 0)  # channel 1 hardly counts
    assert most_telling(codes, likelihoods, np.array([1.0, 0.8]), labels, rows=[2]) == (2, 1)
    assert most_telling(codes, likelihoods, np.array([1.0, 0.8]), labels, channels=[0]) == (0, 0)


def test_choice_is_the_same_at_every_call_and_says_so():
    first = likelihood_study(tiny_subject())
    assert first["chosen_by_rule"]
    assert likelihood_study(tiny_subject()) == first
    assert likelihood_study(tiny_subject(), window=first["window"])["channel"] == first["channel"]


def test_unknown_windows_and_channels_are_errors():
    with refusal("window", r"\(0, 10, 20, 30, 40, \.\.\. 230\), got 7"):
        likelihood_study(tiny_subject(), window=7)
    with refusal("channel", "a number 0..2, got 'x'"):
        likelihood_study(tiny_subject(), channel="x")
    with refusal("channel", "got 3"):
        likelihood_study(tiny_subject(), channel=3)
