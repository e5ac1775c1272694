"""Sensor shifts: how each is applied, undone, described and stored; the axes of sensors and the turns of the cube."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, check_positive, invalid
from transpl.council.settings import KINDS
from transpl.windows import name_channels

Triad = tuple[int, int, int]
Turn = tuple[tuple[int, int, int], tuple[int, int, int]]  # axis d shows sign[d] times axis order[d]

_AXIS = re.compile(r"^(?P<before>.*)(?P<gap>[_\-. ]?)(?P<axis>[xyzXYZ])(?P<after>(?:[_\-. ].*)?)$")
_ROTATION_RATE = re.compile(r"gyr|omega|rot|ang|(^|[_\-. ])w$", re.IGNORECASE)

_GEOMETRY = ("turn", "mirror", "flip", "swap")
_LARGEST_DENOMINATOR = 20
_DEGREES_BY_TRACE = {3: 0, 1: 90, 0: 120, -1: 180}


@dataclass(frozen=True)
class Shift:
    """What happened to the sensors of a target, compared with the source.

    Attributes
    ----------
    kind : str
        One of `KINDS`, or "none".
    order, signs : tuples of int
        Channel d of the target shows signs[d] times what channel order[d] of the source would ("turn" of whole triads,
        "mirror", "flip" of single channels, "swap").
    factors : tuple of float
        Channel d of the target shows factors[d] times the source's value ("unit").
    rate : float
        The target has `rate` samples per sample of the source ("pace").
    triads : tuple of triads
        The channels x, y, z that turned together ("turn").
    dead, fill : tuples
        Channels of the target that show nothing, and the value that each is set to ("dead").

    Examples
    --------
    >>> Shift.swap(0, 1, n_channels=3).sentence(["x", "y", "z"])
    'x and y are swapped: undone.'
    """

    kind: str = "none"
    order: tuple[int, ...] = ()
    signs: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()
    rate: float = 1.0
    dead: tuple[int, ...] = ()
    fill: tuple[float, ...] = ()
    triads: tuple[Triad, ...] = ()

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("none", *KINDS))
        check_positive("rate", self.rate)
        for factor in self.factors:
            check_positive("factors", factor)
        if sorted(self.order) != list(range(len(self.order))) or len(self.signs) != len(self.order):
            got, advice = f"{self.order} and {self.signs}", "Name every channel once."
            raise invalid("order, signs", expected="a permutation and a sign per channel", got=got, advice=advice)
        if not set(self.signs) <= {1, -1}:
            raise invalid("signs", expected="1 or -1 per channel", got=self.signs, advice="Choose one of both.")
        if self.kind == "turn" and not self.triads:
            raise invalid("triads", expected="the channels that turned", got="none", advice="Use Shift.turn.")
        if len(self.dead) != len(self.fill):
            got = f"{len(self.fill)} for {len(self.dead)}"
            raise invalid("fill", expected="one value per dead channel", got=got, advice="Give one each.")

    @classmethod
    def turn(cls, turn: Turn, triads: Sequence[Triad], n_channels: int) -> Shift:
        """Turn all triads of a device alike."""
        order, signs = list(range(n_channels)), [1] * n_channels
        for triad in triads:
            for axis, channel in enumerate(triad):
                order[channel], signs[channel] = triad[turn[0][axis]], turn[1][axis]
        return cls("turn", tuple(order), tuple(signs), triads=tuple(triads))

    @classmethod
    def flip(cls, channels: Sequence[int], n_channels: int, kind: str = "flip") -> Shift:
        """Change the sign of some channels: of one by reversed polarity, of several by a mirror."""
        signs = tuple(-1 if d in channels else 1 for d in range(n_channels))
        return cls(kind, tuple(range(n_channels)), signs)

    @classmethod
    def swap(cls, first: int, second: int, n_channels: int) -> Shift:
        """Exchange two channels."""
        other = {first: second, second: first}
        return cls("swap", tuple(other.get(d, d) for d in range(n_channels)), (1,) * n_channels)

    def cause(self, values: NDArray[Any]) -> NDArray[Any]:
        """Apply the shift to windows (n, channels, T) of the source; "pace" may change their length."""
        self._check(values)
        if self.kind in _GEOMETRY:
            return values[:, list(self.order)] * np.asarray(self.signs, values.dtype)[:, None]
        if self.kind == "unit":
            return _scaled(values, np.asarray(self.factors))
        if self.kind == "pace":
            return resampled(values, self.rate)
        return self._blanked(values)

    def undo(self, values: NDArray[Any]) -> NDArray[Any]:
        """Remove the shift from windows (n, channels, T) of the target; the shape stays.

        After "pace" a longer window is cut to its middle, a shorter one is continued by its mirror image.
        """
        self._check(values)
        if self.kind in _GEOMETRY:
            undone = np.empty_like(values)
            undone[:, list(self.order)] = values * np.asarray(self.signs, values.dtype)[:, None]
            return undone
        if self.kind == "unit":
            return _scaled(values, 1 / np.asarray(self.factors))
        if self.kind == "pace":
            return _of_length(resampled(values, 1 / self.rate), values.shape[2])
        return self._blanked(values)

    def undo_source(self, values: NDArray[Any]) -> NDArray[Any]:
        """Blank channels of the source that are dead in the target."""
        return self._blanked(values)

    def sentence(self, channel_names: Sequence[str] | None = None) -> str:
        """Describe the shift in one sentence."""
        n = max(len(self.order), len(self.factors), max(self.dead, default=-1) + 1)
        names = name_channels(None, n) if channel_names is None else tuple(channel_names)
        flipped = [names[d] for d, sign in enumerate(self.signs) if sign < 0]
        if self.kind == "turn":
            return f"The device sits turned by {self._angle()}: undone."
        if self.kind == "mirror":
            return f"The device is worn mirrored (sign of {', '.join(flipped)}): undone."
        if self.kind == "flip":
            return f"The sign of {', '.join(flipped)} is reversed: undone."
        if self.kind == "swap":
            moved = [names[d] for d, origin in enumerate(self.order) if d != origin]
            return f"{' and '.join(moved)} are swapped: undone."
        if self.kind == "unit":
            return f"Another unit: {self._units(names)}: undone."
        if self.kind == "pace":
            return f"The target has {self.rate:.3g} samples where the source has one: resampled."
        if self.kind == "dead":
            dead = ", ".join(names[d] for d in self.dead)
            return f"{dead} {'shows' if len(self.dead) == 1 else 'show'} nothing in the target: left out."
        return "No shift that could be undone was found."

    def to_json(self) -> dict[str, Any]:
        """Return plain data with stable keys."""
        return {
            "kind": self.kind,
            "order": list(self.order),
            "signs": list(self.signs),
            "factors": list(self.factors),
            "rate": self.rate,
            "dead": list(self.dead),
            "fill": list(self.fill),
            "triads": [list(triad) for triad in self.triads],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Shift:
        """Restore the shift from the result of `to_json`."""
        try:
            lists = {key: tuple(data[key]) for key in ("order", "signs", "factors", "dead", "fill")}
            triads = tuple((x, y, z) for x, y, z in data["triads"])
            return cls(kind=data["kind"], rate=data["rate"], triads=triads, **lists)
        except (KeyError, TypeError) as error:
            raise invalid("data", expected="what Shift.to_json wrote", got=error, advice="Search again.") from None

    def _check(self, values: NDArray[Any]) -> None:
        n = len(self.order) or len(self.factors)
        if values.ndim != 3 or (n and values.shape[1] != n) or values.shape[1] <= max(self.dead, default=-1):
            expected = f"(n, {n or 'channels'}, time) windows"
            raise invalid("values", expected=expected, got=values.shape, advice="Pass the channels that were searched.")

    def _blanked(self, values: NDArray[Any]) -> NDArray[Any]:
        blank = values.copy()
        for channel, value in zip(self.dead, self.fill, strict=True):
            blank[:, channel] = value
        return blank

    def _angle(self) -> str:
        """Describe angle and axis of the turn by the first triad."""
        triad = self.triads[0]
        order = tuple(triad.index(self.order[d]) for d in triad)
        signs = tuple(self.signs[d] for d in triad)
        degrees = _DEGREES_BY_TRACE[turn_trace((order, signs))]  # type: ignore[arg-type]
        kept = [axis for axis in range(3) if order[axis] == axis and signs[axis] == 1]
        about = f"about {'xyz'[kept[0]]}" if kept else "about a diagonal"
        return f"{degrees} degrees {about}"

    def _units(self, names: Sequence[str]) -> str:
        by_factor: dict[float, list[str]] = {}
        for name, factor in zip(names, self.factors, strict=True):
            if factor != 1:
                by_factor.setdefault(factor, []).append(name)
        return "; ".join(f"{', '.join(of)} in numbers {factor:.4g} times as large" for factor, of in by_factor.items())


def resampled(values: NDArray[Any], rate: float) -> NDArray[Any]:
    """Resample windows to `rate` samples per sample, with a low-pass filter against aliasing."""
    ratio = Fraction(rate).limit_denominator(_LARGEST_DENOMINATOR)
    if ratio == 1:
        return values.copy()
    from scipy.signal import resample_poly  # loads slowly

    return resample_poly(values, ratio.numerator, ratio.denominator, axis=2, padtype="line").astype(values.dtype)


def _of_length(values: NDArray[Any], T: int) -> NDArray[Any]:
    """Return the middle T samples of longer windows; continue shorter ones by their mirror image."""
    spare = values.shape[2] - T
    if spare >= 0:
        return values[:, :, spare // 2 : spare // 2 + T]
    return np.pad(values, ((0, 0), (0, 0), (0, -spare)), mode="reflect" if values.shape[2] > 1 else "edge")


def _scaled(values: NDArray[Any], factors: NDArray[np.float64]) -> NDArray[Any]:
    return (values * factors[:, None]).astype(values.dtype)


def _turns() -> tuple[Turn, ...]:
    """Return all 24 rotations of the cube, the identity first."""
    found = []
    for order in permutations(range(3)):
        for signs in product((1, -1), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[range(3), order] = signs
            if np.linalg.det(matrix) > 0:
                found.append((order, signs))
    return tuple(sorted(found, key=lambda turn: (-turn_trace(turn), turn)))  # type: ignore[arg-type]


def turn_trace(turn: Turn) -> int:
    """Return the trace of a rotation matrix, 1 + 2 cos(angle)."""
    order, signs = turn
    return sum(sign for axis, (source, sign) in enumerate(zip(order, signs, strict=True)) if axis == source)


TURNS: tuple[Turn, ...] = _turns()


def find_triads(
    triads: Sequence[Sequence[int | str]] | None, channel_names: Sequence[str] | None, n_channels: int
) -> tuple[Triad, ...]:
    """Return triads (the x, y, z of one sensor) as channel numbers: those given, or those found in channel names.

    Names form a triad if they differ only in one letter x, y, z: ax ay az, acc_x acc_y acc_z, accX accY accZ.

    >>> find_triads(None, ["temperature", "acc_x", "acc_y", "acc_z"], 4)
    ((1, 2, 3),)
    """
    if triads is None:
        return _named_triads(channel_names) if channel_names is not None else ()
    found = []
    for triad in triads:
        if isinstance(triad, str) or len(triad) != 3:
            raise invalid("triads", expected="three channels each", got=repr(triad), advice="Name x, y and z.")
        x, y, z = (_channel(channel, channel_names, n_channels) for channel in triad)
        found.append((x, y, z))
    flat = [channel for triad in found for channel in triad]
    if len(set(flat)) < len(flat):
        raise invalid("triads", expected="every channel at most once", got=list(triads), advice="Name each once.")
    return tuple(found)


def is_rotation_rate(triad: Triad, channel_names: Sequence[str] | None) -> bool:
    """Whether a triad is a gyroscope by its names; a mirror changes other signs of a rotation rate."""
    if channel_names is None:
        return False
    name = _AXIS.match(channel_names[triad[0]])
    return bool(_ROTATION_RATE.search(name["before"] if name else channel_names[triad[0]]))


def _named_triads(channel_names: Sequence[str]) -> tuple[Triad, ...]:
    axes: dict[tuple[str, ...], dict[str, int]] = {}
    for channel, name in enumerate(channel_names):
        match = _AXIS.match(name)
        if match:
            stem = (match["before"], match["gap"], match["after"])
            axes.setdefault(stem, {}).setdefault(match["axis"].lower(), channel)
    return tuple((of["x"], of["y"], of["z"]) for of in axes.values() if len(of) == 3)


def _channel(channel: int | str, channel_names: Sequence[str] | None, n_channels: int) -> int:
    if isinstance(channel, str):
        if channel_names is None or channel not in channel_names:
            names = "none" if channel_names is None else ", ".join(channel_names)
            expected = f"names of channels ({names})"
            raise invalid("triads", expected=expected, got=repr(channel), advice="Check the name.")
        return list(channel_names).index(channel)
    if isinstance(channel, bool) or not isinstance(channel, int | np.integer) or not 0 <= channel < n_channels:
        expected = f"channel names or numbers in 0..{n_channels - 1}"
        raise invalid("triads", expected=expected, got=repr(channel), advice="Count channels from 0.")
    return int(channel)
