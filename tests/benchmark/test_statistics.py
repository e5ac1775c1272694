from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from conftest import refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from transpl.benchmark.published import published_figures
from transpl.benchmark.statistics import (
    MOST_EXACT,
    average_ranks,
    rank_differences,
    signed_rank_p,
    statistics_over_pairs,
    tie_groups,
)

tables = st.integers(2, 5).flatmap(
    lambda k: st.lists(st.lists(st.integers(0, 6), min_size=k, max_size=k), min_size=1, max_size=12)
)


def by_method(table, methods=None, pairs=None):
    array = np.asarray(table, dtype=float)
    methods = methods or [f"m{j}" for j in range(array.shape[1])]
    pairs = pairs or [f"{i}-0" for i in range(array.shape[0])]
    return {m: dict(zip(pairs, array[:, j].tolist(), strict=True)) for j, m in enumerate(methods)}


class TestRanks:
    def test_by_hand_with_ties(self):
        assert average_ranks([[90, 80, 70], [60, 60, 50]]).tolist() == [1.25, 1.75, 3.0]

    def test_float_noise_is_a_tie(self):
        found = statistics_over_pairs({"a": {"1-2": 0.1 + 0.2}, "b": {"1-2": 0.3}})
        assert found.average_ranks == (1.5, 1.5)
        assert found.tests[0].ties == 1


class TestSignedRanks:
    def test_by_hand(self):
        assert signed_rank_p([1, 2, 3, 4, 5]) == 2 / 32  # only two of 32 sign patterns are as extreme
        assert signed_rank_p([-1, 2, 3, 4, 5]) == 4 / 32
        assert signed_rank_p([1, 1, 1]) == 2 / 8
        assert signed_rank_p([1, 1, -1]) == 1.0

    def test_no_difference(self):
        assert signed_rank_p([0, 0, 0]) == signed_rank_p([]) == 1.0
        assert signed_rank_p([0.1 + 0.2 - 0.3, 0]) == 1.0

    def test_zeros_are_dropped(self):
        assert signed_rank_p([0, 1, 0, 2, 3, 0]) == signed_rank_p([1, 2, 3])

    @given(st.sets(st.integers(1, 1000), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
    def test_without_ties_as_scipy_has_it(self, sizes, seed):
        d = np.array(sorted(sizes)) * np.random.default_rng(seed).choice([-1, 1], len(sizes))
        assert signed_rank_p(d) == pytest.approx(stats.wilcoxon(d, method="exact").pvalue)

    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.integers(-3, 3).filter(bool), min_size=2, max_size=8))
    def test_with_ties_as_all_sign_patterns_have_it(self, d):
        ranks = stats.rankdata(np.abs(d))
        signs = np.array(np.meshgrid(*[[0, 1]] * len(d))).reshape(len(d), -1)
        sums = ranks @ signs
        w = min(ranks[np.array(d) > 0].sum(), ranks[np.array(d) < 0].sum())
        assert signed_rank_p(d) == pytest.approx(min(1.0, 2 * np.mean(sums <= w)))

    def test_many_differences_are_near_the_exact_value(self):
        d = np.random.default_rng(0).normal(0.1, 1, MOST_EXACT)
        assert signed_rank_p(np.append(d, 1e-8)) == pytest.approx(signed_rank_p(d), rel=0.05)


class TestTieGroups:
    @pytest.mark.parametrize(
        ("different", "expected"),
        [
            (set(), ["abcd"]),
            ({("a", "d")}, ["abc", "bcd"]),
            ({("a", "b")}, ["bcd"]),
            ({("a", "c"), ("a", "d"), ("b", "d")}, ["ab", "bc", "cd"]),
            ({("b", "c")}, ["ab", "cd"]),
            ({("a", "b"), ("b", "c"), ("c", "d")}, []),
        ],
    )
    def test_by_hand(self, different, expected):
        assert tie_groups("abcd", different) == tuple(tuple(group) for group in expected)

    @given(st.sets(st.sampled_from([(a, b) for a in "abcdef" for b in "abcdef" if a < b])))
    def test_groups_are_the_maximal_runs(self, different):
        methods = "abcdef"
        runs = {methods[i:j] for i in range(6) for j in range(i + 2, 7)}
        quiet = {run for run in runs if not any(a in run and b in run for a, b in different)}
        maximal = {run for run in quiet if not any(run != other and run in other for other in quiet)}
        assert {"".join(group) for group in tie_groups(methods, different)} == maximal


def every_range(table):
    """The range of average ranks for all orders of the methods on all pairs, as an oracle."""
    ranks = stats.rankdata(-np.asarray(table, float), axis=1)
    orders = [list(permutations(row)) for row in ranks]
    return np.array([np.ptp(np.mean(choice, axis=0)) for choice in product(*orders)])


class TestRankDifferences:
    @pytest.mark.parametrize("table", [[[3, 2, 1]] * 4, [[3, 2, 1], [5, 5, 1], [2, 1, 2]], [[4, 3, 2, 1]] * 3])
    def test_as_all_orders_have_it(self, table):
        exact, found = every_range(table), rank_differences(table)
        for r in np.unique(exact):
            assert found.p(r) == pytest.approx((exact >= r - 1e-9).mean(), abs=0.02)

    @pytest.mark.parametrize("n", [3, 6, 9])
    def test_two_methods_are_a_sign_test(self, n):
        found = rank_differences([[2, 1]] * n)
        assert found.p(1.0) == pytest.approx(2.0 ** (1 - n), abs=0.02)

    @pytest.mark.parametrize(("k", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
    def test_many_pairs_have_the_printed_values_of_nemenyi(self, k, q):
        found = rank_differences([list(range(k))] * 200)
        assert found.critical(0.05, k - 1) == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 200)), rel=0.1)

    @pytest.mark.parametrize(
        ("n", "k", "few"), [(5, 2, True), (6, 2, False), (2, 4, True), (2, 5, False), (1, 9, True)]
    )
    def test_few_pairs_may_not_suffice(self, n, k, few):
        # One method first and another last on all n pairs: (k (k - 1))^(1 - n).
        assert statistics_over_pairs(by_method([list(range(k))] * n)).too_few_pairs is few

    def test_bad_numbers(self):
        with refusal("n_shuffles"):
            rank_differences([[1, 2]], n_shuffles=0)


