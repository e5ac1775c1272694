"""Nearest source windows: by loops, ties by row number, in parts of any size."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import refusal
from made_up_explanation import draw_codes

from transpl.markov import nearest
from transpl.markov.nearest import NearestWindows, SourceCodes, nearest_windows

CLASSES = np.array(["a", "b", "c"])


def distance_by_loops(s, r, shares):
    agreement = 0.0
    for d, share in enumerate(shares):
        mine, theirs = ([code for code in channel[d].tolist() if code >= 0] for channel in (s, r))
        alike = sum(one == other for one, other in zip(mine, theirs, strict=False))
        agreement += share * alike / max(len(mine), len(theirs))
    return 1 - agreement


def drawn(seed, *, ragged=False, m=30, N=7):
    rng = np.random.default_rng(seed)
    source = SourceCodes.numbered(draw_codes(rng, m, 2, N, 3, ragged=ragged), rng.integers(0, 3, m), 3)
    return draw_codes(rng, 9, 2, 6, 3, ragged=ragged), source


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("at_once", [1, 70, 1 << 18])
def test_the_nearest_are_those_of_a_sorted_list(monkeypatch, ragged, at_once):
    monkeypatch.setattr(nearest, "_COMPARED_AT_ONCE", at_once)
    codes, source = drawn(0, ragged=ragged)
    shares = np.array([0.25, 0.75])
    found = nearest_windows(codes, source, shares, CLASSES, 4)
    for row, s in enumerate(codes):
        away = [round(distance_by_loops(s, r, shares), 10) for r in source.codes]
        best = sorted(range(30), key=lambda i: (away[i], i))[:4]
        assert found.rows[row].tolist() == best
        assert found.labels[row].tolist() == CLASSES[source.labels[best]].tolist()
        np.testing.assert_allclose(found.distances[row], [away[i] for i in best], atol=1e-9)


def test_a_window_of_the_source_is_nearest_to_itself():
    _, source = drawn(1)
    found = nearest_windows(source.codes, source, np.array([0.4, 0.6]), CLASSES, 1)
    assert (found.distances == 0).all()
    assert all(np.array_equal(source.codes[row], source.codes[i]) for i, (row,) in enumerate(found.rows))


def test_ties_go_by_row_number_whatever_the_order_of_additions():
    """Three channels, one agrees with each source row: equal thirds, which no float sums exactly."""
    codes = np.zeros((1, 3, 2), np.int8)
    source = np.ones((3, 3, 2), np.int8)
    source[[0, 1, 2], [2, 0, 1]] = 0
    found = nearest_windows(codes, SourceCodes.numbered(source, np.zeros(3, int), 3), np.full(3, 1 / 3), CLASSES, 3)
    assert found.rows.tolist() == [[0, 1, 2]]
    assert len(set(found.distances[0].tolist())) == 1


def test_what_is_absent_on_both_sides_does_not_agree():
    codes = np.array([[[1, -1, -1]]], np.int8)
    source = SourceCodes.numbered(np.array([[[0, -1, -1]], [[1, 0, 0]]], np.int8), np.array([0, 1]), 2)
    found = nearest_windows(codes, source, np.ones(1), CLASSES, 2)
    assert found.rows.tolist() == [[1, 0]]
    np.testing.assert_allclose(found.distances, [[2 / 3, 1.0]])


def test_long_windows_are_counted_right():
    codes = np.zeros((2, 1, 300), np.int8)
    source = SourceCodes.numbered(np.zeros((4, 1, 300), np.int8), np.zeros(4, int), 3)
    assert (nearest_windows(codes, source, np.ones(1), CLASSES, 2).distances == 0).all()


def test_no_more_than_there_are_and_none_if_none_are_asked_for():
    codes, source = drawn(2, m=3)
    shares = np.array([0.5, 0.5])
    assert nearest_windows(codes, source, shares, CLASSES, 10).rows.shape == (9, 3)
    assert nearest_windows(codes, source, shares, CLASSES, 0) is None
    with refusal("nearest"):
        nearest_windows(codes, source, shares, CLASSES, -1)


def test_codes_are_left_as_they_are():
    codes, source = drawn(3, ragged=True, m=1)
    before = source.codes.copy()
    nearest_windows(codes, source, np.array([0.5, 0.5]), CLASSES, 1)
    assert np.array_equal(source.codes, before)


def test_rows_are_numbered_in_the_smallest_type_that_holds_them():
    source = SourceCodes.numbered(np.zeros((200, 1, 2), np.int8), np.zeros(200, int), 3)
    assert (source.labels.dtype, source.rows.dtype) == (np.int8, np.int16)
    assert source.of_rows(np.arange(200) * 1000).rows.dtype == np.int32
    assert source.of_rows(np.arange(200) * 1000).rows[-1] == 199_000


def test_arrays_that_do_not_fit_are_refused():
    with refusal("source codes"):
        SourceCodes(np.zeros((3, 1, 2)), np.zeros(2), np.zeros(3))
    with refusal("nearest"):
        NearestWindows(np.zeros((3, 1), int), np.zeros((3, 2)), np.zeros((3, 1)))
