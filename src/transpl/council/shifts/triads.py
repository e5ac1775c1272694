"""Triads: which three channels are the x, y and z of one sensor; and the 24 turns of the cube they may suffer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np

from transpl._utils.errors import invalid

Triad = tuple[int, int, int]
Turn = tuple[tuple[int, int, int], tuple[int, int, int]]  # axis d shows sign[d] times axis order[d]

_AXIS = re.compile(r"^(?P<before>.*)(?P<gap>[_\-. ]?)(?P<axis>[xyzXYZ])(?P<after>(?:[_\-. ].*)?)$")
_ROTATION_RATE = re.compile(r"gyr|omega|rot|ang|(^|[_\-. ])w$", re.IGNORECASE)


def _turns() -> tuple[Turn, ...]:
    """All rotations of the cube, the one that does nothing first."""
    found = []
    for order in permutations(range(3)):
        for signs in product((1, -1), repeat=3):
            matrix = np.zeros((3, 3))
            matrix[range(3), order] = signs
            if np.linalg.det(matrix) > 0:
                found.append((order, signs))
    return tuple(sorted(found, key=lambda turn: (-turn_trace(turn), turn)))  # type: ignore[arg-type]


def turn_trace(turn: Turn) -> int:
    """1 + 2 cos(angle) of a rotation, the trace of its matrix."""
    order, signs = turn
    return sum(sign for axis, (source, sign) in enumerate(zip(order, signs, strict=True)) if axis == source)


TURNS: tuple[Turn, ...] = _turns()


def find_triads(
    triads: Sequence[Sequence[int | str]] | None, channel_names: Sequence[str] | None, n_channels: int
) -> tuple[Triad, ...]:
    """Return the triads as channel numbers: those given by number or name, else those that the names show.

    Names show a triad if they differ in one letter x, y, z alone: ax ay az, acc_x acc_y acc_z, accX accY accZ.
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
    """True if the names say that a triad measures turning (a gyroscope), which a mirror shows with other signs."""
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
            raise invalid(
                "triads", expected=f"names of channels ({names})", got=repr(channel), advice="Check the name."
            )
        return list(channel_names).index(channel)
    if isinstance(channel, bool) or not isinstance(channel, int | np.integer) or not 0 <= channel < n_channels:
        expected = f"channel names or numbers in 0..{n_channels - 1}"
        raise invalid("triads", expected=expected, got=repr(channel), advice="Count channels from 0.")
    return int(channel)
