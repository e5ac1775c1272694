r"""Find the sensor shifts of an unlabelled target: those under which the source explains it best.

    score(h) = 1 / n \sum_i log 1 / K \sum_k p(f_i | k, h)        f_i the features of target window i

The target's windows stay as they are; h transforms the *source's* class models. All hypotheses explain the same
numbers, so none wins by making windows smaller or smoother. Turns, mirrors, flips and swaps are scored by gravity and
cross-spectra, another pace by the shape of spectra (`spectra`); dead channels and other units need no likelihood.

margin(h) = score(h) - score(none). People differ, so a margin alone says little. It is compared with two quantities:

    spread     the lead of the best hypothesis over the median one, on the target
    cost(h)    what h costs where it is known to be wrong: when the source's earlier windows explain its later ones

A shift is undone if its margin is a sufficient share of both, and clear of sampling error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_choice, invalid
from transpl.council.settings import KINDS
from transpl.council.shifts.shift import TURNS, Shift, Triad, find_triads, is_rotation_rate
from transpl.council.shifts.spectra import RATES, ClassModels, FeatureLayout, Group, pace_scores
from transpl.council.target_sample import rows_in_even_steps
from transpl.windows import as_windows

# Calibrated by benchmarks/shifts.py on the development pairs, so that nothing is undone on an untouched one.
SHARE_OF_SPREAD = {"turn": 0.5, "mirror": 0.5, "flip": 0.3, "swap": 0.3}  # a single channel changes the score less
SHARE_OF_COST = 0.1  # with several triads, whose common motion shows how each of them is oriented
SHARE_OF_COST_ALONE = 0.5  # with one triad or none
SHARE_OF_COST_OF_PACE = 0.3
STANDARD_ERRORS = 3.0
MIN_MARGIN = 1.0  # log units per window
MIN_MARGIN_OF_PACE = 5.0  # people's cadence differs by a fifth, which must not look like another sampling rate
MIN_MARGIN_OF_PACE_PER_GROUP = 2.5  # untouched people who only walk differ by up to 2
BLOCKS = 10  # for the error of a mean, because neighbouring windows are similar; fewer windows decide nothing
MAX_WINDOWS_SEARCHED = 300
_FEWEST_STEPS = 16
MAX_CHANNELS = 24  # with more there are too many pairs: only dead channels, units and pace are searched for
UNITS = (9.80665, 180 / np.pi, 1000.0, 9806.65)  # m/s² or g, degrees or radians, milli, m/s² or mg
_ALIKE = 1.0  # in log size: below half of the smallest unit, above what two people differ (at most 0.8)
_QUANTILES = (0.1, 0.9)  # a median would jump with the share of windows at rest
_QUIETER = 0.1  # of the source's quietest windows: a dead channel


@dataclass(frozen=True)
class Candidate:
    """A hypothesis: its mean log likelihood per window, its lead over no shift, and the lead that was required."""

    shift: Shift
    score: float
    margin: float
    threshold: float

    @property
    def clear(self) -> bool:
        return self.margin >= self.threshold


@dataclass(frozen=True)
class ShiftSearch:
    """The result of `find_shift`.

    Attributes
    ----------
    shifts : tuple of Shift
        What was found, in the order in which `undo` removes it.
    candidates : tuple of Candidate
        The likeliest first; candidates of pace, whose scores are not comparable, follow those of orientation.
    score : float
        Of the target as it is; NaN if nothing was searched.
    """

    shifts: tuple[Shift, ...]
    candidates: tuple[Candidate, ...]
    score: float

    def undo(self, values: NDArray[Any]) -> NDArray[Any]:
        """Remove everything that was found from windows (n, channels, T) of the target."""
        undone = values.copy()
        for shift in self.shifts:
            undone = shift.undo(undone)
        return undone

    def undo_source(self, values: NDArray[Any]) -> NDArray[Any]:
        """Blank the channels of the source that are dead in the target."""
        blank = values.copy()
        for shift in self.shifts:
            blank = shift.undo_source(blank)
        return blank

    def sentences(self, channel_names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Describe each shift in one sentence, or say that there is none."""
        return tuple(shift.sentence(channel_names) for shift in self.shifts or (Shift(),))

    def to_json(self) -> dict[str, Any]:
        """Return plain data with stable keys."""
        return {
            "shifts": [shift.to_json() for shift in self.shifts],
            "score": _finite(self.score),
            "candidates": [
                {"shift": c.shift.to_json(), "score": c.score, "margin": c.margin, "threshold": _finite(c.threshold)}
                for c in self.candidates
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ShiftSearch:
        """Restore the result of `to_json`; other data raises a KeyError, TypeError or ValueError."""
        candidates = (
            Candidate(Shift.from_json(c["shift"]), c["score"], c["margin"], c["threshold"]) for c in data["candidates"]
        )
        score = float("nan") if data["score"] is None else data["score"]
        return cls(tuple(Shift.from_json(shift) for shift in data["shifts"]), tuple(candidates), score)


def find_shift(
    source: Any,
    y: ArrayLike,
    target: Any,
    *,
    channel_names: Sequence[str] | None = None,
    triads: Sequence[Sequence[int | str]] | None = None,
    allow: str | Sequence[str] = "auto",
) -> ShiftSearch:
    """Search for shifts between labelled source windows and unlabelled target windows.

    Nothing is searched in windows of unequal length or of fewer than 16 steps.

    Parameters
    ----------
    source, target : windows
        In any form that `as_windows` accepts.
    y : (n,) array
        Labels of the source.
    channel_names, triads
        See `find_triads`; without any triad, turns and mirrors are not tried.
    allow : str or sequence of str
        "auto" for every kind, "none" to report candidates and undo nothing, or the kinds that may be undone.
    """
    allowed = _allowed(allow)
    windows = as_windows(source, name="source")
    other = as_windows(target, name="target", n_channels=windows.n_channels)
    labels = np.asarray(y)
    found_triads = find_triads(triads, channel_names, windows.n_channels)
    if len(labels) != len(windows):
        raise invalid("y", expected=f"{len(windows)} labels", got=len(labels), advice="Give one per source window.")
    shortest = min(windows.values.shape[2], other.values.shape[2])
    if windows.ragged or other.ragged or shortest < _FEWEST_STEPS:
        return ShiftSearch((), (), float("nan"))
    rows = rows_in_even_steps(len(windows), MAX_WINDOWS_SEARCHED)
    here, labels = np.asarray(windows.values[rows], np.float32), labels[rows]
    there = np.asarray(other.values[rows_in_even_steps(len(other), MAX_WINDOWS_SEARCHED)], np.float32)
    groups = _groups(found_triads, windows.n_channels)
    undone = []
    dead = dead_channels(here, there)
    if dead.kind in allowed:
        undone.append(dead)
        here, there = dead.undo_source(here), dead.undo(there)
    unit = unit_factors(here, there, found_triads)
    if unit.kind in allowed:
        undone.append(unit)
        there = unit.undo(there)
    paces = _paces(here, labels, there, groups)
    pace = _winner(paces, allowed)
    if pace is not None:
        undone.append(pace)
        there = pace.undo(there)
    score, orientations = _orientations(
        here, labels, there, groups, _hypotheses(here, there, found_triads, channel_names)
    )
    orientation = _winner(orientations, allowed)
    if orientation is not None:
        undone.append(orientation)
    return ShiftSearch(tuple(undone), (*orientations, *paces), score)


def dead_channels(source: NDArray[Any], target: NDArray[Any]) -> Shift:
    """Find channels that vary, in 9 of 10 target windows, less than a tenth of what 99 of 100 source windows do.

    The comparison is with the quietest source windows, so that a person who only sits is not a broken sensor.
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
    """Find channels in another unit: quiet and loud windows are both larger by about the same known factor.

    A factor moves both quantiles of log size alike, while other activities move only one of them.
    """
    D = source.shape[1]
    factors = np.ones(D)
    for group in _groups(triads, D):
        with np.errstate(divide="ignore", invalid="ignore"):  # a channel of zeros fits no unit
            moved = _log_sizes(target[:, group]) - _log_sizes(source[:, group])
        known = [factor for unit in UNITS for factor in (unit, 1 / unit)]
        fits = [float(np.abs(moved - np.log(factor)).max()) for factor in known]
        nearest = int(np.argmin(fits))
        if fits[nearest] <= _ALIKE:
            factors[list(group)] = known[nearest]
    return Shift("unit", factors=tuple(factors.tolist())) if (factors != 1).any() else Shift()


def _log_sizes(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return quantiles over windows of the logarithm of the root mean square."""
    sizes = np.sqrt((values.astype(np.float64) ** 2).mean(axis=(1, 2)))
    return np.log(np.quantile(sizes, _QUANTILES))


def _orientations(
    source: NDArray[Any], y: NDArray[Any], target: NDArray[Any], groups: tuple[Group, ...], hypotheses: list[Shift]
) -> tuple[float, tuple[Candidate, ...]]:
    """Return the score of the target as it is, and the candidates among turns, mirrors, flips and swaps."""
    D = source.shape[1]
    if D > MAX_CHANNELS:
        return float("nan"), ()
    layout = FeatureLayout.of(D, min(source.shape[2], target.shape[2]))
    moves = [(shift.order or tuple(range(D)), shift.signs or (1,) * D) for shift in hypotheses]
    seen = layout.features(source)
    scores = ClassModels.fit(layout, seen, y, groups).scores(layout.features(target), moves)
    earlier, later = _halves(y)
    known = ClassModels.fit(layout, seen[earlier], y[earlier], groups).scores(seen[later], moves).mean(axis=1)
    means, costs = scores.mean(axis=1), known[0] - known
    triads = sum(len(group) == 3 for group in groups)
    turns = [i for i, shift in enumerate(hypotheses) if shift.kind in ("none", "turn") or not triads]
    spread = means.max() - np.median(means[turns])
    usual_cost = np.median(costs[turns])
    share = SHARE_OF_COST if triads > 1 else SHARE_OF_COST_ALONE
    demands = [
        max(MIN_MARGIN, SHARE_OF_SPREAD[shift.kind] * spread, share * max(costs[i], usual_cost))
        for i, shift in enumerate(hypotheses[1:], start=1)
    ]
    return float(means[0]), _judged(hypotheses, scores, demands)


def _paces(
    source: NDArray[Any], y: NDArray[Any], target: NDArray[Any], groups: tuple[Group, ...]
) -> tuple[Candidate, ...]:
    hypotheses = [Shift("pace", rate=rate) if rate != 1 else Shift() for rate in RATES]
    earlier, later = _halves(y)
    scores = pace_scores(source, y, target, groups)
    known = pace_scores(source[earlier], y[earlier], source[later], groups).mean(axis=1)
    least = max(MIN_MARGIN_OF_PACE, MIN_MARGIN_OF_PACE_PER_GROUP * len(groups))
    demands = [max(least, SHARE_OF_COST_OF_PACE * (known[0] - other)) for other in known[1:]]
    return _judged(hypotheses, scores, demands)


def _judged(hypotheses: list[Shift], scores: NDArray[np.float64], demands: list[float]) -> tuple[Candidate, ...]:
    """Return candidates, the likeliest first; the first of the scores (hypotheses, windows) is that of no shift."""
    means = scores.mean(axis=1)
    candidates = []
    for i, demand in enumerate(demands, start=1):
        threshold = max(demand, STANDARD_ERRORS * _standard_error(scores[i] - scores[0]))
        candidates.append(Candidate(hypotheses[i], float(means[i]), float(means[i] - means[0]), float(threshold)))
    return tuple(sorted(candidates, key=lambda candidate: -candidate.score))


def _winner(candidates: tuple[Candidate, ...], allowed: tuple[str, ...]) -> Shift | None:
    """Return the likeliest clear candidate that may be undone."""
    return next((c.shift for c in candidates if c.clear and c.shift.kind in allowed), None)


def _standard_error(differences: NDArray[np.float64]) -> float:
    """Return the standard error of the mean over blocks; infinite with fewer windows than blocks."""
    if len(differences) < BLOCKS:
        return float("inf")
    return float(np.std([block.mean() for block in np.array_split(differences, BLOCKS)], ddof=1) / np.sqrt(BLOCKS))


def _hypotheses(
    source: NDArray[Any], target: NDArray[Any], triads: tuple[Triad, ...], channel_names: Sequence[str] | None
) -> list[Shift]:
    """Return no shift, and then those that channels with a signal allow."""
    D = source.shape[1]
    moving = (np.ptp(source, axis=(0, 2)) > 0) & (np.ptp(target, axis=(0, 2)) > 0)
    found = [Shift()]
    if triads and all(moving[list(triad)].all() for triad in triads):
        found += [Shift.turn(turn, triads, D) for turn in TURNS[1:]]
        mirrors = (_mirror(axis, triads, channel_names, D) for axis in range(3))
        found += [mirror for mirror in mirrors if mirror.signs.count(-1) > 1]  # of one channel it is a flip
    alive = np.flatnonzero(moving).tolist()
    found += [Shift.flip([d], D) for d in alive]
    found += [Shift.swap(c, d, D) for i, c in enumerate(alive) for d in alive[i + 1 :]]
    return found


def _mirror(axis: int, triads: tuple[Triad, ...], channel_names: Sequence[str] | None, D: int) -> Shift:
    """A mirror inverts one axis of a direction, and the two others of a rotation rate."""
    flipped = []
    for triad in triads:
        others = is_rotation_rate(triad, channel_names)
        flipped += [channel for i, channel in enumerate(triad) if (i == axis) != others]
    return Shift.flip(flipped, D, kind="mirror")


def _groups(triads: tuple[Triad, ...], D: int) -> tuple[Group, ...]:
    taken = {channel for triad in triads for channel in triad}
    return (*triads, *((d,) for d in range(D) if d not in taken))


def _halves(y: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Select the earlier and the later windows of each class, so that overlapping windows stay together."""
    first = np.zeros(len(y), bool)
    for label in np.unique(y):
        of = np.flatnonzero(y == label)
        first[of[: (len(of) + 1) // 2]] = True
    return (first, ~first) if not first.all() else (first, first)


def _finite(value: float) -> float | None:
    """Replace infinity and NaN, which JSON lacks, by None."""
    return value if np.isfinite(value) else None


def _allowed(allow: str | Sequence[str]) -> tuple[str, ...]:
    if allow == "auto":
        return KINDS
    if allow == "none":
        return ()
    kinds = (allow,) if isinstance(allow, str) else tuple(allow)
    for kind in kinds:
        check_choice("allow", kind, ("auto", "none", *KINDS))
    return kinds
