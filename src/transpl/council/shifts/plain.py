"""Shifts that need no likelihood: a channel that shows nothing, and numbers in another unit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.council.shifts.shift import Shift
from transpl.council.shifts.triads import Triad

UNITS = (9.80665, 180 / np.pi, 1000.0, 9806.65)  # m/s² or g, degrees or radians, milli, m/s² or mg; and their inverses
_ALIKE = 1.0  # in log size: less than half-way to the smallest unit, more than two people differ (0.8 at most)
_QUANTILES = (0.1, 0.9)  # the median jumps with the share of windows at rest
_QUIETER = 0.1


def dead_channels(source: NDArray[Any], target: NDArray[Any]) -> Shift:
    """Dead: nine of ten target windows vary by less than a tenth of what 99 of 100 source windows do, or not at all.

    The quietest source windows are the yardstick, so that a person who only sits is not taken for a broken sensor.
    """
    here, there = source.std(axis=2, dtype=np.float64), target.std(axis=2, dtype=np.float64)  # (n, channels)
    moved = np.ptp(target, axis=(0, 2)) > 0
    alive = np.ptp(source, axis=(0, 2)) > 0
    quiet = np.quantile(there, 0.9, axis=0) < _QUIETER * np.quantile(here, 0.01, axis=0)
    dead = np.flatnonzero(alive & (quiet | ~moved))
    if len(dead) == 0:
        return Shift()
    means = source.mean(axis=(0, 2), dtype=np.float64)
    return Shift("dead", dead=tuple(dead.tolist()), fill=tuple(float(means[d]) for d in dead))


def unit_factors(source: NDArray[Any], target: NDArray[Any], triads: tuple[Triad, ...]) -> Shift:
    """Another unit: quiet and loud windows (quantiles of size) are both larger by about the same known factor.

    A factor moves both quantiles of log size alike; other activities move one of them.
    """
    D = source.shape[1]
    factors = np.ones(D)
    taken = {channel for triad in triads for channel in triad}
    for group in (*triads, *((d,) for d in range(D) if d not in taken)):
        with np.errstate(divide="ignore", invalid="ignore"):  # a channel that is zero throughout fits no unit
            moved = _log_sizes(target[:, group]) - _log_sizes(source[:, group])
        known = [factor for unit in UNITS for factor in (unit, 1 / unit)]
        fits = [float(np.abs(moved - np.log(factor)).max()) for factor in known]
        nearest = int(np.argmin(fits))
        if fits[nearest] <= _ALIKE:
            factors[list(group)] = known[nearest]
    return Shift("unit", factors=tuple(factors.tolist())) if (factors != 1).any() else Shift()


def _log_sizes(values: NDArray[Any]) -> NDArray[np.float64]:
    """Quantiles over windows of the logarithm of the root mean square."""
    sizes = np.sqrt((values.astype(np.float64) ** 2).mean(axis=(1, 2)))
    return np.log(np.quantile(sizes, _QUANTILES))
