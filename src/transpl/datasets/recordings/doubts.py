"""What looks in a file as if it were not meant: a line for each."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_SAME_RATE = 1.1  # a sampling rate that differs by less is the same one
_OTHER_UNIT = 1000  # as milliseconds are of seconds


def suspected_times(values: NDArray[np.float64], names: tuple[str, ...]) -> list[str]:
    """A line on every channel that only ever grows; values (rows, channels)."""
    advice = "If it is the time, name it (--time-col), or name the channels (--channels)."
    return [
        f"{name!r} is taken as a channel, but it only grows. {advice}"
        for name, column in zip(names, values.T, strict=True)
        if len(column) > 2 and (column[1:] > column[:-1]).all()
    ]


def other_length(length: int, known: int | None) -> list[str]:
    """A line if windows that are already cut are not as long as those that a model knows."""
    if known is None or length == known:
        return []
    return [f"its windows have {length} samples and not {known}; they are already cut, and taken as they are."]


def other_rate(interval: float | None, known: float | None) -> list[str]:
    """A line if rows are not as far apart as those that a model knows; powers of 1000 may be another unit of time."""
    if interval is None or known is None:
        return []
    apart = math.log(interval / known, _OTHER_UNIT)
    factor = _OTHER_UNIT ** (apart - round(apart))
    if abs(math.log(factor)) <= math.log(_SAME_RATE):
        return []
    return [
        f"its rows are {factor:.3g} times as far apart in time as the source's ({interval:g} against {known:g}), "
        "so that the same motion looks faster or slower. Resample one of them."
    ]
