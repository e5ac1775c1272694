"""How windows are seen: as recorded, each domain standardised, or the shape of each window alone.

A view is two maps: one for signals, one for the columns of a witness's rows. What a map is made of comes from the
source alone (`recorded`) or from each domain itself, so that a target with another gain or offset is seen alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl.council.witnesses.base import Sight
from transpl.windows import Windows

Floats = NDArray[np.float64]

VIEWS = ("recorded", "standardised", "shape")
_FARTHEST = 10.0  # standard deviations that a column may be away
_STILL = 1e-2  # of a channel's usual deviation: less is not blown up to a shape
_AT_ONCE = 1024  # windows


@dataclass(frozen=True)
class Lens:
    """A view of one domain's signals: (x - mean) / scale per channel, or of each window by its own (`shape`).

    mean, scale : (D,)
    """

    view: str
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, view: str, windows: Windows) -> Lens:
        """The lens that these windows' means and deviations make."""
        if view not in VIEWS:
            raise invalid("views", expected=f"names among {', '.join(VIEWS)}", got=repr(view), advice="Check spelling.")
        mean, deviation = channel_moments(windows)
        return cls(view, mean, np.where(deviation > 0, deviation, 1.0))

    def see(self, windows: Windows) -> Sight:
        """Windows as this view shows them."""
        values = np.asarray(windows.in_memory().values, np.float32)
        inside = np.arange(values.shape[2]) < windows.lengths[:, None, None]
        mean, scale = self.mean[None, :, None], self.scale[None, :, None]
        if self.view == "shape":
            n = windows.lengths[:, None, None]
            own = np.where(inside, values, 0).sum(axis=2, keepdims=True, dtype=np.float64) / n
            squares = np.where(inside, (values - own) ** 2, 0).sum(axis=2, keepdims=True) / n
            mean, scale = own, np.sqrt(squares) + _STILL * scale
        seen = np.where(inside, (values - mean) / scale, 0)
        return Sight(seen.astype(np.float32), windows.lengths)

    def arrays(self) -> dict[str, NDArray]:
        return {"mean": self.mean, "scale": self.scale}


@dataclass(frozen=True)
class Columns:
    """A view of rows: (x - mean) / scale per column, at most ten scales away; (F,) each."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, rows: NDArray) -> Columns:
        deviation = rows.std(axis=0, dtype=np.float64)
        return cls(rows.mean(axis=0, dtype=np.float64), np.where(deviation > 1e-8, deviation, 1.0))

    def see(self, rows: NDArray) -> NDArray[np.float32]:
        return np.clip((rows - self.mean) / self.scale, -_FARTHEST, _FARTHEST).astype(np.float32)

    def arrays(self) -> dict[str, NDArray]:
        return {"mean": self.mean, "scale": self.scale}


def channel_moments(windows: Windows) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each channel over all time steps of all windows, (D,) each."""
    total, square, steps = np.zeros(windows.n_channels), np.zeros(windows.n_channels), 0
    shift = None
    for _, part in windows.chunks(_AT_ONCE):
        values = np.asarray(part.in_memory().values, np.float64)
        inside = np.arange(values.shape[2]) < part.lengths[:, None, None]
        shift = values[0, :, :1] if shift is None else shift  # squares of what is far from 0 would lose digits
        apart = np.where(inside, values - shift, 0)
        total += apart.sum(axis=(0, 2))
        square += (apart**2).sum(axis=(0, 2))
        steps += int(part.lengths.sum())
    assert shift is not None
    mean = total / steps
    return mean + shift[:, 0], np.sqrt(np.maximum(square / steps - mean**2, 0))
