"""One thing that a sensor suffered: how it is put on windows, taken off them, told and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import resample_poly

from transpl._utils.errors import check_choice, check_positive, invalid
from transpl.council.shifts.triads import Triad, Turn, turn_trace
from transpl.windows import name_channels

KINDS = ("dead", "unit", "turn", "mirror", "flip", "swap", "pace")
_GEOMETRY = ("turn", "mirror", "flip", "swap")
_LARGEST_DENOMINATOR = 20
_DEGREES_BY_TRACE = {3: 0, 1: 90, 0: 120, -1: 180}


@dataclass(frozen=True)
class Shift:
    """What happened to the sensors of a target, seen from the source; kind "none" is nothing.

    order, signs : channel d of the target shows signs[d] times what channel order[d] of the source would ("turn" of
        whole triads, "mirror", "flip" of single channels, "swap")
    factors : channel d of the target shows factors[d] times the source's number ("unit")
    rate : the target has `rate` samples where the source has one ("pace")
    triads : the channels x, y, z that turned together ("turn")
    dead, fill : channels of the target that show nothing, and the value each is set to ("dead")
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
        """All triads of a device turned alike."""
        order, signs = list(range(n_channels)), [1] * n_channels
        for triad in triads:
            for axis, channel in enumerate(triad):
                order[channel], signs[channel] = triad[turn[0][axis]], turn[1][axis]
        return cls("turn", tuple(order), tuple(signs), triads=tuple(triads))

    @classmethod
    def flip(cls, channels: Sequence[int], n_channels: int, kind: str = "flip") -> Shift:
        """The sign of some channels changed: of one by a plug the wrong way round, of several by a mirror."""
        signs = tuple(-1 if d in channels else 1 for d in range(n_channels))
        return cls(kind, tuple(range(n_channels)), signs)

    @classmethod
    def swap(cls, first: int, second: int, n_channels: int) -> Shift:
        """Two channels changed places."""
        other = {first: second, second: first}
        return cls("swap", tuple(other.get(d, d) for d in range(n_channels)), (1,) * n_channels)

    def cause(self, values: NDArray[Any]) -> NDArray[Any]:
        """Put the shift on windows (n, channels, T) of the source; a copy. "pace" may change their length."""
        self._check(values)
        if self.kind in _GEOMETRY:
            return values[:, list(self.order)] * np.asarray(self.signs, values.dtype)[:, None]
        if self.kind == "unit":
            return _scaled(values, np.asarray(self.factors))
        if self.kind == "pace":
            return resampled(values, self.rate)
        return self._blanked(values)

    def undo(self, values: NDArray[Any]) -> NDArray[Any]:
        """Take the shift off windows (n, channels, T) of the target; a copy of the same shape.

        After "pace" a window that became longer is cut to its middle, one that became shorter goes on as its own
        mirror image.
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
        """What must happen to the source: a channel that is dead in the target says nothing there either."""
        return self._blanked(values)

    def sentence(self, channel_names: Sequence[str] | None = None) -> str:
        """The shift in one sentence."""
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
        """Plain data; the keys stay."""
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
        """Read what `to_json` wrote."""
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
        """Angle and axis of the turn, read off the first triad."""
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
    """Windows with `rate` samples where there was one, low-pass filtered so that nothing folds back."""
    ratio = Fraction(rate).limit_denominator(_LARGEST_DENOMINATOR)
    if ratio == 1:
        return values.copy()
    return resample_poly(values, ratio.numerator, ratio.denominator, axis=2, padtype="line").astype(values.dtype)


def _of_length(values: NDArray[Any], T: int) -> NDArray[Any]:
    """The middle T samples of longer windows; shorter ones continued by their mirror image."""
    spare = values.shape[2] - T
    if spare >= 0:
        return values[:, :, spare // 2 : spare // 2 + T]
    return np.pad(values, ((0, 0), (0, 0), (0, -spare)), mode="reflect" if values.shape[2] > 1 else "edge")


def _scaled(values: NDArray[Any], factors: NDArray[np.float64]) -> NDArray[Any]:
    return (values * factors[:, None]).astype(values.dtype)
