"""Segments: from windows to stretches of one label, by a slow definition and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl.jobs.segments import at_changes, segments_of, window_times


def windows(labels: str, step: float = 1.0, length: float = 2.0, **columns: object) -> pd.DataFrame:
    begin = step * np.arange(len(labels))
    table = {"time": begin, "time_end": begin + length, "label": list(labels), "confidence": 0.5, **columns}
    return pd.DataFrame(table)


def test_by_hand() -> None:
    found = segments_of(windows("aaab"))
    assert found is not None
    assert found.columns.tolist() == ["start", "end", "label", "confidence", "windows"]
    # centres of the third and fourth window: 3 and 4
    assert found[["start", "end", "label", "windows"]].to_numpy().tolist() == [[0.0, 3.5, "a", 3], [3.5, 5.0, "b", 1]]


@settings(max_examples=100, deadline=None)
@given(st.text("abc", min_size=1, max_size=30), st.integers(0, 5))
def test_segments_tile_the_recording(labels: str, seed: int) -> None:
    table = windows(labels, confidence=np.random.default_rng(seed).random(len(labels)))
    found = segments_of(table.sample(frac=1, random_state=seed))  # the order of the rows does not matter
    assert found is not None
    assert found["start"].iloc[0] == 0
    assert found["end"].iloc[-1] == len(labels) + 1
    np.testing.assert_array_equal(found["start"][1:], found["end"][:-1])
    assert (found["label"].to_numpy()[1:] != found["label"].to_numpy()[:-1]).all()
    assert found["windows"].sum() == len(labels)
    assert (found["confidence"] * found["windows"]).sum() == pytest.approx(table["confidence"].sum())


def test_a_gap_ends_a_segment() -> None:
    table = windows("aaaa")
    table.loc[2:, ["time", "time_end"]] += 100
    found = segments_of(table)
    assert found is not None
    assert found[["start", "end"]].to_numpy().tolist() == [[0, 3], [102, 105]]


def test_recordings_are_apart() -> None:
    found = segments_of(windows("aabb", group=list("pqpq")))
    assert found is not None
    assert found["recording"].tolist() == ["p", "p", "q", "q"]


def test_dates_stay_dates() -> None:
    begin = pd.Timestamp("2026-03-01 10:00") + pd.to_timedelta(np.arange(3), unit="s")
    texts = {"time": [str(each) for each in begin], "time_end": [str(each + pd.Timedelta("2s")) for each in begin]}
    found = segments_of(windows("aab").assign(**texts))
    assert found is not None
    assert found["start"].tolist() == ["2026-03-01T10:00:00.000", "2026-03-01T10:00:02.500"]
    numbers = windows("aab").assign(time=1.7e12 + 1e3 * np.arange(3), time_end=1.7e12 + 1e3 * np.arange(3) + 2e3)
    told = segments_of(numbers)
    assert told is not None
    assert told["start"][0] == "2023-11-14T22:13:20.000+00:00"


def test_times_of_day_go_on_after_midnight() -> None:
    texts = {"time": ["23:59:58.5", "23:59:59.5", "00:00:00.5"], "time_end": ["00:00:00.5", "00:00:01.5", "00:00:02.5"]}
    found = segments_of(windows("aab").assign(**texts))
    assert found is not None
    assert found["start"].tolist() == ["23:59:58.500", "00:00:01.000"]
    assert found["end"].tolist() == ["00:00:01.000", "00:00:02.500"]
    assert at_changes(windows("aba").assign(**texts)).tolist() == [False, False, False]
    assert at_changes(windows("aab").assign(**texts)).tolist() == [False, True, False]


@pytest.mark.parametrize("zone", ["", "+01:00", "Z"])
@pytest.mark.parametrize("fraction", ["", ".123456789"])
def test_dates_keep_their_zone(zone: str, fraction: str) -> None:
    texts = [f"2026-03-01T10:00:0{second}{fraction}{zone}" for second in range(5)]
    found = segments_of(windows("aab").assign(time=texts[:3], time_end=texts[2:]))
    assert found is not None
    milliseconds = ".123" if fraction else ".000"
    assert found["start"][0] == f"2026-03-01T10:00:00{milliseconds}{zone.replace('Z', '+00:00')}"


def test_rows_where_there_is_no_clock() -> None:
    table = windows("aab").drop(columns=["time", "time_end"]).assign(start=[0, 5, 10], end=[9, 14, 19])
    found = segments_of(table)
    assert found is not None
    assert found[["start", "end"]].to_numpy().tolist() == [[0, 12], [12, 19]]


def test_windows_that_nobody_knows_the_order_of_have_no_segments() -> None:
    table = windows("aab").drop(columns=["time", "time_end"])
    assert segments_of(table) is None
    assert window_times(table)[0] == "order"
    assert not at_changes(table).any()


def test_windows_at_a_change_are_marked() -> None:
    assert at_changes(windows("aaabbb")).tolist() == [False, False, True, True, False, False]
    assert at_changes(windows("aabbaa", group=list("ppppqq"))).tolist() == [False, True, True, False, False, False]
