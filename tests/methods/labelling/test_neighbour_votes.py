"""Votes of neighbours: as scikit-learn counts them, and as stated where it leaves ties open."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from transpl.methods.labelling import neighbour_votes as module
from transpl.methods.labelling.neighbour_votes import nearest, neighbour_votes


@pytest.mark.parametrize("k", [1, 4, 25])
@pytest.mark.parametrize("at_once", [1, 60, 1 << 21])
def test_votes_are_those_of_scikit_learn_however_many_rows_at_once(monkeypatch, k, at_once):
    monkeypatch.setattr(module, "_DISTANCES_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    u, fitting, labels = rng.normal(size=(40, 3)), rng.normal(size=(25, 3)), np.arange(25) % 3
    shares = KNeighborsClassifier(k).fit(fitting, labels).predict_proba(u)
    np.testing.assert_allclose(neighbour_votes(u, fitting, labels, k, 3), k * shares, rtol=1e-12)


def test_of_equally_near_rows_the_earlier_ones_vote():
    distances = np.array([[1.0, 0.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert nearest(distances, 2).astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0]]
    assert nearest(distances, 4).all()
    twice = neighbour_votes(np.zeros((1, 2)), np.zeros((2, 2)), np.array([2, 0]), 1, 3)
    np.testing.assert_array_equal(twice, [[0, 0, 1]])
