"""Which methods differ over pairs of domains: average ranks and one test of their differences.

A pair of domains is a block: every method is ranked on it. A pair without a score of some method is left out, and the
result says so. All statements come from one test (`rank_differences`): if the methods were alike, every order of them
on a pair would be as likely as any other, and the best and the worst average rank would rarely be far apart. It is
Nemenyi's test (Demsar 2006) with that distribution itself instead of its limit for many pairs, so it also holds for
few. Whether any methods differ, which do, and the critical difference therefore never contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, wilcoxon

from transpl._utils.errors import check_fraction, check_int, invalid

N_SHUFFLES = 9999  # of the ranks on every pair; p is a multiple of one in 10,000
MOST_EXACT = 200  # differences up to which the exact distribution is computed
_DECIMALS = 9  # 68.9 - 68.8 and 0.1 are equal
_SAME_RANK = 1e-9

Scores = Mapping[str, Mapping[Hashable, float | None]]  # method -> pair -> score
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairedTest:
    """Two methods on the same pairs; `first` has the better average rank."""

    first: str
    second: str
    mean_difference: float  # first - second, in the unit of the scores
    wins: int  # pairs on which the first is better
    ties: int
    losses: int
    p: float  # as `RankDifferences.p`
    significant: bool  # p < alpha


@dataclass(frozen=True)
class Statistics:
    """Ranks and tests of methods over pairs.

    Attributes
    ----------
    methods, average_ranks
        Best first.
    pairs, left_out
        Pairs that are used, and pairs without a score of some method.
    p : float
        That average ranks lie as far apart as the best and the worst do, if all methods are alike.
    tests : tuple of PairedTest
        Every method against every other one.
    groups : tuple of tuples
        Neighbours in rank of which no two differ significantly: the bars of a critical-difference diagram.
    critical_difference : float
        The smallest significant difference of average ranks; infinite if none can be, with so few pairs.
    alpha : float
        Level of significance, of all comparisons together.
    """

    methods: tuple[str, ...]
    average_ranks: tuple[float, ...]
    pairs: tuple[Hashable, ...]
    left_out: tuple[Hashable, ...]
    p: float
    tests: tuple[PairedTest, ...]
    groups: tuple[tuple[str, ...], ...]
    critical_difference: float
    alpha: float

    @property
    def too_few_pairs(self) -> bool:
        """Whether no difference, however clear, can be significant over these pairs."""
        return math.isinf(self.critical_difference)


@dataclass(frozen=True, eq=False)
class RankDifferences:
    """How far apart average ranks lie if all methods are alike.

    Attributes
    ----------
    ranges : (shuffles,) array
        The largest difference of two average ranks in every shuffle, in ascending order.
    """

    ranges: Floats

    def p(self, difference: float) -> float:
        """P(range >= difference), with the observed ranks as one more shuffle."""
        below = int(np.searchsorted(self.ranges, abs(difference) - _SAME_RANK))
        return (1 + len(self.ranges) - below) / (1 + len(self.ranges))

    def critical(self, alpha: float, largest: float) -> float:
        """The smallest range with p < alpha; infinite if even the `largest` difference of ranks has a larger p."""
        found = next((float(r) for r in np.unique(self.ranges) if self.p(r) < alpha), math.inf)
        return largest if math.isinf(found) and self.p(largest) < alpha else found


def statistics_over_pairs(scores: Scores, *, alpha: float = 0.05) -> Statistics:
    """Rank and test methods on the pairs that all of them have.

    Parameters
    ----------
    scores : mapping
        Method -> pair -> score, higher is better. A score that is absent, None or not finite is missing.
    alpha : float
        Level of significance.

    Examples
    --------
    >>> from transpl.benchmark import statistics_over_pairs
    >>> scores = {"a": {"0-1": 70.0, "1-2": 80.0}, "b": {"0-1": 60.0, "1-2": 75.0}}
    >>> found = statistics_over_pairs(scores)
    >>> found.methods, found.average_ranks, found.too_few_pairs
    (('a', 'b'), (1.0, 2.0), True)
    """
    check_fraction("alpha", alpha)
    pairs, left_out = _split_by_completeness(scores)
    table = np.array([[scores[name][pair] for name in scores] for pair in pairs], dtype=np.float64)
    table = np.round(table, _DECIMALS)
    ranks, names = average_ranks(table), list(scores)
    order = sorted(range(len(names)), key=lambda j: (ranks[j], names[j]))
    methods = tuple(names[j] for j in order)
    chance = rank_differences(table)
    tests = _paired_tests(methods, table[:, order], ranks[order], chance, alpha)
    return Statistics(
        methods=methods,
        average_ranks=tuple(float(ranks[j]) for j in order),
        pairs=pairs,
        left_out=left_out,
        p=chance.p(float(np.ptp(ranks))),
        tests=tests,
        groups=tie_groups(methods, {(test.first, test.second) for test in tests if test.significant}),
        critical_difference=chance.critical(alpha, len(methods) - 1),
        alpha=alpha,
    )


def average_ranks(table: ArrayLike) -> Floats:
    r"""R_j = (1/n) \sum_i r_ij, r_ij the rank of method j on pair i: 1 for the highest score, ties share the mean.

    table : (pairs, methods), higher is better
    returns : (methods,)
    """
    return _ranks(table).mean(axis=0)


def rank_differences(table: ArrayLike, n_shuffles: int = N_SHUFFLES) -> RankDifferences:
    r"""The distribution of \max_j R*_j - \min_j R*_j, R*_j = (1/n) \sum_i r_{i, \pi_i(j)}, \pi_i random permutations.

    On every pair i the methods swap their ranks at random. A difference |R_a - R_b| as large as 5 % of these ranges
    is significant for all comparisons of two methods together. The same table gives the same shuffles.

    table : (pairs, methods), higher is better
    """
    check_int("n_shuffles", n_shuffles, least=1)
    random, ranks = np.random.default_rng(0), np.sort(_ranks(table), axis=1)
    total = np.zeros((n_shuffles, ranks.shape[1]))
    for of_pair in ranks[np.lexsort(ranks.T)]:  # the order of methods and pairs must not matter
        total += random.permuted(np.broadcast_to(of_pair, total.shape), axis=1)
    return RankDifferences(np.sort(np.ptp(total, axis=1)) / len(ranks))


def signed_rank_p(differences: ArrayLike) -> float:
    r"""p = min(1, 2 P(W <= w)), w = min(W^+, W^-), W^± the sum of the ranks of |d_i| with that sign.

    Zeros are dropped (Wilcoxon); p = 1 if nothing is left. The distribution over all 2^n choices of signs is exact even
    with ties, unlike tables for untied ranks and the normal approximation, which is used for more than `MOST_EXACT`
    differences.
    """
    d = np.round(np.asarray(differences, dtype=np.float64), _DECIMALS)
    d = d[d != 0]
    if len(d) == 0:
        return 1.0
    if len(d) > MOST_EXACT:
        return float(wilcoxon(d).pvalue)
    doubled = np.rint(2 * rankdata(np.abs(d))).astype(np.int64)  # ranks may be halves
    w = min(int(doubled[d > 0].sum()), int(doubled[d < 0].sum()))
    return min(1.0, 2 * float(_sign_distribution(doubled)[: w + 1].sum()))


def tie_groups(methods: Sequence[str], different: set[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """Maximal runs of two or more neighbours in rank of which no two differ: the bars of the diagram.

    methods : the best first
    different : (better, worse) methods that differ significantly
    """
    groups: list[tuple[str, ...]] = []
    end = 0
    for start in range(len(methods)):
        stop = _end_of_run(methods, start, different)
        if stop > end and stop - start > 1:
            groups.append(tuple(methods[start:stop]))
        end = max(end, stop)
    return tuple(groups)


def _split_by_completeness(scores: Scores) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Pairs that all methods have, and the others, each in the order of first appearance."""
    if len(scores) < 2:
        raise invalid("scores", expected="two methods or more", got=len(scores), advice="Add a method to compare with.")
    every = dict.fromkeys(pair for of_method in scores.values() for pair in of_method)
    complete = {pair for pair in every if all(_present(of_method.get(pair)) for of_method in scores.values())}
    if not complete:
        advice = "Run what is missing, or leave out the methods that lack it."
        raise invalid("scores", expected="a pair that every method has", got=f"none of {len(every)}", advice=advice)
    return tuple(p for p in every if p in complete), tuple(p for p in every if p not in complete)


