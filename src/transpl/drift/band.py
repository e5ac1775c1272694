"""How far channels move by chance alone: distances between samples of one and the same recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl.errors import share, whole_number, wrong
from transpl.markov import TransitionCounts, channel_distances
from transpl.markov.counts import check_codes, transition_index

_WEIGHTS_AT_ONCE = 1 << 22  # of resamples x units: 32 MB
_COUNTS_AT_ONCE = 1 << 20  # of units x transitions: 8 MB

Floats = NDArray[np.float64]


class Band(NamedTuple):
    """What chance alone does to each channel's distance."""

    usual: Floats  # (channels,), the mean
    upper: Floats  # (channels,), passed by any channel in a share 1 - level of the cases


def bootstrap_band(
    codes: ArrayLike,
    cost: ArrayLike,
    n_windows: int,
    *,
    level: float = 0.99,
    n_resamples: int = 200,
    block: int = 1,
    smoothing: str = "floor",
    epsilon: float | None = None,
    seed: int = 0,
) -> Band:
    r"""u_d = m_d + q s_d, with q the `level` quantile of \max_d (dist*_d - m_d) / s_d over resamples.

    dist*_d is `channel_distances` between two samples that are drawn with replacement from the same windows: one as
    large as the reference (it is a sample too), one of `n_windows`. m_d and s_d are its mean and standard deviation.
    One quantile of the maximum holds for all channels together, and takes into account that they move together.

    codes : (windows, channels, N) of the reference; cost : (n, n), see `transport_cost`
    block : so many consecutive windows are drawn together. With 1, windows are drawn as if each were independent of
        its neighbours; where they overlap or activities last, that makes the band too narrow
    """
    n_codes = np.shape(cost)[0]
    s = check_codes(codes, n_codes)
    share("level", level)
    for name, number in (("n_windows", n_windows), ("n_resamples", n_resamples), ("block", block)):
        whole_number(name, number, least=1)
    rank = _rank(level, n_resamples)
    _check_blocks(len(s), block)
    rng = np.random.default_rng(seed)
    pairs = zip(
        resampled_counts(s, n_codes, len(s), n_resamples, block, rng),
        resampled_counts(s, n_codes, n_windows, n_resamples, block, rng.spawn(1)[0]),
        strict=True,
    )
    chance = np.stack([channel_distances(a, b, cost, smoothing, epsilon) for a, b in pairs])
    return simultaneous_band(chance, rank)


def simultaneous_band(chance: Floats, rank: int) -> Band:
    """u_d = m_d + q s_d, q the `rank`-th smallest of the maxima; chance : (resamples, channels)."""
    m, s = chance.mean(axis=0), chance.std(axis=0)
    z = np.divide(chance - m, s, out=np.zeros_like(chance), where=s > 0)
    q = np.sort(z.max(axis=1))[rank - 1]
    return Band(m, m + q * s)


def resampled_counts(
    s: NDArray[np.integer], n_codes: int, n_windows: int, n_resamples: int, block: int, rng: np.random.Generator
) -> Iterator[TransitionCounts]:
    """Counts (channels, n, n) of samples of about `n_windows` windows, drawn with replacement in blocks.

    Counts add up, so those of a sample are \\sum_u w_u counts_u, with w_u how often block u was drawn: one matrix
    product for many samples.
    """
    n_units = -(-len(s) // block)
    drawn = max(1, round(n_windows / block))
    at_once = max(1, _WEIGHTS_AT_ONCE // n_units)
    for first in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - first)
        w = rng.multinomial(drawn, np.full(n_units, 1 / n_units), size=size)
        total = np.zeros((size, s.shape[1] * n_codes**2))
        for units, counts in _counts_of_blocks(s, n_codes, block):
            total += w[:, units] @ counts  # whole numbers in float64: exact, and BLAS is fast
        for counts in total.astype(np.int64).reshape(size, s.shape[1], n_codes, n_codes):
            yield TransitionCounts(counts)


def _counts_of_blocks(s: NDArray[np.integer], n_codes: int, block: int) -> Iterator[tuple[slice, Floats]]:
    """Counts of blocks of consecutive windows, (blocks, channels * n * n), some at a time."""
    D, cells = s.shape[1], s.shape[1] * n_codes**2
    at_once = max(1, _COUNTS_AT_ONCE // cells)
    for first in range(0, -(-len(s) // block), at_once):
        part = s[first * block : (first + at_once) * block]
        n_units = -(-len(part) // block)
        index, exists = transition_index(part, n_codes)
        index += (np.arange(D) * n_codes**2)[:, None]
        index += (np.arange(len(part)) // block * cells)[:, None, None]
        flat = index.ravel() if exists is None else index[exists]
        counts = np.bincount(flat, minlength=n_units * cells).reshape(n_units, cells)
        yield slice(first, first + n_units), counts.astype(np.float64)


def _rank(level: float, n_resamples: int) -> int:
    """k: of B + 1 exchangeable numbers, the last is at most the k-th smallest of the others in k / (B + 1) of cases."""
    rank = int(np.ceil(level * (n_resamples + 1) - 1e-9))
    if rank > n_resamples:
        expected = f"{int(np.ceil(level / (1 - level)))} or more for the level {level}"
        raise wrong("n_resamples", expected=expected, got=n_resamples, advice="Draw more, or lower the level.")
    return rank


def _check_blocks(n: int, block: int) -> None:
    if n < 2 * block:
        expected = f"{n // 2} or less, half of the reference's {n} windows"
        raise wrong("block", expected=expected, got=block, advice="Choose shorter blocks.")
