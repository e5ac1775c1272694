"""Noise on a channel, and what becomes of its weight."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from conftest import refusal
from tiny_subject import tiny_subject

from transpl.report.figures.channel_corruption import corruption_study, rank_of, with_noise
from transpl.windows import Windows


def clean_subject():
    """A target that is the source itself: nothing moved."""
    subject = tiny_subject()
    return replace(subject, domains=replace(subject.windows, target=subject.windows.source))


def test_noise_costs_a_channel_its_weight_and_its_rank():
    found = corruption_study([clean_subject()], 1, noise=(0, 1, 3), noise_seeds=2)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["channel_name"] == "channel_1"
    (pair,) = found["pairs"]
    for rule in pair["rules"].values():
        assert np.shape(rule["ranks"]) == np.shape(rule["weights"]) == np.shape(rule["distances"]) == (3, 2)
        assert rule["ranks"][0] == [2.0, 2.0]  # all three alike, so each has the mean rank
        assert rule["ranks"][-1] == [3.0, 3.0]
        assert rule["weights"][0] == pytest.approx([1.0, 1.0])
        assert max(rule["weights"][-1]) < 0.999
    assert corruption_study([clean_subject()], 1, noise=(0, 1, 3), noise_seeds=2) == found


def test_only_the_noisy_channel_is_encoded_again():
    """The same numbers as from whole windows with noise on one channel."""
    subject = tiny_subject()
    method, target = subject.method, subject.windows.target
    (pair,) = corruption_study([subject], 2, noise=(0, 0.7), noise_seeds=1)["pairs"]
    deviation = target.values[:, 2].std(dtype=np.float64)
    assert pair["standard_deviation"] == pytest.approx(deviation)
    values = target.values.copy()
    values[:, [2]] = with_noise(Windows(values[:, [2]], target.lengths), 0.7 * deviation, 0).values
    distances = method.channel_distances(method.count(Windows(values, target.lengths)))
    assert pair["rules"]["floor"]["distances"][1] == pytest.approx([distances[2]])
    assert pair["rules"]["floor"]["ranks"][1] == [1 + (distances < distances[2]).sum()]
    assert pair["rules"]["floor"]["weights"][1] == pytest.approx([np.exp(-((distances[2] / 0.2) ** 2))])


def test_noise_leaves_the_callers_windows_and_the_padding_alone():
    values = np.zeros((2, 1, 6), np.float32)
    windows = Windows(values, np.array([6, 4]))
    found = with_noise(windows, 1.0, seed=3)
    assert not values.any()
    assert found.values.dtype == np.float32
    assert not found.values[1, 0, 4:].any()
    assert found.values[0].all()
    np.testing.assert_allclose(with_noise(windows, 2.0, seed=3).values, 2 * found.values, rtol=1e-6)
    assert not np.array_equal(with_noise(windows, 1.0, seed=4).values, found.values)


def test_rank_one_is_the_least_distance_and_equals_share():
    distances = np.array([0.3, 0.1, 0.1, 0.5])
    assert [rank_of(c, distances) for c in range(4)] == [3, 1.5, 1.5, 4]


def test_default_channel_is_the_papers_or_the_most_trusted():
    subject = tiny_subject()
    found = corruption_study([subject], noise=(0, 1), noise_seeds=1)
    assert found["channel"] == subject.method.channel_distances(subject.counts_of_target()).argmin()
    values = np.tile(subject.windows.target.values, (1, 3, 1))
    names = tuple(f"c{d}" for d in range(9))
    state = subject.method.state
    method = type(subject.method)(subject.method.settings, subject.method.execution)
    counts = type(state.class_counts)(np.tile(state.class_counts.counts, (1, 3, 1, 1)))
    method.state = replace(state, class_counts=counts)
    domains = replace(subject.windows, target=Windows(values, subject.windows.target.lengths))
    wide = replace(subject, method=method, channel_names=names, domains=domains)
    assert corruption_study([wide], noise=(0, 1), noise_seeds=1)["channel_name"] == "c6"


@pytest.mark.parametrize("noise", [(1,), (1, 0), (0, 0)])
def test_levels_must_grow(noise):
    with refusal("noise"):
        corruption_study([tiny_subject()], noise=noise)


def test_negative_noise_and_no_draws_are_errors():
    with refusal("noise"):
        corruption_study([tiny_subject()], noise=(-1, 1))
    with refusal("noise_seeds"):
        corruption_study([tiny_subject()], noise_seeds=0)
