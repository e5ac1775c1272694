"""The clock of a recording: numbers or dates as seconds, the usual time step, gaps, repeated times."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.api import guess_datetime_format

from transpl._utils.errors import invalid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # per second
MAX_BRIDGED = 3  # missing samples on end that are filled in
DAY = 86_400.0  # seconds
SAME_RATE = 1.1  # sampling rates that differ by a smaller factor count as equal

_TOLERANCE = MAX_BRIDGED + 1.5  # a step longer than this many usual ones is a gap
_EVEN = 0.25  # of a usual step: an even clock is seldom further from a whole number of steps
_SELDOM = 0.01
_FEW_STEPS = 20  # distinct steps, at most, of a clock that counts in units about as long as a step
_VAGUE = 3 * 1.25 * 1.48  # standard errors of a median, by the median distance from it
_COARSE = 0.05  # share of rows with the time of the row before, above which the clock is coarser than the rows
_BORN, _OVER = 3.15e8, 4.1e9  # seconds since 1970 that are dates: 1980 to 2100
_NEXT_UNIT = 1000  # milliseconds in a second
_AGES = 1e12  # seconds
_TIME_OF_DAY = re.compile(r"\s*\d{1,2}:\d\d(:\d\d([.,]\d+)?)?\s*([AaPp]\.?[Mm]\.?)?\s*")
_PLAIN_TIME = re.compile(r"\s*\d{1,2}:\d\d:\d\d(\.\d+)?\s*")
_COMMA = re.compile(r"(?<=:\d\d),(?=\d)")  # before a fraction of a second; pandas would drop the fraction
_LONG = pd.Timedelta(days=27)
_DAY_FIRST = re.compile(r"\s*(1[3-9]|[23]\d)/\d|\s*\d{1,2}\.\d{1,2}\.\d\d")


class Clock(NamedTuple):
    """How a recording is sampled.

    step : usual time step; NaN if time never advances
    gap : longest step that is no gap
    even : whether rows follow one another at the usual step, apart from samples that are missing
    coarse : whether many rows have the time of the row before
    """

    step: float
    gap: float
    even: bool = True
    coarse: bool = False


def measure_clock(times: Floats, gap: float | None = None) -> Clock:
    """Measure a clock; `gap` replaces the longest step that is no gap.

    The usual step is the mean of the forward steps, with the samples that are missing counted. On an uneven clock they
    are counted only if the mean is further from the median than chance explains, as many steps look like two then; and
    not if the clock counts in units so long that usual steps differ by a factor, as 64 rows per second in 10 ms do.
    """
    steps = np.diff(times)
    forward = steps[steps > 0]
    if not len(forward):
        return Clock(math.nan, 0.0 if gap is None else gap, coarse=len(steps) > 0)
    usual = float(np.median(forward))
    short = forward[forward <= _TOLERANCE * usual]
    ratio = short / usual
    even = bool((np.abs(ratio - np.maximum(np.round(ratio), 1)) > _EVEN).mean() <= _SELDOM)
    vague = _VAGUE * float(np.median(np.abs(short - usual))) / math.sqrt(len(short))
    is_whole = not even and (abs(short.mean() - usual) <= vague or _counts_in_steps(ratio))
    usual = float(short.sum() / (len(short) if is_whole else max(np.round(ratio).sum(), 1)))
    coarse = bool((steps == 0).mean() > _COARSE)
    return Clock(usual, _TOLERANCE * usual if gap is None else gap, even, coarse)


def _counts_in_steps(ratio: Floats) -> bool:
    """Whether steps, in usual ones, have few lengths, as those of a clock have that is too coarse."""
    return 1 < len(np.unique(ratio.round(2))) <= _FEW_STEPS


def spread_repeated(times: Floats) -> Floats:
    """Spread rows with the same time evenly up to the next time: a clock in whole seconds still orders its rows.

    >>> spread_repeated(np.array([0.0, 0.0, 1.0, 1.0, 2.0]))
    array([0. , 0.5, 1. , 1.5, 2. ])
    """
    distinct, first, rows = np.unique(times, return_index=True, return_counts=True)
    if len(distinct) < 2:
        return times
    usual = float(np.median(np.diff(distinct)))
    ahead = np.minimum(np.append(np.diff(distinct), usual), _TOLERANCE * usual)
    place = np.arange(len(times)) - np.repeat(first, rows)
    # The first and last time may have fewer rows than fit between two.
    share = place / np.repeat(np.where(rows > 1, np.maximum(rows, int(np.median(rows))), 1), rows)
    return times + share * np.repeat(ahead, rows)


def seconds_column(frame: pd.DataFrame, column: str, path: Path, unit: str | None = None) -> Floats:
    """Return a time column as seconds from its earliest entry; numbers that are no dates are taken as seconds."""
    times = time_column(frame, column, path)
    seconds = seconds_since(times, times.min(), unit or unit_of_dates(times) or "s")
    refuse_ages(seconds, column, path)
    return seconds


def refuse_ages(seconds: Floats, column: str, path: Path) -> None:
    """Raise if a clock runs over more time than anybody recorded: it is damaged, or no clock."""
    if not np.abs(seconds).max(initial=0.0) < _AGES:
        got = f"times that are {np.abs(seconds).max():.3g} s apart"
        advice = "Check the column, or name its unit (--time-unit)."
        raise invalid(f"time_col {column!r} of {path.name}", expected="a clock", got=got, advice=advice)


def time_column(frame: pd.DataFrame, column: str, path: Path) -> pd.Series[Any]:
    """Return a time column as numbers, durations or dates; raise if a row has none."""
    series = frame[column]
    is_number = pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)
    if not is_number and not pd.api.types.is_timedelta64_dtype(series):
        series = as_dates(series)
    missing = series.isna() | series.isin([np.inf, -np.inf])
    if missing.any():
        words = missing & pd.to_numeric(frame[column].map(str, na_action="ignore"), errors="coerce").isna()
        missing = words if words.any() else missing  # in a column of numbers, point at the word
        first = int(np.flatnonzero(missing)[0])
        is_empty = bool(frame[column].isna().iloc[first])
        got = "an empty cell" if is_empty else repr(str(frame[column].iloc[first]))
        got = f"{got} in row {frame.index[first]}"
        advice = "Fill or remove such rows, or leave time_col out."
        raise invalid(
            f"time_col {column!r} of {path.name}", expected="a number or date in every row", got=got, advice=advice
        )
    return series


def is_time_of_day(column: pd.Series[Any]) -> bool:
    """Whether a time column has no dates, only times such as 23:59:59.98."""
    return pd.api.types.is_timedelta64_dtype(as_dates(column.head(1)))


def as_dates(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return words as dates, NaT where a word is none; 3.4.2026 and 31/3/2026 begin with the day.

    Of 1/3/2026, 2/3/2026, which may begin with either, the reading is taken that makes the recording shorter.
    Times of day are returned as the time since midnight.
    """
    if pd.api.types.is_datetime64_any_dtype(series):
        return series
    words = series.astype(str).str.replace(_COMMA, ".", regex=True)
    if words.head(1).str.fullmatch(_TIME_OF_DAY).all():
        return _since_midnight(words)
    day_first = bool(words.str.match(_DAY_FIRST).any())
    if not day_first:
        dates = pd.to_datetime(words, errors="coerce", utc=True, format="ISO8601")
        if not dates.isna().any():
            return dates
    dates = _parse_dates(words, day_first)
    if not day_first and _span(dates) > _LONG:  # a new month in the night, or a new day
        others = _parse_dates(words, day_first=True)
        return others if not others.isna().any() and _span(others) < _span(dates) else dates
    return dates


