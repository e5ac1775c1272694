"""What the clocks of a user's recordings are like: the usual step, what counts as a gap, and which rates make sense."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid

TOLERANCE = 1.5  # a longer step than so many usual ones is a gap, as in transpl.windows.time_breaks
_MOST_PER_ROW = 10  # more samples than that are made up by interpolation
_SAME_STEP = 1.1  # files whose usual steps differ by a larger factor are sampled differently
_UNITS = {3: "milliseconds", 6: "microseconds", 9: "nanoseconds"}


class Clock(NamedTuple):
    """The usual step of a recording's clock, NaN if it never goes on, and the longest step that is no gap."""

    step: float
    gap: float


def look_at(times: NDArray[np.float64], gap: float | None) -> Clock:
    """Take the median of the steps forward as the usual one."""
    steps = np.diff(times)
    forward = steps[steps > 0]
    usual = float(np.median(forward)) if len(forward) else math.nan
    return Clock(usual, gap if gap is not None else TOLERANCE * usual if len(forward) else 0.0)


def refuse_rate(rate: float, clock: Clock, name: str) -> None:
    """Raise if resampling would make up most of what it yields: the rate is not in the clock's unit, usually."""
    per_row = rate * clock.step
    if per_row > _MOST_PER_ROW and clock.step <= clock.gap:
        raise invalid(
            "rate",
            expected=f"at most {_MOST_PER_ROW} samples per row",
            got=f"{rate:g}, which makes {per_row:,.0f} samples of a row of {name} (usual time step: {clock.step:g})",
            advice=_unit_advice(rate, per_row),
        )


def describe_gap(clocks: list[Clock]) -> str:
    """Return the longest step that is no gap, in words; a range if recordings differ."""
    gaps = sorted({clock.gap for clock in clocks})
    return f"{gaps[0]:g}" if len(gaps) == 1 else f"{gaps[0]:g} to {gaps[-1]:g}, by recording"


def different_steps(files: dict[str, list[Clock]]) -> list[str]:
    """Return a sentence if the usual time step is not the same in all files."""
    known = {name: [clock.step for clock in clocks if clock.step > 0] for name, clocks in files.items()}
    usual = {name: float(np.median(steps)) for name, steps in known.items() if steps}
    if not usual:
        return []
    shortest, longest = min(usual, key=usual.__getitem__), max(usual, key=usual.__getitem__)
    if usual[longest] <= _SAME_STEP * usual[shortest]:
        return []
    span = f"from {usual[shortest]:g} ({shortest}) to {usual[longest]:g} ({longest})"
    return [f"The usual time step differs between files, {span}: give --rate, so that windows last equally long."]


def _unit_advice(rate: float, per_row: float) -> str:
    power = 3 * round(min(math.log10(per_row), 9) / 3)
    if power not in _UNITS:
        return "Choose a lower rate, or a gap below that step."
    return (
        f"The clock seems to be in {_UNITS[power]}: for {rate:g} samples per second the rate is {rate / 10**power:g}. "
        "Else choose a lower rate, or a gap below that step."
    )
