"""Drift: movements, the band of chance, and the verdict."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from code_chains import COST, chains
from conftest import refusal

from transpl.markov import TransitionCounts, channel_distances
from transpl.markov.drift import Drift, chance_band, dealt_counts, measure_drift, movements, simultaneous_band


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


# The band against loops, and against what it promises


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


def recording(seed: int, n: int, step: int, length: int = 16, stay: float = 0.6) -> np.ndarray:
    """Windows of one stationary chain of codes, `step` codes apart, (n, 2, length)."""
    T = (n - 1) * step + length
    codes = chains(1, seed, stay, length=T)[0]
    return np.stack([codes[:, first : first + length] for first in range(0, n * step, step)])


def false_alarms(seeds: int, step: int, **options: object) -> float:
    """The share of cases in which one part of a stationary process leaves the band of another."""
    options = {"level": 0.9, "n_shuffles": 30, "overlap": -(-16 // step), **options}
    found = [
        measure_drift(recording(2 * seed, 40, step), recording(2 * seed + 1, 80, step), COST, ("a", "b"), **options)
        for seed in range(seeds)
    ]
    return float(np.mean([each.drifted for each in found]))


def test_overlapping_windows_of_a_stationary_process_raise_few_alarms():
    assert false_alarms(20, step=8) <= 0.2
    assert false_alarms(20, step=8, overlap=1, block=1) >= 0.5  # as if they were independent


@pytest.mark.slow
@pytest.mark.parametrize("step", [16, 8, 4])
def test_the_share_of_false_alarms_is_the_nominal_one(step):
    assert false_alarms(300, step=step) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 300)


def test_the_block_follows_from_the_overlap():
    new, reference = recording(0, 80, 4), recording(1, 90, 4)

    def block(**options: object) -> int:
        few = {"level": 0.8, "n_shuffles": 4}
        return measure_drift(new, reference, COST, ("a", "b"), **few, **options).block

    assert block() == 1
    assert block(overlap=2) == 10
    assert block(overlap=4) == 20
    assert block(overlap=8) == 16  # four blocks at least: ten windows without common samples are left
    assert block(overlap=4, block=10) == 12  # whole windows without common samples
    new = recording(0, 10, 8)
    assert block(overlap=2) == 2


def test_what_cannot_be_dealt_is_refused():
    s = chains(12, 0)
    with refusal("n_shuffles", "99 or more for the level 0.99"):
        chance_band(s, s, COST, n_shuffles=50)
    with refusal("block", "6 or less"):
        chance_band(s, s, COST, block=7)
    with refusal("level"):
        chance_band(s, s, COST, level=1.0)


# What is said about a new recording, and how often it is right


NAMES = ("ax", "ay")
TRIALS = 30


def drift(codes: np.ndarray, reference: np.ndarray, **options) -> Drift:
    return measure_drift(codes, reference, COST, NAMES, **{"level": 0.9, "n_shuffles": 40, **options})


@pytest.mark.parametrize("n", [20, 120])
def test_windows_of_the_same_process_mostly_stay_and_others_leave(n):
    """Of 30 trials at level 0.9 more than 8 alarms have a chance of 0.8 %."""
    alarms = sum(drift(chains(n, 1000 + i), chains(60, i), seed=i).drifted for i in range(TRIALS))
    assert alarms <= 8
    assert all(drift(chains(n, 2000 + i, stay=0.95), chains(60, i), seed=i).left.all() for i in range(5))


def test_distances_are_movements_and_those_of_the_paper_stand_beside_them():
    new, old = chains(20, 1), chains(60, 0)
    counts = [TransitionCounts.from_codes(part, 4) for part in (old, new)]
    assert np.array_equal(drift(new, old).distances, movements(*counts, COST))
    assert np.array_equal(drift(new, old).channel_distances, channel_distances(*counts, COST))
    smoothed = drift(new, old, smoothing="additive", epsilon=0.1)
    assert np.array_equal(smoothed.channel_distances, channel_distances(*counts, COST, "additive", 0.1))
    assert np.array_equal(smoothed.distances, drift(new, old).distances)


def test_the_band_is_that_of_chance_with_the_same_options():
    new, old = chains(20, 1), chains(60, 0)
    options = {"level": 0.8, "n_shuffles": 20, "block": 5, "seed": 7}
    found, band = drift(new, old, **options), chance_band(new, old, COST, **options)
    assert np.array_equal(found.usual, band.usual)
    assert np.array_equal(found.upper, band.upper)
    assert (found.level, found.shuffles, found.block) == (0.8, 20, 5)


def test_channels_that_never_move_do_not_leave_a_band_without_width():
    still = np.zeros((20, 2, 8), np.int64)
    found = drift(still, still)
    assert found.upper.tolist() == [0.0, 0.0]
    assert not found.drifted


def test_a_sensor_that_sticks_at_a_code_never_seen_leaves():
    old = chains(60, 0) % 3
    new = chains(20, 1) % 3
    new[:, 1] = 3
    found = drift(new, old)
    assert found.left.tolist() == [False, True]
    assert found.channel_distances[1] == 0  # the paper's rule leaves such codes out


def one_moved() -> Drift:
    new = chains(40, 1)
    new[:, 1] = chains(40, 2, stay=0.95)[:, 1]
    return drift(new, chains(60, 0))


def test_the_channel_that_moved_is_named():
    found = one_moved()
    assert found.left.tolist() == [False, True]
    table = found.table()
    assert table["channel"].tolist() == ["ay", "ax"]
    assert table["left"].tolist() == [True, False]
    assert "1 of 2 channels moved further than chance moves windows like those of the source" in found.sentence()
    assert f"ay ({found.distances[1]:.3f}, at most {found.upper[1]:.3f})" in found.sentence()
    calm = drift(chains(40, 1), chains(60, 0))
    assert not calm.drifted
    assert calm.sentence().startswith("No channel moved further than")


def test_channels_stand_by_how_far_they_are_above_what_chance_shows_at_most_in_shares_of_it():
    """ay is three times as far as chance moves it, ax one and a half times, though further by any other measure."""
    distances, usual, upper = np.array([[0.0, 0.9, 0.3], [0.0, 0.1, 0.09], [0.0, 0.6, 0.1]])
    found = Drift(("still", "ax", "ay"), distances, distances, usual, upper, 0.9, 20, 20, "source", 20, 1)
    assert found.table()["channel"].tolist() == ["ay", "ax", "still"]


def test_json_has_the_documented_keys_and_the_tables_numbers():
    found = one_moved()
    read = json.loads(json.dumps(found.as_json()))
    assert list(read) == [
        "format", "drifted", "compared_with", "windows", "reference_windows", "level", "shuffles", "block",
        "unwatched", "channels", "sentence",
    ]  # fmt: skip
    assert (read["format"], read["drifted"], read["windows"], read["reference_windows"]) == (
        "transpl-drift-1", True, 40, 60,
    )  # fmt: skip
    channels = pd.DataFrame(read["channels"]).rename(columns={"name": "channel"})
    table = found.table().set_index("channel")
    pd.testing.assert_frame_equal(channels.set_index("channel").loc[table.index], table)


def test_too_few_windows_are_not_judged():
    with refusal("X", "10 or more windows, got 9"):
        drift(chains(9, 1), chains(60, 0))
    with refusal("source", "10 or more windows, got 5"):
        drift(chains(20, 1), chains(5, 0))


def test_a_channel_of_one_code_is_said_to_be_unwatched():
    rng = np.random.default_rng(0)
    codes, reference = (rng.integers(0, 4, (40, 2, 9)) for _ in range(2))
    assert drift(codes, reference).unwatched == ()
    codes[:, 1] = reference[:, 1] = 2
    found = drift(codes, reference)
    assert found.unwatched == NAMES[1:2]
    assert found.as_json()["unwatched"] == [NAMES[1]]
    assert f" {NAMES[1]}." in found.sentence()
    codes[:, 1] = 3  # a sensor that sticks elsewhere is seen
    assert drift(codes, reference).unwatched == ()