def _since_midnight(words: pd.Series[Any]) -> pd.Series[Any]:
    """Read times of day, NaT where a word is none."""
    found = pd.to_timedelta(words.where(words.str.fullmatch(_PLAIN_TIME)), errors="coerce")
    rest = found.isna() & words.str.fullmatch(_TIME_OF_DAY)  # 10:30 and 10:30:00 pm
    if rest.any():
        dates = pd.to_datetime(words[rest], errors="coerce", utc=True, format="mixed")
        found[rest] = dates - dates.dt.normalize()
    return found


def _parse_dates(words: pd.Series[Any], day_first: bool) -> pd.Series[Any]:
    """Read dates as the first one is written, which is fast, and the rest one by one."""
    first = words.iloc[0] if len(words) else ""
    shape = guess_datetime_format(first, dayfirst=day_first)
    dates = pd.to_datetime(words, errors="coerce", utc=True, format=shape or "mixed", dayfirst=day_first)
    rest = dates.isna()
    if shape is not None and rest.any():
        dates[rest] = pd.to_datetime(words[rest], errors="coerce", utc=True, format="mixed", dayfirst=day_first)
    return dates


def _span(dates: pd.Series[Any]) -> pd.Timedelta:
    return dates.max() - dates.min()


def unit_of_dates(times: Any) -> str | None:
    """Return the unit of numbers that are dates, counted since 1970; None for others."""
    if not pd.api.types.is_numeric_dtype(times):
        return None
    middle = float(np.median(times))
    return next((unit for unit, per_second in UNITS.items() if _BORN < middle / per_second < _OVER), None)


def seconds_since(times: pd.Series[Any], origin: Any, unit: str = "s") -> Floats:
    """Return times as seconds from `origin` on; subtracted first, because nanosecond clocks do not fit float64."""
    since: Any = times - origin
    if pd.api.types.is_timedelta64_dtype(since):
        return np.asarray(since.dt.total_seconds(), dtype=np.float64)
    return np.asarray(since, dtype=np.float64) / UNITS[unit]


def split_ratio(interval: float, known: float) -> tuple[int, float]:
    """Return k and f with interval = 1000^k f known, f as near to 1 as can be: units of time, and a ratio of rates."""
    power = round(math.log(interval / known, _NEXT_UNIT))
    return power, interval / known / float(_NEXT_UNIT) ** power


def is_same_rate(ratio: float) -> bool:
    """Whether sampling rates of this ratio count as equal."""
    return abs(math.log(ratio)) <= math.log(SAME_RATE)


def units_apart(interval: float, known: float) -> int:
    """Return k if `interval` is about 1000^k times `known`: then the clocks count in other units; else 0."""
    power, ratio = split_ratio(interval, known)
    return power if is_same_rate(ratio) else 0
