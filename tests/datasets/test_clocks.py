"""Clocks: the usual step with jitter and losses, coarse clocks, dates and units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transpl._utils.errors import InputError
from transpl.datasets.recordings.clocks import (
    as_dates,
    is_time_of_day,
    measure_clock,
    seconds_column,
    spread_repeated,
    unit_of_dates,
    units_apart,
)


@pytest.mark.parametrize("jitter", [0.0, 0.001, 0.003, 0.006])
@pytest.mark.parametrize("lost", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("n", [600, 24_000])
def test_the_usual_step_is_found_whatever_jitter_and_losses(jitter: float, lost: float, n: int) -> None:
    rng = np.random.default_rng(0)
    times = np.sort(np.arange(n) / 50 + rng.normal(0, jitter, n))
    clock = measure_clock(times[rng.random(n) >= lost])
    assert clock.step == pytest.approx(0.02, rel=0.06 if jitter and lost else 0.005)
    assert clock.even == (jitter < 0.002)


@settings(max_examples=100, deadline=None)
@given(st.floats(1, 1000), st.integers(200, 3000), st.sampled_from([0.0, 0.05, 0.2, 0.4]), st.integers(0, 99))
def test_the_usual_step_is_found_at_any_rate(rate: float, n: int, jitter: float, seed: int) -> None:
    times = np.arange(n) / rate + np.random.default_rng(seed).uniform(-jitter, jitter, n) / rate
    assert measure_clock(np.sort(times)).step == pytest.approx(1 / rate, rel=0.03)


@settings(max_examples=100, deadline=None)
@given(st.floats(5, 500), st.integers(500, 3000))
def test_the_usual_step_is_found_by_a_clock_that_counts_milliseconds(rate: float, n: int) -> None:
    times = np.floor(np.arange(n) / rate * 1000) / 1000
    clock = measure_clock(times)
    if not clock.coarse:
        assert clock.step == pytest.approx(1 / rate, rel=0.02)


@settings(max_examples=50, deadline=None)
@given(st.floats(5, 200), st.floats(0.01, 0.05), st.integers(0, 99))
def test_lost_rows_change_the_usual_step_of_a_jittered_clock_by_their_share_at_most(
    rate: float, lost: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    times = np.sort(np.arange(2000) + rng.uniform(-0.4, 0.4, 2000)) / rate
    step = measure_clock(times[rng.random(2000) >= lost]).step
    assert 0.97 <= step * rate <= 1.03 + 1.3 * lost


def test_a_clock_with_late_rows_is_not_even() -> None:
    times = np.arange(2000) / 50
    late = times + 0.015 * (np.arange(2000) % 50 == 7)
    assert not measure_clock(late).even
    assert measure_clock(late).step == pytest.approx(0.02)


def test_a_clock_that_never_advances_has_no_step() -> None:
    assert np.isnan(measure_clock(np.zeros(5)).step)
    assert np.isnan(measure_clock(np.zeros(1)).step)


def test_a_given_gap_is_kept() -> None:
    assert measure_clock(np.arange(9.0), gap=2.5).gap == 2.5
    assert 4 < measure_clock(np.arange(9.0)).gap < 5  # three missing samples are no gap, four are


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.integers(1, 7))
def test_spread_times_grow_and_keep_their_second(seconds: int, per_second: int) -> None:
    times = np.repeat(np.arange(seconds, dtype=float), per_second)
    spread = spread_repeated(times)
    assert (np.diff(spread) > 0).all()
    np.testing.assert_array_equal(np.floor(spread), times)
    np.testing.assert_allclose(np.diff(spread), 1 / per_second)


def test_rows_are_not_spread_over_a_gap() -> None:
    spread = spread_repeated(np.array([0.0, 0, 1, 1, 2, 2, 60, 60]))
    assert spread[5] < 10


@pytest.mark.parametrize(("power", "unit"), [(0, "s"), (3, "ms"), (6, "us"), (9, "ns")])
def test_numbers_since_1970_are_dates(power: int, unit: str) -> None:
    assert unit_of_dates(pd.Series(1_700_000_000 * 10**power + np.arange(3))) == unit
    assert unit_of_dates(pd.Series([0.0, 0.02])) is None
    assert unit_of_dates(pd.Series(["2026-01-01"])) is None


def test_days_come_first_where_they_must() -> None:
    assert as_dates(pd.Series(["03.04.2026 10:00", "04.04.2026 10:00"])).dt.day.tolist() == [3, 4]
    assert as_dates(pd.Series(["3/4/2026", "31/4/2025", "13/4/2026"])).dt.day.dropna().tolist() == [3, 13]
    assert as_dates(pd.Series(["03.04.26 10:00", "04.04.26 10:00"])).dt.day.tolist() == [3, 4]
    assert as_dates(pd.Series(["1/3/2026 23:59", "2/3/2026 00:00"])).dt.month.tolist() == [3, 3]
    assert as_dates(pd.Series(["3/1/2026 23:59", "3/2/2026 00:00"])).dt.month.tolist() == [3, 3]
    assert as_dates(pd.Series(["3.4.2026 10:00:01", "3.4.2026 10:00:01.5"])).dt.microsecond.tolist() == [0, 500_000]
    assert as_dates(pd.Series(["2026-04-03"])).dt.month.tolist() == [4]


def test_times_of_day() -> None:
    found = as_dates(pd.Series(["23:59:59,5", "0:00:01", "12:00:00 AM", "11:30 pm", "25:00:00", "then", "9 pm"]))
    seconds = found.dt.total_seconds()
    assert seconds[:5].tolist() == [86399.5, 1, 0, 84600, 90000]
    assert seconds[5:].isna().all()
    assert is_time_of_day(pd.Series(["23:59:59.98"]))
    assert not is_time_of_day(pd.Series(["2026-03-01 23:59:59.98"]))
    assert not is_time_of_day(pd.Series([1.5]))


def test_a_comma_before_the_fraction_of_a_second() -> None:
    found = as_dates(pd.Series(["2026-03-01 12:00:00,25", "2026-03-01 12:00:00.25"]))
    assert found[0] == found[1]
    assert found[0].microsecond == 250_000


def test_the_unit_may_be_said(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": [0, 20, 40]})
    np.testing.assert_allclose(seconds_column(frame, "t", tmp_path, "ms"), [0, 0.02, 0.04])
    np.testing.assert_allclose(seconds_column(frame, "t", tmp_path), [0, 20, 40])
    with pytest.raises(InputError, match="row 1"):
        seconds_column(pd.DataFrame({"t": [0.0, np.inf]}), "t", tmp_path)


@pytest.mark.parametrize(("interval", "power"), [(0.02, 0), (20.5, 1), (2e4, 2), (0.03, 0), (2.0, 0), (2e-5, -1)])
def test_clocks_a_thousand_times_apart_count_in_other_units(interval: float, power: int) -> None:
    assert units_apart(interval, 0.02) == power
