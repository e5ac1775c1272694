from __future__ import annotations

import logging
from itertools import permutations

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from tiny_source import CPU, SHORT, TARGET, K, source_model

from transpl.methods.ncp import Prototypes, class_prototypes, pooled_mean, prototype_probabilities
from transpl.methods.pseudo_labelling import unit_rows
from transpl.methods.sp import (
    SP,
    SPSettings,
    cluster_probabilities,
    cluster_prototypes,
    lloyd,
    match_clusters,
    stronger_of,
)
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
    (message,) = caplog.messages
    assert "class 2;" in message


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


MODEST = settings(deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def cost(c, mu, sigma):
    return sum(float(np.linalg.norm(c[j] - mu[k])) for j, k in enumerate(sigma))


def separated(seed, K=4, per_class=12, turn=0.0, noise=0.05):
    """Rows around the axes, turned by `turn` radians in every pair of neighbouring coordinates."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(K), per_class))
    z = np.eye(K)[y] + noise * rng.normal(size=(len(y), K))
    for a in range(0, K - 1, 2):
        plane = [a, a + 1]
        z[:, plane] = z[:, plane] @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return z, y


# matching


@MODEST
@given(SEEDS, st.integers(1, 6))
def test_permuted_prototypes_are_recovered_exactly(seed, K):
    rng = np.random.default_rng(seed)
    mu, sigma = unit_rows(rng.normal(size=(K, 8))), rng.permutation(K)
    np.testing.assert_array_equal(match_clusters(mu[sigma], mu), sigma)


@MODEST
@given(SEEDS, st.integers(1, 5))
def test_the_matching_is_the_cheapest_of_all_permutations(seed, K):
    rng = np.random.default_rng(seed)
    c, mu = rng.normal(size=(K, 3)), rng.normal(size=(K, 3))
    sigma = match_clusters(c, mu)
    assert sorted(sigma.tolist()) == list(range(K))
    cheapest = min(cost(c, mu, order) for order in permutations(range(K)))
    assert cost(c, mu, sigma) == pytest.approx(cheapest, rel=1e-12)
    assert cost(c, mu, sigma) <= cost(c, mu, range(K)) + 1e-12


def test_a_nearer_pair_gives_way_where_the_sum_gains():
    # Cluster 0 is nearest to class 0. Each to its own costs 1 + 5, crossed 2 + 2.
    assert match_clusters(np.array([[1.0], [-2.0]]), np.array([[0.0], [3.0]])).tolist() == [1, 0]


# k-means


@MODEST
@given(SEEDS)
def test_without_empty_clusters_the_centres_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    u, start = unit_rows(rng.normal(size=(40, 3))), unit_rows(rng.normal(size=(3, 3)))
    centres = lloyd(u, start)
    if len(np.unique(np.linalg.norm(u[:, None] - start, axis=2).argmin(axis=1))) == 3:
        theirs = KMeans(3, init=start, n_init=1, max_iter=100, tol=0, algorithm="lloyd").fit(u).cluster_centers_
        np.testing.assert_allclose(centres, theirs, atol=1e-9)


def test_an_empty_cluster_keeps_its_centre():
    u = np.array([[1.0, 0.0], [0.9, 0.1]])
    start = np.array([[1.0, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(lloyd(u, start), [[0.95, 0.05], [-1.0, 0.0]], rtol=1e-15)


def test_the_number_of_steps_is_limited():
    rng = np.random.default_rng(0)
    u, start = rng.normal(size=(200, 2)), rng.normal(size=(8, 2))
    np.testing.assert_array_equal(lloyd(u, start, steps=0), start)
    assert not np.array_equal(lloyd(u, start, steps=1), lloyd(u, start, steps=100))


# cluster_probabilities


def test_perfect_clusters_are_labelled_without_a_mistake_after_a_turn():
    z_s, y_s = separated(0)
    z_t, y_t = separated(1, turn=0.7)  # of the 0.785 that would make the classes even
    prototypes = class_prototypes(z_s, y_s, 4)
    np.testing.assert_array_equal(cluster_probabilities(z_t, prototypes).argmax(axis=1), y_t)
    nearer = prototype_probabilities(z_t, prototypes).max(axis=1) < cluster_probabilities(z_t, prototypes).max(axis=1)
    assert nearer.all()  # the centres have gone to the rows


@MODEST
@given(SEEDS)
def test_the_order_of_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    prototypes = class_prototypes(*separated(seed), 4)
    z = rng.normal(size=(30, 4))
    order = rng.permutation(30)
    shuffled = cluster_probabilities(z[order], prototypes)
    np.testing.assert_allclose(shuffled, cluster_probabilities(z, prototypes)[order], rtol=1e-9)


@MODEST
@given(SEEDS)
def test_classes_by_other_names_get_the_same_clusters(seed):
    rng = np.random.default_rng(seed)
    z_s, y = separated(seed, noise=0.5)
    z, name = rng.normal(size=(30, 4)), rng.permutation(4)
    p = cluster_probabilities(z, class_prototypes(z_s, y, 4))
    renamed = cluster_probabilities(z, class_prototypes(z_s, name[y], 4))
    np.testing.assert_allclose(renamed[:, name], p, rtol=1e-9)


def test_matching_costs_no_more_than_identity_and_at_times_less():
    gains = []
    for seed in range(30):
        prototypes = class_prototypes(*separated(seed, noise=1.0), 4)
        z = np.random.default_rng(seed).normal(size=(20, 4))
        matched, own = (cluster_prototypes(z, prototypes, flag).mu for flag in (True, False))
        gains.append(cost(own, prototypes.mu, range(4)) - cost(matched, prototypes.mu, range(4)))
        assert {tuple(c) for c in matched.round(9)} == {tuple(c) for c in own.round(9)}
    assert min(gains) > -1e-12
    assert max(gains) > 0.01


def test_a_class_absent_from_the_source_gets_no_cluster():
    z_s, y = separated(2)
    prototypes = class_prototypes(z_s[y != 1], y[y != 1], 4)
    p = cluster_probabilities(separated(3)[0], prototypes)
    np.testing.assert_array_equal(p[:, 1], 0)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(cluster_prototypes(separated(3)[0], prototypes).mu[1], 0)


@pytest.mark.parametrize("n", [1, 3])
def test_fewer_rows_than_classes_fall_back_to_the_prototypes(n):
    prototypes = class_prototypes(*separated(4), 4)
    z = separated(5)[0][:n]
    np.testing.assert_array_equal(cluster_probabilities(z, prototypes), prototype_probabilities(z, prototypes))


def test_as_many_rows_as_present_classes_do_cluster():
    z_s, y = separated(6)
    prototypes = class_prototypes(z_s[y < 3], y[y < 3], 4)
    z = np.eye(4)[:3] + 0.2
    np.testing.assert_allclose(cluster_prototypes(z, prototypes).mu[:3], unit_rows(z), rtol=1e-12)


def test_centres_become_unit_vectors():
    mu = cluster_prototypes(separated(8, noise=0.5)[0], class_prototypes(*separated(7), 4)).mu
    np.testing.assert_allclose(np.linalg.norm(mu, axis=1), 1, rtol=1e-12)


def test_a_single_class_takes_every_row():
    prototypes = class_prototypes([[1.0, 0.0]], [0], 1)
    np.testing.assert_array_equal(cluster_probabilities([[0.0, 1.0], [1.0, 0.0]], prototypes), [[1.0], [1.0]])


# stronger_of


def test_the_stronger_opinion_counts_class_by_class():
    p, q = [[0.5, 0.5, 0.0]], [[0.2, 0.0, 0.8]]
    np.testing.assert_allclose(stronger_of(p, q), [[0.5 / 1.8, 0.5 / 1.8, 0.8 / 1.8]], rtol=1e-15)
    np.testing.assert_allclose(stronger_of(p, p), p, rtol=1e-15)
    np.testing.assert_array_equal(stronger_of(p, q), stronger_of(q, p))
