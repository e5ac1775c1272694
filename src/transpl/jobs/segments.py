"""From windows to segments: from when to when a recording has which label."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl.datasets.recordings.clocks import DAY, UNITS, as_dates, is_time_of_day, unit_of_dates

Floats = NDArray[np.float64]

NUMBER, DATE, TIME_OF_DAY, ORDER = "number", "date", "time of day", "order"
_DIGITS = 6  # of a time in seconds
_MILLISECONDS = 1e3  # per second
_ZONE = re.compile(r":\d\d(?:[.,]\d+)?\s*(Z|[+-]\d\d:?\d\d)$")
LONGEST = 1.5  # usual steps from one window to the next; a longer step is a gap


def segments_of(predictions: pd.DataFrame) -> pd.DataFrame | None:
    """Join consecutive windows with the same label: start, end, label, mean confidence and number of windows.

    Overlapping windows with different labels meet half-way between their centres. Start and end are written as in the
    time column, or are rows of the file without one. None if it is not known where windows begin and end.
    """
    kind, starts, ends = window_times(predictions)
    if ends is None:
        return None
    found = []
    for name, rows in recordings_of(predictions):
        order = rows[np.argsort(starts[rows], kind="stable")]
        found.append(_segments(predictions.iloc[order], starts[order], ends[order]).assign(recording=name))
    table = pd.concat(found, ignore_index=True)
    for side in ("start", "end"):
        table[side] = _written(table[side], kind, predictions)
    several = ["recording"] if len(found) > 1 else []
    return table[[*several, "start", "end", "label", "confidence", "windows"]]


def recordings_of(predictions: pd.DataFrame) -> list[tuple[str, NDArray[np.int64]]]:
    """Name and rows of each recording, in the order of the file."""
    columns = [name for name in ("domain", "group") if name in predictions]
    if not columns:
        return [("", np.arange(len(predictions)))]
    names = predictions[columns].astype(str).agg(", ".join, axis=1)
    codes, known = pd.factorize(names)
    return [(str(name), np.flatnonzero(codes == code)) for code, name in enumerate(known)]


def window_times(predictions: pd.DataFrame) -> tuple[str, Floats, Floats | None]:
    """When windows begin and end, as numbers, and what the numbers are.

    Dates are milliseconds since 1970, times of day since the first midnight. Without a clock they are rows of the file,
    or else the order of the windows.
    """
    for start, end in (("time", "time_end"), ("start", "end")):
        if start not in predictions:
            continue
        for kind, numbers in ((NUMBER, _numbers), (DATE, _milliseconds)):
            starts = numbers(predictions[start])
            if not np.isfinite(starts).all():
                continue
            ends = numbers(predictions[end]) if end in predictions else None
            if ends is not None and not np.isfinite(ends).all():
                ends = None
            if kind == NUMBER and start == "time" and (unit := unit_of_dates(starts)):
                per_second = UNITS[unit] / _MILLISECONDS
                return DATE, starts / per_second, None if ends is None else ends / per_second
            if kind == DATE and is_time_of_day(predictions[start]):
                return TIME_OF_DAY, *_over_midnight(predictions, starts, ends)
            return kind, starts, ends
    return ORDER, np.arange(len(predictions), dtype=np.float64), None


def _over_midnight(predictions: pd.DataFrame, starts: Floats, ends: Floats | None) -> tuple[Floats, Floats | None]:
    """Let times of day go on growing after midnight; the windows of a recording are in order."""
    day = DAY * _MILLISECONDS
    length = None if ends is None else (ends - starts) % day
    starts = starts.copy()
    for _, rows in recordings_of(predictions):
        starts[rows] = np.unwrap(starts[rows], period=day)
    return starts, None if length is None else starts + length


def at_changes(predictions: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark windows between two of different labels, of which they may hold both; none if their order is not known."""
    kind, starts, _ = window_times(predictions)
    labels = predictions["label"].astype(str).to_numpy()
    found = np.zeros(len(labels), np.bool_)
    if kind == ORDER:
        return found
    for _, rows in recordings_of(predictions):
        order = rows[np.argsort(starts[rows], kind="stable")]
        if len(order) > 2:
            found[order[1:-1]] = labels[order[:-2]] != labels[order[2:]]
    return found


def _segments(windows: pd.DataFrame, starts: Floats, ends: Floats) -> pd.DataFrame:
    labels = windows["label"].to_numpy()
    steps = np.diff(starts)
    usual = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    follows = (steps <= LONGEST * usual) | (starts[1:] <= ends[:-1])
    begins = np.concatenate([[True], ~follows | (labels[1:] != labels[:-1])])
    centre = (starts + ends) / 2
    middle = (centre[1:] + centre[:-1]) / 2
    first = np.where(np.concatenate([[False], follows]), np.concatenate([[0.0], middle]), starts)
    last = np.where(np.concatenate([follows, [False]]), np.concatenate([middle, [0.0]]), ends)
    number = np.cumsum(begins) - 1
    at = np.flatnonzero(begins)
    final = np.append(at[1:], len(labels)) - 1
    confidence = windows["confidence"].to_numpy(np.float64)
    return pd.DataFrame(
        {
            "start": first[at],
            "end": last[final],
            "label": labels[at],
            "confidence": np.bincount(number, confidence) / np.bincount(number),
            "windows": np.bincount(number),
        }
    )


def _written(times: pd.Series[Any], kind: str, predictions: pd.DataFrame) -> pd.Series[Any]:
    """Write numbers as the predictions write times: rows as whole numbers, dates in their zone if they have one."""
    if kind == NUMBER:
        return times.round(_DIGITS) if "time" in predictions else times.round().astype(np.int64)
    dates = pd.to_datetime(times, unit="ms", utc=True)
    if kind == TIME_OF_DAY:
        return dates.map(lambda each: each.time().isoformat(timespec="milliseconds"))
    column = predictions["time"]
    if not pd.api.types.is_numeric_dtype(column):  # numbers that are dates count from 1970 in UTC
        zone = _ZONE.search(str(column.iloc[0]))
        dates = (
            dates.dt.tz_convert(pd.Timestamp(f"2000-01-01T00:00{zone[1]}").tz) if zone else dates.dt.tz_localize(None)
        )
    return dates.map(lambda each: each.isoformat(timespec="milliseconds"))


def _numbers(column: pd.Series[Any]) -> Floats:
    return np.asarray(pd.to_numeric(column, errors="coerce"), np.float64)


def _milliseconds(column: pd.Series[Any]) -> Floats:
    dates = as_dates(column)
    since: Any = dates if pd.api.types.is_timedelta64_dtype(dates) else dates - pd.Timestamp(0, tz="UTC")
    return np.asarray(since / pd.Timedelta(milliseconds=1), np.float64)
