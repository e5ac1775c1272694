"""SHOT's labels against plain loops, and what the rule promises."""

import math

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.methods.labelling import shot_labels

MODEST = settings(deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def random_case(seed, n=30, K=4, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.dirichlet(np.ones(K), size=n), rng


def cosine_distance(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return 1 - dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def weighted_mean(rows, weights):
    total = sum(weights) + 1e-8
    return [sum(w * x for w, x in zip(weights, column, strict=True)) / total for column in zip(*rows, strict=True)]


def shot_by_loops(g, p):
    """Labels, and distances to the final centroid of every class that has one."""
    rows = []
    for row in g.tolist():
        extended = [*row, 1.0]
        length = math.sqrt(sum(x * x for x in extended))
        rows.append([x / length for x in extended])
    tables = p.tolist()
    classes = {row.index(max(row)) for row in tables}
    centroids = {k: weighted_mean(rows, [row[k] for row in tables]) for k in classes}
    for _ in range(2):
        distances = [{k: cosine_distance(row, c) for k, c in centroids.items()} for row in rows]
        labels = [min(d, key=d.get) for d in distances]
        centroids = {k: weighted_mean(rows, [float(y == k) for y in labels]) for k in sorted(set(labels))}
    return labels, distances


@MODEST
@given(SEEDS)
def test_labels_and_probabilities_are_those_of_plain_loops(seed):
    g, p, _ = random_case(seed)
    labels, distances = shot_by_loops(g, p)
    pseudo = shot_labels(g, p)
    np.testing.assert_array_equal(pseudo.labels, labels)
    for q, confidence, row in zip(pseudo.probabilities, pseudo.confidence, distances, strict=True):
        weights = {k: math.exp(-d / 0.1) for k, d in row.items()}
        expected = [weights.get(k, 0.0) / sum(weights.values()) for k in range(4)]
        np.testing.assert_allclose(q, expected, rtol=1e-6)
        assert confidence == pytest.approx(max(expected), rel=1e-6)


@MODEST
@given(SEEDS)
def test_classes_by_other_names_get_the_same_rows(seed):
    g, p, rng = random_case(seed)
    name = rng.permutation(4)
    renamed = np.empty_like(p)
    renamed[:, name] = p
    plain, other = shot_labels(g, p), shot_labels(g, renamed)
    np.testing.assert_array_equal(other.labels, name[plain.labels])
    np.testing.assert_allclose(other.probabilities[:, name], plain.probabilities, rtol=1e-7)


@MODEST
@given(SEEDS)
def test_a_class_that_nobody_predicts_never_appears(seed):
    g, p, _ = random_case(seed)
    p = np.insert(p, 2, p.max(axis=1) - 1e-3, axis=1)  # a close second in every row
    p /= p.sum(axis=1, keepdims=True)
    pseudo = shot_labels(g, p)
    assert 2 not in pseudo.labels
    np.testing.assert_array_equal(pseudo.probabilities[:, 2], 0)
    np.testing.assert_allclose(pseudo.probabilities.sum(axis=1), 1, rtol=1e-12)


def test_tight_confident_clusters_keep_the_label_of_the_head():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    g = 4 * np.eye(3)[y] + 0.05 * rng.normal(size=(60, 3))
    p = 0.94 * np.eye(3)[y] + 0.02
    np.testing.assert_array_equal(shot_labels(g, p).labels, p.argmax(axis=1))


def test_a_cluster_outvotes_the_rows_that_the_head_gets_wrong():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 3
    g = 4 * np.eye(3)[y] + 0.05 * rng.normal(size=(60, 3))
    head = np.where(np.arange(60) < 12, (y + 1) % 3, y)
    np.testing.assert_array_equal(shot_labels(g, 0.7 * np.eye(3)[head] + 0.1).labels, y)


def test_a_class_that_loses_its_rows_in_the_first_round_is_gone_in_the_second():
    # Class 1 lies between two directions: it is predicted twice, but no row is nearest to it.
    g = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    p = np.array([[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.1, 0.5, 0.4], [0.4, 0.5, 0.1]])
    pseudo = shot_labels(g, p)
    np.testing.assert_array_equal(pseudo.labels, [0, 2, 0, 2])
    np.testing.assert_array_equal(pseudo.probabilities[:, 1], 0)


def test_the_appended_one_lets_length_count():
    # Same direction, different length: without the 1 these rows would be one point.
    g = np.array([[0.1], [0.2], [10.0], [11.0]])
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    np.testing.assert_array_equal(shot_labels(g, p).labels, [0, 0, 1, 1])


def test_confidence_by_entropy_is_that_of_the_head():
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    confidence = shot_labels(np.eye(3), p, confidence="entropy").confidence
    expected = 1 + (0.25 * math.log(0.25) + 0.75 * math.log(0.75)) / math.log(2)
    np.testing.assert_allclose(confidence, [1, 0, expected], atol=1e-15)


@pytest.mark.parametrize("confidence", ["distance", "entropy"])
def test_one_row_one_class_and_no_direction(confidence):
    one_class = shot_labels(np.zeros((3, 2)), np.ones((3, 1)), confidence)
    assert (one_class.labels.tolist(), one_class.confidence.tolist()) == ([0, 0, 0], [1.0, 1.0, 1.0])
    assert shot_labels([[0.0, 0.0]], [[0.3, 0.7]], confidence).labels.tolist() == [1]


def test_input_that_cannot_be_used_is_refused():
    with refusal("confidence"):
        shot_labels(np.eye(2), np.eye(2), confidence="max")
    with refusal("probabilities", r"shape \(2, K\)"):
        shot_labels(np.eye(2), np.eye(3))
