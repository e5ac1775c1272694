"""Label proportions: by hand, smoothed, and refused."""

import numpy as np
import pytest
from conftest import refusal

from transpl.methods.proportions import label_proportions


def test_proportions_are_counts_over_their_sum():
    np.testing.assert_allclose(label_proportions([0, 2, 2, 2], 4), [0.25, 0, 0.75, 0], rtol=1e-15)


def test_epsilon_is_added_to_every_count():
    np.testing.assert_allclose(label_proportions([0, 2, 2], 3, epsilon=1.0), [2 / 6, 1 / 6, 3 / 6], rtol=1e-15)
    assert (label_proportions([0], 3, epsilon=1e-6) > 0).all()


def test_a_single_class_has_it_all():
    np.testing.assert_array_equal(label_proportions(np.zeros(5, np.uint8), 1), [1.0])


@pytest.mark.parametrize("y", [[], [0, 3], [-1, 0], [[0, 1]], [0.0, 1.0], [True, False]])
def test_labels_that_are_none_or_no_class_are_refused_in_one_line(y):
    with refusal("y"):
        label_proportions(y, 3)


def test_numbers_that_make_no_sense_are_refused():
    with refusal("epsilon"):
        label_proportions([0], 2, epsilon=-1.0)
    with refusal("n_classes"):
        label_proportions([0], 0)
