from __future__ import annotations

import logging

import numpy as np
import pytest
from conftest import refusal
from tiny_source import CPU, SHORT, TARGET, K, source_model

from transpl.methods.labelling import (
    Prototypes,
    class_prototypes,
    cluster_probabilities,
    pooled_mean,
    prototype_probabilities,
    stronger_of,
)
from transpl.methods.sp import SP, SPSettings
from transpl.nn.inference import features

AXES = Prototypes(np.eye(K), np.ones(K, bool), np.zeros(K))


@pytest.fixture(scope="module")
def source():
    return source_model()


def sp(source, **changes) -> SP:
    method = SP(SPSettings(**{**SHORT, **changes}), CPU)
    method.start_from(source)
    return method


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("combine", ["sp", "ncp+sp"])
def test_labels_are_those_of_the_rules_on_the_source_networks_features(source, matched, combine):
    z_s, z_t = (features(source.network, windows) for windows in (source.source.windows, TARGET))
    prototypes = class_prototypes(z_s, source.source.y, K, pooled_mean(z_s, z_t))
    clusters, nearest = cluster_probabilities(z_t, prototypes, matched), prototype_probabilities(z_t, prototypes)
    expected = clusters if combine == "sp" else stronger_of(nearest, clusters)
    assert not np.allclose(clusters, nearest)
    labels = sp(source, matched=matched, combine=combine).pseudo_label(TARGET)
    assert np.allclose(labels.probabilities, expected, rtol=1e-12)


def test_matching_can_be_switched_off():
    z = np.random.default_rng(62).normal(size=(12, K))  # of few draws do two clusters change places
    matched, unmatched = (SP(SPSettings(matched=value)).probabilities(z, AXES) for value in (True, False))
    assert np.array_equal(matched, cluster_probabilities(z, AXES))
    assert not np.allclose(matched, unmatched)


def test_fewer_rows_than_classes_are_labelled_by_prototypes():
    z = np.array([[1.0, 0.2, 0.0], [0.0, 0.3, 1.0]])
    assert np.array_equal(SP().probabilities(z, AXES), prototype_probabilities(z, AXES))


def test_a_class_that_no_row_gets_is_logged_and_others_are_not(caplog):
    caplog.set_level(logging.INFO, logger="transpl.methods.sp")
    rows = np.repeat(np.eye(K), 3, axis=0) + 0.01
    SP().probabilities(rows, AXES)
    assert not caplog.messages
    SP().probabilities(rows[:6], AXES)
    assert caplog.messages == ["SP: no target row gets class 2; the target may lack it."]


def test_a_class_without_source_rows_is_not_one_that_the_target_lacks(caplog):
    caplog.set_level(logging.INFO, logger="transpl.methods.sp")
    two = Prototypes(np.diag([1.0, 1.0, 0.0]), np.array([True, True, False]), np.zeros(K))
    SP().probabilities(np.repeat(np.eye(K)[:2], 3, axis=0), two)
    assert not caplog.messages


def test_wrong_settings_are_refused():
    with refusal("matched"):
        SPSettings(matched="no")
    with refusal("combine", "ncp\\+sp"):
        SPSettings(combine="max")
    with refusal("rounds"):
        SPSettings(rounds=0)
