"""Codes of raw patches: by hand, deterministic, and honest about windows that are too short."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import make_waves, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.council import patch_codes
from transpl.council.patch_codes import CodedSource, PatchCodes
from transpl.markov import TransitionCounts, transport_cost
from transpl.windows import Labelled, as_windows


def noise(n=20, channels=3, length=32, seed=0):
    return np.random.default_rng(seed).normal(size=(n, channels, length)).astype(np.float32)


def test_codes_are_the_nearest_centres_by_hand():
    # centres at 0 and 10 after subtracting 1 and dividing by 2: samples 1 and 21.
    book = PatchCodes(np.array([[0.0, 0.0], [10.0, 10.0]]), np.array([1.0]), np.array([2.0]))
    assert book.codes([[[1, 1, 21, 21, 1, 9, 13, 13]]]).tolist() == [[[0, 1, 0, 1]]]


def test_codes_agree_with_distances_one_by_one():
    X = noise()
    book = PatchCodes.fit(X, n_codes=5, patch_length=4)
    codes = book.codes(X)
    assert codes.shape == (20, 3, 8)
    z = (X - book.mean[:, None]) / book.deviation[:, None]
    for w, d, t in [(0, 0, 0), (7, 2, 3), (19, 1, 7)]:
        patch = z[w, d, 4 * t : 4 * t + 4]
        assert codes[w, d, t] == ((book.centres - patch) ** 2).sum(axis=1).argmin()


def test_the_same_seed_gives_the_same_codebook():
    np.testing.assert_array_equal(PatchCodes.fit(noise(), seed=3).centres, PatchCodes.fit(noise(), seed=3).centres)


def test_a_shorter_window_has_no_codes_behind_its_end():
    X = [np.ones((2, 32)), np.arange(40.0).reshape(2, 20)]
    book = PatchCodes.fit(X, n_codes=3, patch_length=8)
    codes = book.codes(X)
    assert (codes[0] >= 0).all()
    assert (codes[1, :, :2] >= 0).all()
    assert (codes[1, :, 2:] == -1).all()


def test_padding_does_not_enter_mean_and_deviation():
    short, long = np.full((1, 16), 5.0), np.full((1, 32), 5.0)
    book = PatchCodes.fit(as_windows([short, long]))
    assert book.mean.tolist() == [5.0]
    assert book.deviation.tolist() == [1.0]  # constant: nothing to divide by
    assert len(book.centres) == 1


def test_class_counts_have_a_class_axis():
    counts = PatchCodes.fit(noise()).class_counts(noise(), np.arange(20) % 2, 3)
    assert counts.counts.shape == (3, 3, 8, 8)
    assert counts.counts[2].sum() == 0
    assert counts.counts.sum() == 20 * 3 * 3


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(3)))
def test_channels_in_another_order_have_their_codes_in_that_order(order):
    book = PatchCodes.fit(noise())
    moved = PatchCodes(book.centres, book.mean[order], book.deviation[order])
    np.testing.assert_array_equal(moved.codes(noise()[:, order]), book.codes(noise())[:, order])


@pytest.mark.parametrize("patch_length", [17, 100])
def test_a_patch_longer_than_half_a_window_is_refused(patch_length):
    with refusal("patch_length", "at most half the shortest window"):
        PatchCodes.fit(noise(), patch_length=patch_length)


def test_windows_too_short_for_a_learnt_codebook_are_refused():
    with refusal("patch_length"):
        PatchCodes.fit(noise()).codes(noise(length=12))


def test_other_channels_and_senseless_numbers_are_refused():
    with refusal("X", "channel"):
        PatchCodes.fit(noise()).codes(noise(channels=2))
    with refusal("n_codes"):
        PatchCodes.fit(noise(), n_codes=0)
    with refusal("patch_length"):
        PatchCodes.fit(noise(), patch_length=2.5)


# The source as codes of patches


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
