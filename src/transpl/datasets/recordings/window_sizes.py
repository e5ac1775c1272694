"""Lengths of windows and steps: samples, or seconds as "2.5s"."""

from __future__ import annotations

import re
from typing import NamedTuple

from transpl._utils.errors import check_int, invalid

WINDOW = 128  # samples
_SECONDS = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*s\s*")


class Sizes(NamedTuple):
    """Window and step in samples, and the samples per second if runs are resampled."""

    window: int
    step: int
    rate: float | None = None


def check_size(argument: str, size: int | str | None) -> bool:
    """Return whether a size is in seconds; raise if it is neither seconds nor a number of samples."""
    if size is None:
        return False
    if isinstance(size, str):
        found = _SECONDS.fullmatch(size)
        if found is None or not float(found[1]) > 0:
            expected = 'samples (128) or seconds ("2.5s")'
            raise invalid(argument, expected=expected, got=repr(size), advice="Write it like one of these.")
        return True
    check_int(argument, size, least=1)
    return False


def in_samples(
    window: int | str | None, step: int | str | None, rate: float | None, interval: float | None, name: str
) -> tuple[int, int]:
    """Return window and step in samples, taken at `rate` or, without one, every `interval` seconds."""
    per_second = rate or (1 / interval if interval else None)
    length = WINDOW if window is None else _samples("window", window, per_second, name)
    return length, max(1, length // 2) if step is None else _samples("step", step, per_second, name)


def _samples(argument: str, size: int | str, per_second: float | None, name: str) -> int:
    if not isinstance(size, str):
        return int(size)
    if per_second is None:
        advice = "Give it in samples, or check time_col."
        raise invalid(argument, expected=f"a clock that advances in {name}", got=repr(size), advice=advice)
    found = _SECONDS.fullmatch(size)
    assert found is not None  # check_size was asked before
    samples = round(float(found[1]) * per_second)
    if samples < 1:
        got = f"{size!r}, which is less than a sample at {per_second:g} per second"
        raise invalid(argument, expected="at least one sample", got=got, advice="Choose a longer one.")
    return samples
