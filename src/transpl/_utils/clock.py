"""A clock for how long work takes, also work that an earlier process began."""

from __future__ import annotations

import time
from contextvars import ContextVar

_earlier: ContextVar[float] = ContextVar("seconds of earlier processes", default=0.0)


def work_seconds() -> float:
    """Return the seconds of a clock of which only differences mean anything, like `time.perf_counter`.

    When a process resumes work, the clock is set forward by the time that earlier processes spent on it, so that
    measured durations include all interrupted attempts.
    """
    return time.perf_counter() + _earlier.get()


def count_earlier(seconds: float) -> None:
    """Set the clock forward by the time that an earlier process spent on the work that is resumed."""
    _earlier.set(_earlier.get() + seconds)
