"""Movements against the equation written out, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from code_chains import COST, chains

from transpl.markov import TransitionCounts
from transpl.markov.drift import movements


def by_linear_programme(p, q, M):
    """EMD by scipy, as an oracle."""
    from scipy.optimize import linprog

    n = len(p)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    return linprog(M.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q])).fun


def test_movements_are_the_equation():
    source, target = (TransitionCounts.from_codes(chains(9, seed, stay), 4) for seed, stay in ((0, 0.3), (1, 0.8)))
    expected = []
    for a, b in zip(source.counts, target.counts, strict=True):
        rows = [by_linear_programme(a[i] / a[i].sum(), b[i] / b[i].sum(), COST) for i in range(4)]
        expected.append(((a + b).sum(axis=1) * rows).sum() / (a + b).sum())
    assert movements(source, target, COST) == pytest.approx(expected, abs=1e-9)


def test_a_code_of_one_side_costs_the_way_to_the_nearest_of_the_other():
    M = np.array([[0.0, 0.4, 0.9], [0.4, 0.0, 0.7], [0.9, 0.7, 0.0]])
    source = TransitionCounts(np.array([[[6, 2, 0], [0, 0, 0], [0, 0, 2]]]))
    target = TransitionCounts(np.array([[[1, 1, 0], [8, 0, 0], [0, 0, 0]]]))
    # Row 0 (10 of 20 starts): a quarter of the mass moves from code 0 to code 1. Row 1 (8) only here, row 2 (2) only
    # there: the nearest codes of the other side are 0 and 1.
    assert movements(source, target, M) == pytest.approx([(10 * 0.25 * 0.4 + 8 * 0.4 + 2 * 0.7) / 20])


def test_nothing_moves_between_equal_counts_and_nothing_can_be_said_without_any():
    counts = TransitionCounts.from_codes(chains(9, 0), 4)
    assert movements(counts, counts, COST).tolist() == [0.0, 0.0]
    assert movements(counts, TransitionCounts.empty(2, 4), COST).tolist() == [0.0, 0.0]
