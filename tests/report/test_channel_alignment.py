"""Two measures of how far a channel moved."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tiny_subject import tiny_subject

from transpl.report.figures.channel_alignment import POINTS, alignment_study, prototype_distances, rank_correlation
from transpl.windows import Windows


def test_study_has_the_methods_distances_and_plain_points():
    subject = tiny_subject()
    found = alignment_study(subject)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    method, counts = subject.method, subject.counts_of_target()
    assert [each["distance"] for each in found["channels"]] == pytest.approx(method.channel_distances(counts).tolist())
    assert [each["weight"] for each in found["channels"]] == pytest.approx(method.channel_weights(counts).tolist())
    for each in found["channels"]:
        assert each["distances"]["floor"] == each["distance"]
        assert np.shape(each["source"]) == np.shape(each["target"]) == (24, 2)
        assert 0 < sum(each["variance_shares"]) <= 1 + 1e-9
    assert alignment_study(subject) == found


def test_a_target_that_is_the_source_has_not_moved():
    subject = tiny_subject()
    same = replace(subject.windows, target=subject.windows.source)
    found = alignment_study(replace(subject, domains=same))
    for each in found["channels"]:
        assert each["distances"] == {"additive": pytest.approx(0), "floor": 0}
        assert each["prototype_distance"] == pytest.approx(0)
        assert each["source"] == each["target"]
    assert found["rank_correlations"]["floor"] is None


def test_prototypes_are_means():
    source, target = np.zeros((2, 3, 4)), np.ones((5, 3, 4))
    source[:, 1] = 1.0
    assert prototype_distances(source, target).tolist() == [2.0, 0.0, 2.0]


def test_rank_correlation():
    a = np.array([1.0, 2.0, 3.0])
    assert rank_correlation(a, np.exp(a)) == pytest.approx(1)
    assert rank_correlation(a, -a) == pytest.approx(-1)
    assert rank_correlation(a, np.ones(3)) is None
    assert rank_correlation(a[:2], a[:2]) is None


def test_few_points_stand_for_many():
    subject = tiny_subject()
    many = Windows(np.tile(subject.windows.source.values, (14, 1, 1)), np.tile(subject.windows.source.lengths, 14))
    found = alignment_study(replace(subject, domains=replace(subject.windows, source=many)))
    assert found["source_windows"] == 14 * 24
    assert len(found["channels"][0]["source"]) == POINTS
