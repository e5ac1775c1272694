"""What is said about a new recording, and how often it is right."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from code_chains import COST, chains
from conftest import refusal

from transpl.markov import TransitionCounts, channel_distances
from transpl.markov.drift import Drift, chance_band, measure_drift, movements

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
        "channels", "sentence",
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
