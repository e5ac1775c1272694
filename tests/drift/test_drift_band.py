"""The band against loops, and against what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from code_chains import COST, chains
from conftest import refusal

from transpl.drift.band import bootstrap_band, resampled_counts, simultaneous_band
from transpl.markov import TransitionCounts


@pytest.mark.parametrize("block", [1, 3])
def test_counts_of_resamples_are_sums_of_the_counts_of_drawn_blocks(block, monkeypatch):
    s = chains(7, 0)
    s[2, 1, 5:] = -1  # a shorter window
    drawn = max(1, round(5 / block))
    n_units = -(-7 // block)
    w = np.random.default_rng(3).multinomial(drawn, np.full(n_units, 1 / n_units), size=6)
    monkeypatch.setattr("transpl.drift.band._WEIGHTS_AT_ONCE", 2 * n_units)
    monkeypatch.setattr("transpl.drift.band._COUNTS_AT_ONCE", 64)
    found = list(resampled_counts(s, 4, 5, 6, block, np.random.default_rng(3)))
    for weights, counts in zip(w, found, strict=True):
        expected = TransitionCounts.empty(2, 4)
        for unit, times in enumerate(weights):
            for _ in range(times):
                expected += TransitionCounts.from_codes(s[unit * block : (unit + 1) * block], 4)
        assert counts == expected


def test_the_band_by_hand():
    chance = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [6.0, 0.0]])
    usual, upper = simultaneous_band(chance, rank=3)
    assert usual.tolist() == [3.0, 0.0]
    assert upper == pytest.approx([3.0, 0.0])  # the third smallest maximum: channel 0 at 3, its mean
    assert simultaneous_band(chance, rank=4).upper == pytest.approx([6.0, 0.0])


def test_all_channels_together_stay_inside_the_promised_share_of_resamples():
    chance = np.random.default_rng(0).gamma(2.0, size=(199, 5))
    _, upper = simultaneous_band(chance, rank=180)
    assert (chance <= upper + 1e-12).all(axis=1).sum() == 180


def test_fewer_windows_widen_the_band_and_the_seed_decides_it():
    s = chains(60, 0)
    few, many = (bootstrap_band(s, COST, n, n_resamples=30, level=0.9) for n in (10, 200))
    assert (few.upper > many.upper).all()
    assert (few.usual > many.usual).all()
    again = bootstrap_band(s, COST, 10, n_resamples=30, level=0.9)
    assert np.array_equal(few.upper, again.upper)
    other = bootstrap_band(s, COST, 10, n_resamples=30, level=0.9, seed=1)
    assert not np.array_equal(few.upper, other.upper)


def test_blocks_widen_the_band_of_windows_that_resemble_their_neighbours():
    calm, busy = chains(40, 0, stay=0.9), chains(40, 1, stay=0.1)
    s = np.concatenate([calm[:20], busy[:20], calm[20:], busy[20:]])
    single, blocks = (bootstrap_band(s, COST, 20, n_resamples=30, level=0.9, block=block) for block in (1, 20))
    assert (blocks.upper > 1.5 * single.upper).all()


def test_what_cannot_be_drawn_is_refused():
    s = chains(12, 0)
    with refusal("n_resamples", "99 or more for the level 0.99"):
        bootstrap_band(s, COST, 10, n_resamples=50)
    with refusal("block", "6 or less"):
        bootstrap_band(s, COST, 10, block=7)
    with refusal("level"):
        bootstrap_band(s, COST, 10, level=1.0)
