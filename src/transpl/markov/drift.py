"""Drift: did the channels of new windows move further from a reference than chance alone would move them?

Works on integer arrays of codes, like the rest of `transpl.markov`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_fraction, check_int, invalid
from transpl._utils.progress import tracked
from transpl.markov.alignment import channel_distances, row_distances
from transpl.markov.counts import TransitionCounts, check_codes, transition_index

FORMAT = "transpl-drift-1"
MIN_WINDOWS = 10  # with fewer, chance alone moves the codes too far to tell
USUAL_BLOCK = 5  # windows without common samples that belong together where a recording goes on: activities last
_FEWEST_BLOCKS = 4  # of each side, unless a block is demanded
_DEALT_AT_ONCE = 1 << 22  # shuffles x blocks: 32 MB
_COUNTED_AT_ONCE = 1 << 20  # blocks x transitions: 8 MB

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]


class Band(NamedTuple):
    """How far chance alone moves each channel, see `chance_band`."""

    usual: Floats  # (channels,), the mean
    upper: Floats  # (channels,), exceeded by any channel in a fraction 1 - level of the cases


@dataclass(frozen=True, eq=False)
class Drift:
    """How far each channel of new windows is from a reference, and how far chance would move it.

    If the new windows are like those of the reference, all channels stay below `upper` in a fraction `level` of cases.

    Attributes
    ----------
    channel_names : tuple of str
    channel_distances : (channels,) array
        The paper's distances, which decide the weights of channels; not used for the verdict.
    distances : (channels,) array
        The `movements` of the codes; 0 is none.
    usual, upper : (channels,) arrays
        What chance shows on average, and at most.
    level : float
    windows, reference_windows : int
        How many windows were compared.
    compared_with : str
        "source" or "reference".
    shuffles, block : int
        How the band was found, see `chance_band`; `block` in windows as they were given.
    unwatched : tuple of str
        Channels in which all pieces of both sides have one code: whatever they do within it is not seen.
    """

    channel_names: tuple[str, ...]
    channel_distances: Floats
    distances: Floats
    usual: Floats
    upper: Floats
    level: float
    windows: int
    reference_windows: int
    compared_with: str
    shuffles: int
    block: int
    unwatched: tuple[str, ...] = ()

    @property
    def left(self) -> NDArray[np.bool_]:
        """Which channels left their band, (channels,)."""
        return self.distances > self.upper

    @property
    def drifted(self) -> bool:
        """Whether any channel left its band."""
        return bool(self.left.any())

    def table(self) -> pd.DataFrame:
        """One row per channel, starting with the one that is furthest above `upper`, relative to it."""
        table = pd.DataFrame([{"channel": row.pop("name"), **row} for row in self._channels()])
        excess = (self.distances - self.upper) / np.where(self.upper > 0, self.upper, 1.0)
        return table.iloc[np.argsort(-excess, kind="stable")].reset_index(drop=True)

    def sentence(self) -> str:
        """The verdict in one sentence."""
        chance = f"chance moves windows like those of the {self.compared_with} in {100 * self.level:g} % of cases"
        blind = (
            f" Not watched, as all their pieces have one code: {', '.join(self.unwatched)}." if self.unwatched else ""
        )
        if not self.drifted:
            return f"No channel moved further than {chance}.{blind}"
        moved = self.table().query("left")
        names = ", ".join(f"{row.channel} ({row.distance:.3f}, at most {row.upper:.3f})" for row in moved.itertuples())
        return f"{len(moved)} of {len(self.channel_names)} channels moved further than {chance}: {names}.{blind}"

    def as_json(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "format": FORMAT,
            "drifted": self.drifted,
            "compared_with": self.compared_with,
            "windows": self.windows,
            "reference_windows": self.reference_windows,
            "level": self.level,
            "shuffles": self.shuffles,
            "block": self.block,
            "unwatched": list(self.unwatched),
            "channels": self._channels(),
            "sentence": self.sentence(),
        }

    def _channels(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "distance": float(self.distances[d]),
                "usual": float(self.usual[d]),
                "upper": float(self.upper[d]),
                "left": bool(self.left[d]),
                "channel_distance": float(self.channel_distances[d]),
            }
            for d, name in enumerate(self.channel_names)
        ]


def measure_drift(
    codes: Codes,
    reference: Codes,
    cost: ArrayLike,
    channel_names: tuple[str, ...],
    *,
    compared_with: str = "source",
    level: float = 0.99,
    n_shuffles: int = 200,
    block: int | None = None,
    overlap: int = 1,
    smoothing: str = "floor",
    epsilon: float | None = None,
    seed: int = 0,
) -> Drift:
    """Compare codes (windows, channels, N) of new windows with those of a reference.

    Where windows overlap, only every `overlap`-th is counted: the others have the same samples once more, so that
    chance would seem to move less than it does.

    Parameters
    ----------
    cost, level, n_shuffles, seed
        See `chance_band`.
    block : int, optional
        Consecutive windows that change sides together. Default: 1, or `USUAL_BLOCK` of the counted windows where they
        overlap, as they then come from recordings without gaps.
    overlap : int
        How many consecutive windows have a sample in common, see `transpl.windows.overlap`; 1 is none.
    smoothing, epsilon
        Of the paper's `channel_distances`.
    """
    for name, part in (("X", codes), (compared_with, reference)):
        if len(part) < MIN_WINDOWS:
            expected = f"{MIN_WINDOWS} or more windows"
            advice = "Record longer: chance alone moves the codes of so few windows too far to tell."
            raise invalid(name, expected=expected, got=len(part), advice=advice)
    n_codes, windows, reference_windows = np.shape(cost)[0], len(codes), len(reference)
    check_int("overlap", overlap, least=1)
    codes, reference = codes[::overlap], reference[::overlap]
    if block is None:
        most = min(len(codes), len(reference)) // _FEWEST_BLOCKS
        dealt = max(1, min(USUAL_BLOCK, most)) if overlap > 1 else 1
    else:
        check_int("block", block, least=1)
        dealt = -(-block // overlap)
    new, old = (TransitionCounts.from_codes(part, n_codes) for part in (codes, reference))
    band = chance_band(codes, reference, cost, level=level, n_shuffles=n_shuffles, block=dealt, seed=seed)
    return Drift(
        channel_names,
        channel_distances(old, new, cost, smoothing, epsilon),
        movements(old, new, cost),
        *band,
        level=level,
        windows=windows,
        reference_windows=reference_windows,
        compared_with=compared_with,
        shuffles=n_shuffles,
        block=dealt * overlap,
        unwatched=tuple(name for name, n in zip(channel_names, _n_used_codes(old, new), strict=True) if n <= 1),
    )


def _n_used_codes(source: TransitionCounts, target: TransitionCounts) -> NDArray[np.int64]:
    """How many codes both sides have together, (channels,)."""
    both = source.counts + target.counts
    return ((both.sum(axis=-1) + both.sum(axis=-2)) > 0).sum(axis=-1)


def movements(source: TransitionCounts, target: TransitionCounts, cost: ArrayLike) -> Floats:
    r"""\sum_i \pi_{d,i} r_{d,i} with r_{d,i} = EMD(p^S_{d,i}, p^T_{d,i}), (channels,).

    \pi_{d,i} is the share of transitions, of both sides together, that start at code i. For a code that only one side
    has, r_{d,i} is its distance from the nearest code of the other side, min_j M_ij.

    The paper's `channel_distances` is the plain mean (1 / n) \sum_i of the same rows. It weighs channels well enough
    but makes a poor alarm: a code seen three times counts as much as one seen thousands of times, so that chance hides
    what moved, and a code that only one side has counts nothing, so that a sensor stuck at a value never seen before
    would go unnoticed.
    """
    M = np.asarray(cost, dtype=np.float64)
    rows = row_distances(source, target, M)
    starts = [counts.counts.sum(axis=-1) for counts in (source, target)]  # (channels, n)
    for one, other in (starts, starts[::-1]):
        for d, i in np.argwhere((one > 0) & (other == 0)):
            if other[d].any():
                rows[d, i] = M[i, other[d] > 0].min()
    both = starts[0] + starts[1]
    return (both * rows).sum(axis=-1) / np.maximum(both.sum(axis=-1), 1)


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
    the `movements` between these sides, m_d and s_d their mean and standard deviation. If the new windows are like
    those of the reference, the true movements are one more shuffle. One quantile of the maximum holds for all channels
    together and accounts for channels that move together.

    Parameters
    ----------
    new, reference : (windows, channels, N) int arrays
        Codes.
    cost : (n, n) array
        See `transport_cost`.
    level : float
        The fraction of cases in which windows like the reference stay inside the band.
    n_shuffles : int
    block : int
        The number of consecutive windows that change sides together. Where neighbouring windows overlap or activities
        last, a block of 1 makes the band too narrow.
    seed : int
    """
    # A bootstrap of the reference alone would not do: two samples of the same windows share their rare transitions,
    # while new windows bring others. On real codes that band is left far too often (docs/design.md has the figures).
    n_codes = np.shape(cost)[0]
    sides = check_codes(new, n_codes), check_codes(reference, n_codes)
    check_fraction("level", level)
    check_int("n_shuffles", n_shuffles, least=1)
    check_int("block", block, least=1)
    # Of B + 1 exchangeable numbers, the last is at most the k-th smallest of the others in k / (B + 1) of the cases.
    rank = int(np.ceil(level * (n_shuffles + 1) - 1e-9))
    if rank > n_shuffles:
        expected = f"{int(np.ceil(level / (1 - level) - 1e-9))} or more for the level {level}"
        raise invalid("n_shuffles", expected=expected, got=n_shuffles, advice="Use more, or lower the level.")
    fewest = min(len(side) for side in sides)
    if fewest < 2 * block:
        expected = f"{fewest // 2} or less, half of {fewest} windows"
        raise invalid("block", expected=expected, got=block, advice="Choose shorter blocks.")
    shuffles = dealt_counts(*sides, n_codes, n_shuffles, block, np.random.default_rng(seed))
    shuffles = tracked(shuffles, "shuffling windows, shuffles", n_shuffles)
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
    r"""Yield the counts (channels, n, n) of both sides of every shuffle.

    Counts add up: those of the new side are \sum_u w_u counts_u, with w_u = 1 if block u was dealt to it. That is one
    matrix product for many shuffles; the other side gets the rest.
    """
    D, sides = new.shape[1], (new, reference)
    everything = sum((TransitionCounts.from_codes(s, n_codes) for s in sides), TransitionCounts.empty(D, n_codes))
    n_new, n_old = (-(-len(s) // block) for s in sides)
    at_once = max(1, _DEALT_AT_ONCE // (n_new + n_old))
    for first in range(0, n_shuffles, at_once):
        w = np.zeros((min(at_once, n_shuffles - first), n_new + n_old))
        for row in w:
            row[rng.permutation(n_new + n_old)[:n_new]] = 1.0
        total = np.zeros((len(w), D * n_codes**2))
        for s, dealt in zip(sides, (w[:, :n_new], w[:, n_new:]), strict=True):
            for blocks, counts in _block_counts(s, n_codes, block):
                total += dealt[:, blocks] @ counts  # whole numbers in float64: exact, and fast
        for one in total.astype(np.int64).reshape(-1, D, n_codes, n_codes):
            yield TransitionCounts(one), everything - TransitionCounts(one)


def _block_counts(s: Codes, n_codes: int, block: int) -> Iterator[tuple[slice, Floats]]:
    """Yield the counts of blocks of consecutive windows, (blocks, channels * n * n), some blocks at a time."""
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
