"""NCP: the printed numbers, what may not matter, and rows or classes that are missing."""

import math

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.methods.labelling import Prototypes, class_prototypes, pooled_mean, prototype_probabilities, unit_rows

MODEST = settings(deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)


def random_case(seed, K=4, d=5, n_s=24, n_t=15):
    """Source features with every class, and target features."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_s) % K)
    return rng.normal(size=(n_s, d)), y, rng.normal(size=(n_t, d)), rng


def probabilities_by_loops(z_s, y, z_t, K, mean):
    def unit(v):
        length = math.sqrt(sum(x * x for x in v))
        return [x / length for x in v] if length else list(v)

    def minus_mean(v):
        return [x - m for x, m in zip(v, mean, strict=True)]

    mu = {}
    for k in range(K):
        members = [unit(minus_mean(v)) for v, label in zip(z_s.tolist(), y.tolist(), strict=True) if label == k]
        if members:
            mu[k] = unit([sum(column) / len(members) for column in zip(*members, strict=True)])
    result = np.zeros((len(z_t), K))
    for i, v in enumerate(z_t.tolist()):
        weights = {k: math.exp(-math.dist(unit(minus_mean(v)), m)) for k, m in mu.items()}
        for k, weight in weights.items():
            result[i, k] = weight / sum(weights.values())
    return result


def test_two_axes_and_one_row_are_as_in_the_specification():
    prototypes = class_prototypes([[1.0, 0.0], [0.0, 1.0]], [0, 1], 2)
    p = prototype_probabilities([[0.6, 0.8]], prototypes)
    np.testing.assert_allclose(p, [[0.434879, 0.565121]], atol=5e-7)


@pytest.mark.parametrize("centred", [False, True])
def test_probabilities_are_those_of_plain_loops(centred):
    z_s, y, z_t, _ = random_case(0)
    y[y == 2] = 0  # class 2 is absent
    mean = pooled_mean(z_s, z_t) if centred else None
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4, mean))
    expected = probabilities_by_loops(z_s, y, z_t, 4, np.zeros(5) if mean is None else mean)
    np.testing.assert_allclose(p, expected, rtol=1e-12)


@MODEST
@given(SEEDS)
def test_classes_by_other_names_get_the_same_probabilities(seed):
    z_s, y, z_t, rng = random_case(seed)
    name = rng.permutation(4)
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4))
    renamed = prototype_probabilities(z_t, class_prototypes(z_s, name[y], 4))
    np.testing.assert_allclose(renamed[:, name], p, rtol=1e-10)


@MODEST
@given(SEEDS, st.floats(1e-6, 1e6))
def test_the_unit_of_features_does_not_matter(seed, scale):
    z_s, y, z_t, _ = random_case(seed)
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4, pooled_mean(z_s, z_t)))
    scaled = class_prototypes(scale * z_s, y, 4, pooled_mean(scale * z_s, scale * z_t))
    np.testing.assert_allclose(prototype_probabilities(scale * z_t, scaled), p, rtol=1e-9)


@MODEST
@given(SEEDS)
def test_centring_takes_away_what_both_domains_have_in_common(seed):
    z_s, y, z_t, rng = random_case(seed)
    offset = rng.normal(size=5)
    p = prototype_probabilities(z_t, class_prototypes(z_s, y, 4, pooled_mean(z_s, z_t)))
    moved = class_prototypes(z_s + offset, y, 4, pooled_mean(z_s + offset, z_t + offset))
    np.testing.assert_allclose(prototype_probabilities(z_t + offset, moved), p, rtol=1e-8)


def test_rows_of_well_separated_classes_get_their_own():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 4
    z = 5 * np.eye(4)[y] + 0.1 * rng.normal(size=(60, 4))
    p = prototype_probabilities(z, class_prototypes(z, y, 4, z.mean(axis=0)))
    np.testing.assert_array_equal(p.argmax(axis=1), y)


def test_a_class_absent_from_the_source_is_infinitely_far():
    z_s, y, z_t, _ = random_case(1)
    prototypes = class_prototypes(z_s, np.where(y == 3, 0, y), 5)
    assert prototypes.present.tolist() == [True, True, True, False, False]
    assert np.isfinite(prototypes.mu).all()
    p = prototype_probabilities(z_t, prototypes)
    np.testing.assert_array_equal(p[:, 3:], 0)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


def test_prototypes_are_unit_vectors_and_float32_will_do():
    z_s, y, z_t, _ = random_case(2)
    prototypes = class_prototypes(z_s.astype(np.float32), y, 4)
    assert isinstance(prototypes, Prototypes)
    np.testing.assert_allclose(np.linalg.norm(prototypes.mu, axis=1), 1, rtol=1e-12)
    assert prototype_probabilities(z_t.astype(np.float32), prototypes).dtype == np.float64


def test_rows_without_a_direction_are_nobodys_and_not_nan():
    np.testing.assert_array_equal(unit_rows([[0.0, 0.0], [3.0, 4.0]]), [[0, 0], [0.6, 0.8]])
    np.testing.assert_array_equal(unit_rows([[1.0, 2.0]], mean=[1.0, 2.0]), [[0, 0]])
    opposite = class_prototypes([[1.0, 0.0], [-1.0, 0.0]], [0, 0], 2)
    assert opposite.present.tolist() == [True, False]
    np.testing.assert_array_equal(prototype_probabilities([[0.0, 0.0], [0.0, 1.0]], opposite), [[1, 0], [1, 0]])


def test_one_row_and_one_class():
    np.testing.assert_array_equal(prototype_probabilities([[2.0]], class_prototypes([[1.0]], [0], 1)), [[1.0]])


def test_input_that_cannot_be_used_is_refused():
    with refusal("features", "shape"):
        unit_rows(np.zeros((0, 3)))
    with refusal("features", "finite"):
        unit_rows([[np.nan, 1.0]])
    with refusal("y", "2 labels"):
        class_prototypes([[1.0], [2.0]], [0], 1)
    with refusal("y"):
        class_prototypes([[1.0]], [1], 1)