class TestOneVerdict:
    """All statements follow from one distribution, so that they cannot contradict each other."""

    @settings(max_examples=40, deadline=None)
    @given(tables)
    def test_statements_agree(self, table):
        found = statistics_over_pairs(by_method(table))
        ranks = dict(zip(found.methods, found.average_ranks, strict=True))
        assert any(test.significant for test in found.tests) == (found.p < found.alpha)
        for test in found.tests:
            difference = ranks[test.second] - ranks[test.first]
            assert test.significant == (difference >= found.critical_difference - 1e-9)
            assert test.significant == (test.p < found.alpha)
        bars = {name for group in found.groups for name in group}
        if not any(test.significant for test in found.tests):
            assert bars == set(found.methods)

    def test_ten_pairs_in_full_agreement_on_twelve_methods(self):
        found = statistics_over_pairs(by_method([list(range(12, 0, -1))] * 10))
        assert found.p < 0.001
        first_and_last = next(test for test in found.tests if (test.first, test.second) == ("m0", "m11"))
        assert first_and_last.significant
        assert 4.5 < found.critical_difference < 5.5  # Nemenyi's, for many pairs: 5.27
        assert not next(test for test in found.tests if (test.first, test.second) == ("m0", "m4")).significant


class TestTogether:
    def test_a_clear_winner(self):
        table = [[90 + i, 70 + (i % 2), 70 + (i % 3)] for i in range(12)]
        found = statistics_over_pairs(by_method(table, ["new", "old", "older"]))
        assert found.methods[0] == "new"
        assert found.average_ranks[0] == 1.0
        assert set(found.groups[0]) == {"old", "older"}
        first = found.tests[0]
        assert (first.first, first.second, first.wins, first.losses) == ("new", "older", 12, 0)
        assert first.p < 0.005
        assert first.significant
        assert first.mean_difference == pytest.approx(24.5)

    def test_incomplete_pairs_are_left_out_and_named(self):
        scores = {
            "a": {"1-2": 1.0, "2-3": 2.0, "3-4": 0.0, "4-5": None, "6-7": float("inf")},
            "b": {"1-2": 0.5, "2-3": float("nan"), "3-4": 0.0, "4-5": 1.0, "5-6": 1.0, "6-7": 1.0},
        }
        found = statistics_over_pairs(scores)
        assert found.pairs == ("1-2", "3-4")
        assert found.left_out == ("2-3", "4-5", "6-7", "5-6")

    def test_all_alike(self):
        found = statistics_over_pairs(by_method([[5, 5, 5]] * 4))
        assert found.average_ranks == (2.0, 2.0, 2.0)
        assert found.p == 1.0
        assert {test.p for test in found.tests} == {1.0}
        assert found.groups == (found.methods,)

    def test_nothing_to_compare(self):
        with refusal("scores", "two methods"):
            statistics_over_pairs({"a": {"1-2": 1.0}})
        with refusal("scores", "none of 2"):
            statistics_over_pairs({"a": {"1-2": 1.0}, "b": {"2-3": 1.0}})
        with refusal("alpha"):
            statistics_over_pairs(by_method([[1, 2]]), alpha=0)

    @settings(max_examples=50, deadline=None)
    @given(tables, st.randoms())
    def test_order_of_methods_and_pairs_does_not_matter(self, table, random):
        scores = by_method(table)
        methods = random.sample(list(scores), len(scores))
        mixed = {m: dict(random.sample(list(scores[m].items()), len(table))) for m in methods}
        one, other = statistics_over_pairs(scores), statistics_over_pairs(mixed)
        assert (one.methods, one.groups, one.tests) == (other.methods, other.groups, other.tests)
        assert one.average_ranks == pytest.approx(other.average_ranks)
        assert one.p == other.p
        assert set(one.pairs) == set(other.pairs)

    @settings(max_examples=50, deadline=None)
    @given(tables)
    def test_ranks_sum_up_and_every_two_methods_are_tested_once(self, table):
        found = statistics_over_pairs(by_method(table))
        k = len(found.methods)
        assert sum(found.average_ranks) == pytest.approx(k * (k + 1) / 2)
        assert list(found.average_ranks) == sorted(found.average_ranks)
        assert len({(test.first, test.second) for test in found.tests}) == k * (k - 1) / 2
        for test in found.tests:
            assert test.wins + test.ties + test.losses == len(table)
            assert 0 < test.p <= 1

    def test_published_pairs_of_wisdm_and_hhar(self):
        scores: dict = {}
        for key, found in published_figures().items():
            of_a_pair = key.table == "pairs" and key.pair != "average" and key.dataset in ("wisdm", "hhar")
            if of_a_pair and key.metric == "accuracy" and not found.flag:
                scores.setdefault(key.row, {})[key.dataset, key.pair] = found.value
        result = statistics_over_pairs(scores)
        assert (len(result.methods), len(result.pairs), result.left_out) == (12, 20, ())
        assert result.methods[0] == "transpl"
        assert result.p < 0.01