def _present(score: float | None) -> bool:
    return score is not None and math.isfinite(score)


def _ranks(table: ArrayLike) -> Floats:
    return np.asarray(rankdata(-np.asarray(table, dtype=np.float64), axis=1), dtype=np.float64)


def _paired_tests(
    methods: tuple[str, ...], table: Floats, ranks: Floats, chance: RankDifferences, alpha: float
) -> tuple[PairedTest, ...]:
    tests = []
    for i, j in combinations(range(len(methods)), 2):
        d, p = np.round(table[:, i] - table[:, j], _DECIMALS), chance.p(float(ranks[j] - ranks[i]))
        counts = {"wins": int((d > 0).sum()), "ties": int((d == 0).sum()), "losses": int((d < 0).sum())}
        tests.append(PairedTest(methods[i], methods[j], float(d.mean()), **counts, p=p, significant=p < alpha))
    return tuple(tests)


def _sign_distribution(ranks: NDArray[np.int64]) -> Floats:
    """P(W = w) for w = 0, 1, ..., sum of ranks, if each rank counts with probability 1/2."""
    p = np.zeros(int(ranks.sum()) + 1)
    p[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(p)
        shifted[rank:] = p[:-rank]
        p = (p + shifted) / 2
    return p


def _end_of_run(methods: Sequence[str], start: int, different: set[tuple[str, str]]) -> int:
    """One past the last method of the longest run from `start` in which no two differ."""
    for stop in range(start + 1, len(methods)):
        if any((methods[i], methods[stop]) in different for i in range(start, stop)):
            return stop
    return len(methods)
