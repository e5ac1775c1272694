"""Cutting rows that arrive in pieces."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from transpl.datasets.recordings.cutter import CellFiller
from transpl.datasets.recordings.table_rows import TableRows, Tally

GAP = 4.5


def filled(values: NDArray[np.float64], time: NDArray[np.float64], sizes: list[int]) -> tuple[NDArray[np.float64], int]:
    tally, found, at = Tally(), [], 0
    filler = CellFiller(tally)
    number = np.arange(len(values))
    for size in [*sizes, len(values)]:
        piece = slice(at, at + size)
        at += size
        if len(number[piece]):
            found.append(filler.feed(TableRows(number[piece], values[piece], time[piece], number[piece] * 0), GAP))
    rows = [each for each in (*found, filler.finish()) if each is not None]
    np.testing.assert_array_equal(np.concatenate([each.number for each in rows]), number)
    return np.concatenate([each.values for each in rows]), tally.filled


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 9999), st.integers(1, 60), st.floats(0, 0.9), st.lists(st.integers(1, 9), max_size=20))
def test_empty_cells_are_filled_as_by_definition_whatever_the_pieces(
    seed: int, n: int, empty: float, sizes: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(0.5, 1.5, n))
    values = rng.normal(size=(n, 2))
    values[rng.random((n, 2)) < empty] = np.nan
    expected = values.copy()
    for c in range(2):
        known = np.flatnonzero(~np.isnan(values[:, c]))
        for a, b in pairwise(known):
            if time[b] - time[a] <= GAP:
                expected[a : b + 1, c] = np.interp(time[a : b + 1], time[[a, b]], values[[a, b], c])
    found, count = filled(values, time, sizes)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert count == (np.isnan(values).any(axis=1) & ~np.isnan(expected).any(axis=1)).sum()
