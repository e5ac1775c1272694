"""How far channels move by chance alone: distances after new and old windows have changed places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_fraction, check_int, invalid
from transpl.markov.counts import TransitionCounts, check_codes, transition_index
from transpl.markov.drift.movement import movements

_DEALT_AT_ONCE = 1 << 22  # shuffles x blocks: 32 MB
_COUNTED_AT_ONCE = 1 << 20  # blocks x transitions: 8 MB

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]


class Band(NamedTuple):
    """What chance alone does to each channel's `movements`."""

    usual: Floats  # (channels,), the mean
    upper: Floats  # (channels,), passed by any channel in a share 1 - level of the cases


def chance_band(
    new: ArrayLike,
    reference: ArrayLike,
    cost: ArrayLike,
    *,
    level: float = 0.99,
    n_shuffles: int = 200,
    block: int = 1,
    seed: int = 0,
) -> Band:
    r"""u_d = m_d + q s_d, with q the `level` quantile of \max_d (dist*_d - m_d) / s_d over shuffles.

    In a shuffle the windows of both sides are mixed and dealt out again, as many to each side as it had. dist*_d are
    the `movements` between these sides, m_d and s_d their mean and standard deviation. If new windows are like those of
    the reference, the true movements are one more shuffle. One quantile of the maximum holds for all channels together,
    and takes into account that they move together.

    new, reference : codes (windows, channels, N); cost : (n, n), see `transport_cost`
    block : so many consecutive windows change places together

    With a block of 1 every window does so on its own; where neighbours overlap or activities last, that makes the band
    too narrow.
    """
    # Why not a bootstrap of the reference alone: two samples of the same windows share their rare transitions, where
    # new windows bring others. On real codes that band is left far too often (docs/design.md has the figures).
    n_codes = np.shape(cost)[0]
    here, there = (check_codes(codes, n_codes) for codes in (new, reference))
    check_fraction("level", level)
    check_int("n_shuffles", n_shuffles, least=1)
    check_int("block", block, least=1)
    rank = _rank(level, n_shuffles)
    _check_blocks(min(len(here), len(there)), block)
    shuffles = dealt_counts(here, there, n_codes, n_shuffles, block, np.random.default_rng(seed))
    chance = np.stack([movements(rest, dealt, cost) for dealt, rest in shuffles])
    return simultaneous_band(chance, rank)


def simultaneous_band(chance: Floats, rank: int) -> Band:
    """u_d = m_d + q s_d, q the `rank`-th smallest of the maxima; chance : (shuffles, channels)."""
    m, s = chance.mean(axis=0), chance.std(axis=0)
    z = np.divide(chance - m, s, out=np.zeros_like(chance), where=s > 0)
    q = np.sort(z.max(axis=1))[rank - 1]
    return Band(m, m + q * s)


def dealt_counts(
    new: Codes, reference: Codes, n_codes: int, n_shuffles: int, block: int, rng: np.random.Generator
) -> Iterator[tuple[TransitionCounts, TransitionCounts]]:
    r"""Counts (channels, n, n) of both sides of every shuffle.

    Counts add up: those of the new side are \sum_u w_u counts_u, with w_u = 1 if block u was dealt to it. That is one
    matrix product for many shuffles; the rest is the other side's.
    """
    D, both = new.shape[1], (new, reference)
    everything = sum((TransitionCounts.from_codes(s, n_codes) for s in both), TransitionCounts.empty(D, n_codes))
    n_new, n_old = (-(-len(s) // block) for s in both)
    at_once = max(1, _DEALT_AT_ONCE // (n_new + n_old))
    for first in range(0, n_shuffles, at_once):
        w = np.zeros((min(at_once, n_shuffles - first), n_new + n_old))
        for row in w:
            row[rng.permutation(n_new + n_old)[:n_new]] = 1.0
        total = np.zeros((len(w), D * n_codes**2))
        for s, dealt in zip(both, (w[:, :n_new], w[:, n_new:]), strict=True):
            for blocks, counts in _counts_of_blocks(s, n_codes, block):
                total += dealt[:, blocks] @ counts  # whole numbers in float64: exact, and as fast as it gets
        for whole in total.astype(np.int64).reshape(-1, D, n_codes, n_codes):
            here = TransitionCounts(whole)
            yield here, everything - here


def _counts_of_blocks(s: Codes, n_codes: int, block: int) -> Iterator[tuple[slice, Floats]]:
    """Counts of blocks of consecutive windows, (blocks, channels * n * n), some at a time."""
    D, cells = s.shape[1], s.shape[1] * n_codes**2
    at_once = max(1, _COUNTED_AT_ONCE // cells)
    for first in range(0, -(-len(s) // block), at_once):
        part = s[first * block : (first + at_once) * block]
        n_blocks = -(-len(part) // block)
        index, exists = transition_index(part, n_codes)
        index += (np.arange(D) * n_codes**2)[:, None]
        index += (np.arange(len(part)) // block * cells)[:, None, None]
        counts = np.bincount(index.ravel() if exists is None else index[exists], minlength=n_blocks * cells)
        yield slice(first, first + n_blocks), counts.reshape(n_blocks, cells).astype(np.float64)


def _rank(level: float, n_shuffles: int) -> int:
    """k: of B + 1 exchangeable numbers, the last is at most the k-th smallest of the others in k / (B + 1) of cases."""
    rank = int(np.ceil(level * (n_shuffles + 1) - 1e-9))
    if rank > n_shuffles:
        expected = f"{int(np.ceil(level / (1 - level) - 1e-9))} or more for the level {level}"
        raise invalid("n_shuffles", expected=expected, got=n_shuffles, advice="Take more, or lower the level.")
    return rank


def _check_blocks(n: int, block: int) -> None:
    if n < 2 * block:
        expected = f"{n // 2} or less, half of {n} windows"
        raise invalid("block", expected=expected, got=block, advice="Choose shorter blocks.")
