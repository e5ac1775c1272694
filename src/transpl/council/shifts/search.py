r"""Find what the sensors of an unlabelled target suffered: the shift under which the source explains it best.

    score(h) = 1 / n \sum_i log 1 / K \sum_k p(f_i | k, h)        f_i the features of target window i

The target's windows stay as they are; the *source's* class models are put under the hypothesis h. All hypotheses
explain the same numbers, so none wins by making windows smaller or smoother. Turns, mirrors, flips and swaps are scored
by gravity and cross-spectra (`cross_spectra`), another pace by the shape of spectra (`pace`); dead channels and other
units show without a likelihood (`plain`).

margin(h) = score(h) - score(none). People differ, so a margin alone says little. It is compared with two yardsticks:

    spread     how far the best hypothesis is ahead of the median one, on the target
    cost(h)    what h costs where it is known to be wrong: the source's earlier windows explain its later ones

A shift is undone if its margin is a fair share of both, and clear of sampling error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_choice, check_int, invalid
from transpl.council.shifts.cross_spectra import ClassModels, Group, Layout
from transpl.council.shifts.pace import RATES, pace_scores
from transpl.council.shifts.plain import dead_channels, unit_factors
from transpl.council.shifts.shift import KINDS, Shift
from transpl.council.shifts.triads import TURNS, Triad, find_triads, is_rotation_rate
from transpl.windows import as_windows

# Calibrated by benchmarks/shifts.py on the development pairs, so that nothing is undone on an untouched one.
SHARE_OF_SPREAD = {"turn": 0.5, "mirror": 0.5, "flip": 0.3, "swap": 0.3}  # one channel of many moves the score less
SHARE_OF_COST = 0.1  # several triads: their common motion shows how each of them is oriented
SHARE_OF_COST_ALONE = 0.5  # one triad or none
SHARE_OF_COST_OF_PACE = 0.3
STANDARD_ERRORS = 3.0
LEAST_MARGIN = 1.0  # log units per window
LEAST_MARGIN_OF_PACE = 5.0  # people's cadence differs by a fifth, which must not look like another sampling rate
LEAST_MARGIN_OF_PACE_PER_GROUP = 2.5  # untouched people who only walk differ by up to 2
BLOCKS = 10  # neighbouring windows are alike: the error of a mean is taken over blocks; fewer windows decide nothing
MOST_WINDOWS = 300
MOST_CHANNELS = 24  # the pairs of more are too many: of these only dead channels, units and pace are looked for


@dataclass(frozen=True)
class Candidate:
    """One hypothesis: mean log likelihood per window, how much more than without it, and how much was demanded."""

    shift: Shift
    score: float
    margin: float
    threshold: float

    @property
    def clear(self) -> bool:
        return self.margin >= self.threshold


@dataclass(frozen=True)
class ShiftSearch:
    """What was found and is undone, in the order in which `undo` takes it off.

    candidates : the likeliest first; behind those of orientation come those of pace, whose scores are of another kind
    """

    shifts: tuple[Shift, ...]
    candidates: tuple[Candidate, ...]
    score: float  # of the target as it is; NaN if nothing was searched

    def undo(self, values: NDArray[Any]) -> NDArray[Any]:
        """Take everything that was found off windows (n, channels, T) of the target; a copy."""
        undone = values.copy()
        for shift in self.shifts:
            undone = shift.undo(undone)
        return undone

    def undo_source(self, values: NDArray[Any]) -> NDArray[Any]:
        """Blank, in windows of the source, the channels that are dead in the target; a copy."""
        blank = values.copy()
        for shift in self.shifts:
            blank = shift.undo_source(blank)
        return blank

    def sentences(self, channel_names: Sequence[str] | None = None) -> tuple[str, ...]:
        """One sentence for each shift, or the one that there is none."""
        return tuple(shift.sentence(channel_names) for shift in self.shifts or (Shift(),))

    def to_json(self) -> dict[str, Any]:
        """Plain data; the keys stay."""
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
        """What `to_json` gave; other data raises a KeyError, TypeError or ValueError."""
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
    demand: Shift | None = None,
    patch_length: int = 8,
) -> ShiftSearch:
    """Search for a shift between labelled source windows and unlabelled target windows, both (n, channels, T).

    Nothing is searched in windows of unequal length or shorter than two patches.

    triads : see `find_triads`; without any, turns and mirrors are not tried
    allow : "auto" for every kind, "none" to report candidates and undo nothing, or the kinds that may be undone
    demand : a shift that is known and undone without a search
    """
    allowed = _allowed(allow)
    check_int("patch_length", patch_length, least=1)
    windows = as_windows(source, name="source")
    other = as_windows(target, name="target", n_channels=windows.n_channels)
    labels = np.asarray(y)
    found_triads = find_triads(triads, channel_names, windows.n_channels)
    if demand is not None:
        return ShiftSearch((demand,), (), float("nan"))
    if len(labels) != len(windows):
        raise invalid("y", expected=f"{len(windows)} labels", got=len(labels), advice="Give one per source window.")
    shortest = min(windows.values.shape[2], other.values.shape[2])
    if windows.ragged or other.ragged or shortest < 2 * patch_length:
        return ShiftSearch((), (), float("nan"))
    rows = _evenly(len(windows))
    here, labels = np.asarray(windows.values[rows], np.float32), labels[rows]
    there = np.asarray(other.values[_evenly(len(other))], np.float32)
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


def _orientations(
    source: NDArray[Any], y: NDArray[Any], target: NDArray[Any], groups: tuple[Group, ...], hypotheses: list[Shift]
) -> tuple[float, tuple[Candidate, ...]]:
    """The score of the target as it is, and turns, mirrors, flips and swaps judged."""
    D = source.shape[1]
    if D > MOST_CHANNELS:
        return float("nan"), ()
    layout = Layout.of(D, min(source.shape[2], target.shape[2]))
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
        max(LEAST_MARGIN, SHARE_OF_SPREAD[shift.kind] * spread, share * max(costs[i], usual_cost))
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
    least = max(LEAST_MARGIN_OF_PACE, LEAST_MARGIN_OF_PACE_PER_GROUP * len(groups))
    demands = [max(least, SHARE_OF_COST_OF_PACE * (known[0] - other)) for other in known[1:]]
    return _judged(hypotheses, scores, demands)


def _judged(hypotheses: list[Shift], scores: NDArray[np.float64], demands: list[float]) -> tuple[Candidate, ...]:
    """Candidates, the likeliest first; scores (hypotheses, windows), of which the first hypothesis is none."""
    means = scores.mean(axis=1)
    candidates = []
    for i, demand in enumerate(demands, start=1):
        threshold = max(demand, STANDARD_ERRORS * _standard_error(scores[i] - scores[0]))
        candidates.append(Candidate(hypotheses[i], float(means[i]), float(means[i] - means[0]), float(threshold)))
    return tuple(sorted(candidates, key=lambda candidate: -candidate.score))


def _winner(candidates: tuple[Candidate, ...], allowed: tuple[str, ...]) -> Shift | None:
    """The likeliest of the clear ones that may be undone."""
    return next((c.shift for c in candidates if c.clear and c.shift.kind in allowed), None)


def _standard_error(differences: NDArray[np.float64]) -> float:
    """Of the mean, from the spread of blocks; infinite if there are fewer windows than blocks."""
    if len(differences) < BLOCKS:
        return float("inf")
    return float(np.std([block.mean() for block in np.array_split(differences, BLOCKS)], ddof=1) / np.sqrt(BLOCKS))


def _hypotheses(
    source: NDArray[Any], target: NDArray[Any], triads: tuple[Triad, ...], channel_names: Sequence[str] | None
) -> list[Shift]:
    """Nothing first; then what is possible with channels that show anything."""
    D = source.shape[1]
    moving = (np.ptp(source, axis=(0, 2)) > 0) & (np.ptp(target, axis=(0, 2)) > 0)
    found = [Shift()]
    if triads and all(moving[list(triad)].all() for triad in triads):
        found += [Shift.turn(turn, triads, D) for turn in TURNS[1:]]
        mirrors = (_mirror(axis, triads, channel_names, D) for axis in range(3))
        found += [mirror for mirror in mirrors if mirror.signs.count(-1) > 1]  # of one axis, a flip says the same
    alive = np.flatnonzero(moving).tolist()
    found += [Shift.flip([d], D) for d in alive]
    found += [Shift.swap(c, d, D) for i, c in enumerate(alive) for d in alive[i + 1 :]]
    return found


def _mirror(axis: int, triads: tuple[Triad, ...], channel_names: Sequence[str] | None, D: int) -> Shift:
    """A mirror turns round one axis of what points somewhere, and the two others of what turns about an axis."""
    flipped = []
    for triad in triads:
        others = is_rotation_rate(triad, channel_names)
        flipped += [channel for i, channel in enumerate(triad) if (i == axis) != others]
    return Shift.flip(flipped, D, kind="mirror")


def _groups(triads: tuple[Triad, ...], D: int) -> tuple[Group, ...]:
    taken = {channel for triad in triads for channel in triad}
    return (*triads, *((d,) for d in range(D) if d not in taken))


def _halves(y: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The earlier and the later windows of each class, so that overlapping windows stay together."""
    first = np.zeros(len(y), bool)
    for label in np.unique(y):
        of = np.flatnonzero(y == label)
        first[of[: (len(of) + 1) // 2]] = True
    return (first, ~first) if not first.all() else (first, first)


def _finite(value: float) -> float | None:
    """JSON has no infinity and no NaN."""
    return value if np.isfinite(value) else None


def _evenly(n: int) -> NDArray[np.int64]:
    return np.linspace(0, n - 1, min(n, MOST_WINDOWS)).astype(np.int64)


def _allowed(allow: str | Sequence[str]) -> tuple[str, ...]:
    if allow == "auto":
        return KINDS
    if allow == "none":
        return ()
    kinds = (allow,) if isinstance(allow, str) else tuple(allow)
    for kind in kinds:
        check_choice("allow", kind, ("auto", "none", *KINDS))
    return kinds
