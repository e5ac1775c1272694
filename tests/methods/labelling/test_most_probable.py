"""Labels from probabilities, and what counts as probabilities."""

import numpy as np
import pytest
from conftest import refusal

from transpl.methods.labelling import most_probable


def test_the_largest_probability_gives_the_label_and_the_confidence():
    p = np.array([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25]])
    pseudo = most_probable(p)
    np.testing.assert_array_equal(pseudo.labels, [1, 0])
    np.testing.assert_allclose(pseudo.confidence, [0.7, 0.5], rtol=1e-15)
    np.testing.assert_allclose(pseudo.probabilities, p, rtol=1e-15)


def test_confidence_lies_between_chance_and_one():
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=200).astype(np.float32)
    pseudo = most_probable(p)
    assert (pseudo.confidence >= 1 / 5).all()
    assert (pseudo.confidence <= 1).all()
    np.testing.assert_allclose(pseudo.probabilities.sum(axis=1), 1, rtol=1e-14)  # better than float32


@pytest.mark.parametrize(
    "p", [[0.5, 0.5], np.zeros((0, 3)), np.zeros((3, 0)), [[2.0, 3.0]], [[1.5, -0.5]], [[np.nan, 1.0]]]
)
def test_what_is_no_probability_is_refused(p):
    with refusal("probabilities"):
        most_probable(p)
