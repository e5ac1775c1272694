"""The band against loops, and against what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from code_chains import COST, chains
from conftest import refusal

from transpl.markov import TransitionCounts
from transpl.markov.drift import chance_band, dealt_counts, simultaneous_band


@pytest.mark.parametrize("block", [1, 3])
def test_counts_of_a_shuffle_are_those_of_the_blocks_that_each_side_got(block, monkeypatch):
    new, reference = chains(5, 0), chains(7, 1)
    new[2, 1, 5:] = -1  # a shorter window
    blocks = [s[first : first + block] for s in (new, reference) for first in range(0, len(s), block)]
    n_new = -(-5 // block)
    monkeypatch.setattr("transpl.markov.drift._DEALT_AT_ONCE", 2 * len(blocks))
    monkeypatch.setattr("transpl.markov.drift._COUNTED_AT_ONCE", 64)
    found = list(dealt_counts(new, reference, 4, 5, block, np.random.default_rng(3)))
    rng = np.random.default_rng(3)
    assert len(found) == 5
    for sides in found:
        order = rng.permutation(len(blocks))
        for counts, got in zip(sides, (order[:n_new], order[n_new:]), strict=True):
            assert counts == TransitionCounts.from_codes(np.concatenate([blocks[u] for u in got]), 4)


def test_the_band_by_hand():
    chance = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [6.0, 0.0]])
    usual, upper = simultaneous_band(chance, rank=3)
    assert usual.tolist() == [3.0, 0.0]
    assert upper == pytest.approx([3.0, 0.0])  # the third smallest maximum: channel 0 at 3, its mean
    assert simultaneous_band(chance, rank=4).upper == pytest.approx([6.0, 0.0])


def test_all_channels_together_stay_inside_in_the_promised_share_of_shuffles():
    chance = np.random.default_rng(0).gamma(2.0, size=(199, 5))
    _, upper = simultaneous_band(chance, rank=180)
    assert (chance <= upper + 1e-12).all(axis=1).sum() == 180


def test_fewer_windows_widen_the_band_and_the_seed_decides_it():
    few, many, again, other = (
        chance_band(chains(n, 1), chains(60, 0), COST, n_shuffles=30, level=0.9, seed=seed)
        for n, seed in ((10, 0), (200, 0), (10, 0), (10, 1))
    )
    assert (few.upper > many.upper).all()
    assert (few.usual > many.usual).all()
    assert np.array_equal(few.upper, again.upper)
    assert not np.array_equal(few.upper, other.upper)


def test_blocks_widen_the_band_of_windows_that_resemble_their_neighbours():
    day = np.concatenate([chains(20, seed, stay) for seed in range(3) for stay in (0.9, 0.1)])
    single, blocks = (chance_band(day[:40], day[40:], COST, n_shuffles=30, level=0.9, block=block) for block in (1, 20))
    assert (blocks.upper > 1.5 * single.upper).all()


def test_what_cannot_be_dealt_is_refused():
    s = chains(12, 0)
    with refusal("n_shuffles", "99 or more for the level 0.99"):
        chance_band(s, s, COST, n_shuffles=50)
    with refusal("block", "6 or less"):
        chance_band(s, s, COST, block=7)
    with refusal("level"):
        chance_band(s, s, COST, level=1.0)
