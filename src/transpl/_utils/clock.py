"""A clock for how long work takes, also work that an earlier process began."""

from __future__ import annotations

import time
from contextvars import ContextVar

_earlier: ContextVar[float] = ContextVar("seconds of earlier processes", default=0.0)


def work_seconds() -> float:
    """Return the seconds on a clock that only differences make sense of, like `time.perf_counter`.

    It is set forward when work goes on that another process began, by the time that it took there. So whoever measures
    around a training gets all of its time, however often it was interrupted.
    """
    return time.perf_counter() + _earlier.get()


def count_earlier(seconds: float) -> None:
    """Set the clock forward by the time that an earlier process spent on what goes on now."""
    _earlier.set(_earlier.get() + seconds)
