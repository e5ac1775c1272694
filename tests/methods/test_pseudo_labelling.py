from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal

from transpl.methods.pseudo_labelling import (
    Centroids,
    check_probabilities,
    cosine_distances,
    predicted_classes,
    refined_centroids,
    soft_centroids,
)


def test_soft_centroids_are_weighted_means():
    g, p = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(soft_centroids(g, p), [[0.75, 0.25], [0.25, 0.75]], rtol=1e-7)


def test_a_class_without_weight_has_a_centroid_of_zeros():
    np.testing.assert_array_equal(soft_centroids(np.ones((2, 3)), np.array([[1.0, 0.0], [1.0, 0.0]]))[1], 0)


def test_cosine_distance_ignores_length_and_absent_classes():
    centroids = Centroids(np.array([[5.0, 0.0], [0.0, 0.1], [-2.0, 0.0], [0.0, 0.0]]), np.array([1, 1, 1, 0], bool))
    np.testing.assert_allclose(cosine_distances(np.array([[1.0, 0.0]]), centroids), [[0, 1, 2, np.inf]], atol=1e-15)


def test_predicted_classes_are_those_on_top_of_some_row():
    assert predicted_classes(np.array([[0.4, 0.3, 0.3], [0.1, 0.3, 0.6]])).tolist() == [True, False, True]


def test_a_class_that_loses_every_row_is_not_present():
    # Class 1 lies between two directions: it is predicted twice, but no row is nearest to it.
    g = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    p = np.array([[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.1, 0.5, 0.4], [0.4, 0.5, 0.1]])
    assert predicted_classes(p).all()
    centroids = refined_centroids(g, p)
    assert centroids.present.tolist() == [True, False, True]
    np.testing.assert_allclose(centroids.c, [[1, 0], [0, 0], [0, 1]], rtol=1e-7)


def test_only_the_named_classes_are_given():
    g, p = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.9, 0.1], [0.1, 0.9]])
    centroids = refined_centroids(g, p, predicted=np.array([False, True]))
    assert centroids.present.tolist() == [False, True]
    np.testing.assert_allclose(centroids.c, [[0, 0], [0.5, 0.5]], rtol=1e-7)


def test_probabilities_are_scaled_to_sum_to_one():
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=200)
    np.testing.assert_allclose(check_probabilities(p.astype(np.float32)), p, rtol=1e-6)
    sums = check_probabilities(p.astype(np.float32)).sum(axis=1)
    np.testing.assert_allclose(sums, 1, rtol=1e-14)  # better than float32


@pytest.mark.parametrize(
    "p", [[0.5, 0.5], np.zeros((0, 3)), np.zeros((3, 0)), [[2.0, 3.0]], [[1.5, -0.5]], [[np.nan, 1.0]]]
)
def test_what_is_no_probability_is_refused(p):
    with refusal("probabilities"):
        check_probabilities(p)
