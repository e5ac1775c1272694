"""The source as codes of patches."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_waves

from transpl.council import patch_codes
from transpl.council.patch_codes import CodedSource
from transpl.markov import TransitionCounts, transport_cost
from transpl.windows import Labelled, as_windows


def coded(X, y, patch_length=4) -> CodedSource:
    return CodedSource.of(Labelled(as_windows(X), y, int(y.max()) + 1), n_codes=6, patch_length=patch_length, seed=0)


def test_counts_and_shares_are_those_of_the_codes():
    X, y = make_waves(30, 0, n_classes=3)
    y = np.minimum(y, 1)
    source = coded(X, y)
    codes = source.encode(as_windows(X))
    assert codes.dtype == np.int8
    assert np.array_equal(codes, source.codes.codes)
    assert source.class_counts == TransitionCounts.from_codes(codes, 6, y, 2)
    assert source.count(as_windows(X)) == source.class_counts.pooled()
    np.testing.assert_allclose(source.class_shares, [1 / 3, 2 / 3])
    assert source.of_rows(np.arange(30) + 100).codes.rows.tolist() == list(range(100, 130))


def test_chunks_change_nothing(monkeypatch):
    X, y = make_waves(30, 0)
    whole = coded(X, y).count(as_windows(X))
    monkeypatch.setattr(patch_codes, "CHUNK", 7)
    assert coded(X, y).count(as_windows(X)) == whole


@pytest.mark.parametrize(("steps", "expected"), [(32, 4), (6, 3), (2, 1)])
def test_patches_fit_short_windows(steps, expected):
    X, y = make_waves(20, 0)
    assert coded(X[:, :, :steps], y).book.patch_length == expected


def test_the_cost_is_that_of_the_paper_where_it_is_defined():
    X, y = make_waves(30, 0)
    source = coded(X, y)
    np.testing.assert_allclose(source.cost(), transport_cost(source.book.centres))
    X[:, 1] = 0
    still = coded(X, y)
    zero = np.flatnonzero((still.book.centres == 0).all(axis=1))
    cost = still.cost()
    assert np.isfinite(cost).all()
    assert (cost.diagonal() == 0).all()
    for i in zero:
        assert (np.delete(cost[i], i) == 1).all()
    assert np.array_equal(coded(np.zeros((6, 1, 8)), np.arange(6) % 2).cost(), [[0.0]])
