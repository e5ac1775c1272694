"""Which methods differ over pairs of domains: ranks, Friedman, Wilcoxon with Holm, tie groups (Demsar 2006).

A pair of domains is a block: every method is ranked on it. A pair without a score of some method is left out, and the
result says so. With n pairs no p is below 2^(1 - n), and Holm multiplies the smallest by the number of tests: ten pairs
cannot separate two of a dozen methods, 34 can.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, rankdata, studentized_range, wilcoxon

from transpl._utils.errors import check_fraction, check_int, invalid

MOST_EXACT = 200  # differences up to which the exact distribution is computed
_DECIMALS = 9  # 68.9 - 68.8 and 0.1 are equal

Scores = Mapping[str, Mapping[Hashable, float | None]]  # method -> pair -> score
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Friedman:
    """Test of the hypothesis that all methods are equally good."""

    statistic: float
    p: float


@dataclass(frozen=True)
class PairedTest:
    """Two methods on the same pairs; `first` has the better average rank."""

    first: str
    second: str
    mean_difference: float  # first - second, in the unit of the scores
    wins: int  # pairs on which the first is better
    ties: int
    losses: int
    p_holm: float
    significant: bool  # p_holm < alpha


@dataclass(frozen=True)
class Statistics:
    """Ranks and tests of methods over pairs.

    Attributes
    ----------
    methods, average_ranks
        Best first.
    pairs, left_out
        Pairs that are used, and pairs without a score of some method.
    friedman : Friedman
        Test of all methods at once.
    tests : tuple of PairedTest
        Every method against every other one.
    groups : tuple of tuples
        Neighbours in rank that no test separates: the bars of a critical-difference diagram.
    critical_difference : float
        Of average ranks, after Nemenyi.
    alpha : float
        Level of significance.
    """

    methods: tuple[str, ...]
    average_ranks: tuple[float, ...]
    pairs: tuple[Hashable, ...]
    left_out: tuple[Hashable, ...]
    friedman: Friedman
    tests: tuple[PairedTest, ...]
    groups: tuple[tuple[str, ...], ...]
    critical_difference: float
    alpha: float

    @property
    def least_possible_p(self) -> float:
        """The corrected p of a method that wins on every pair; at alpha or above, no two methods can be separated."""
        return least_p(len(self.pairs), len(self.tests))


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
    >>> found.methods, found.average_ranks, found.least_possible_p
    (('a', 'b'), (1.0, 2.0), 0.5)
    """
    check_fraction("alpha", alpha)
    pairs, left_out = _split_by_completeness(scores)
    table = np.array([[scores[name][pair] for name in scores] for pair in pairs], dtype=np.float64)
    table = np.round(table, _DECIMALS)
    ranks, names = average_ranks(table), list(scores)
    order = sorted(range(len(names)), key=lambda j: (ranks[j], names[j]))
    methods = tuple(names[j] for j in order)
    tests = _paired_tests(methods, table[:, order], alpha)
    return Statistics(
        methods=methods,
        average_ranks=tuple(float(ranks[j]) for j in order),
        pairs=pairs,
        left_out=left_out,
        friedman=friedman(table),
        tests=tests,
        groups=tie_groups(methods, {(test.first, test.second) for test in tests if test.significant}),
        critical_difference=critical_difference(len(methods), len(pairs), alpha),
        alpha=alpha,
    )


def average_ranks(table: ArrayLike) -> Floats:
    r"""R_j = (1/n) \sum_i r_ij, r_ij the rank of method j on pair i: 1 for the highest score, ties share the mean.

    table : (pairs, methods), higher is better
    returns : (methods,)
    """
    return _ranks(table).mean(axis=0)


def friedman(table: ArrayLike) -> Friedman:
    r"""\chi^2 = (k - 1) n^2 \sum_j (R_j - (k + 1)/2)^2 / (\sum_ij r_ij^2 - n k (k + 1)^2 / 4).

    Compared with chi-squared of k - 1 degrees of freedom. This form holds with ties. If all scores of every pair are
    equal, the statistic is 0 and p = 1.
    """
    r = _ranks(table)
    n, k = r.shape
    spread = (r**2).sum() - n * k * (k + 1) ** 2 / 4
    if spread <= 0:
        return Friedman(0.0, 1.0)
    statistic = float((k - 1) * n**2 * ((r.mean(axis=0) - (k + 1) / 2) ** 2).sum() / spread)
    return Friedman(statistic, float(chi2.sf(statistic, k - 1)))


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


def holm(p: ArrayLike) -> Floats:
    r"""p~_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)), p_(1) <= ... <= p_(m) (Holm 1979); in the order given."""
    raw = np.asarray(p, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    adjusted = np.empty_like(raw)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, raw[order] * np.arange(len(raw), 0, -1)))
    return adjusted


def least_p(n_pairs: int, n_tests: int) -> float:
    r"""min(1, m 2^{1 - n}): Holm's p of the clearest of m tests if one method wins on all n pairs."""
    check_int("n_pairs", n_pairs, least=1)
    check_int("n_tests", n_tests, least=1)
    return min(1.0, n_tests * 2.0 ** (1 - n_pairs))


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


def critical_difference(n_methods: int, n_pairs: int, alpha: float = 0.05) -> float:
    r"""CD = q_\alpha \sqrt{k (k + 1) / (6 n)}, q_\alpha the studentized range of k groups over \sqrt{2} (Nemenyi)."""
    check_int("n_methods", n_methods, least=2)
    check_int("n_pairs", n_pairs, least=1)
    check_fraction("alpha", alpha)
    q = float(studentized_range.ppf(1 - alpha, n_methods, math.inf)) / math.sqrt(2)
    return q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_pairs))


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


def _paired_tests(methods: tuple[str, ...], table: Floats, alpha: float) -> tuple[PairedTest, ...]:
    columns = list(combinations(range(len(methods)), 2))
    differences = [np.round(table[:, i] - table[:, j], _DECIMALS) for i, j in columns]
    corrected = holm([signed_rank_p(d) for d in differences])
    return tuple(
        PairedTest(
            first=methods[i],
            second=methods[j],
            mean_difference=float(d.mean()),
            wins=int((d > 0).sum()),
            ties=int((d == 0).sum()),
            losses=int((d < 0).sum()),
            p_holm=float(p),
            significant=bool(p < alpha),
        )
        for (i, j), d, p in zip(columns, differences, corrected, strict=True)
    )


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
