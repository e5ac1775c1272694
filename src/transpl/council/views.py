"""Views: windows as recorded, standardised per domain, or reduced to the shape of each window.

A view scales signals, and for most witnesses also the columns of their rows. The view `recorded` takes mean and scale
from the source; the others take them from each domain itself, so that another gain or offset makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice
from transpl._utils.layout import Layout
from transpl.council.settings import VIEWS
from transpl.council.witnesses import ViewedWindows
from transpl.windows import Windows

Floats = NDArray[np.float64]

_MAX_DEVIATION = 10.0  # standard deviations at which a column is clipped
_STILL = 1e-2  # of a channel's usual deviation; noise below it is not blown up to a shape
_AT_ONCE = 1024  # windows


@dataclass(frozen=True)
class SignalScaler:
    """(x - mean) / scale per channel with (D,) arrays of a domain, or of each window itself in the view "shape"."""

    view: str
    mean: Floats
    scale: Floats
    layout: ClassVar[Layout] = {"mean": "f D", "scale": "p D"}

    @classmethod
    def fit(cls, view: str, windows: Windows) -> SignalScaler:
        """Take means and deviations from these windows; a constant channel gets scale 1."""
        check_choice("views", view, VIEWS)
        mean, deviation = channel_moments(windows)
        return cls(view, mean, np.where(deviation > 0, deviation, 1.0))

    def transform(self, windows: Windows) -> ViewedWindows:
        """Return the windows in this view; padding stays 0."""
        values = np.asarray(windows.in_memory().values, np.float32)
        inside = np.arange(values.shape[2]) < windows.lengths[:, None, None]
        mean, scale = self.mean[None, :, None], self.scale[None, :, None]
        if self.view == "shape":
            n = windows.lengths[:, None, None]
            own = np.where(inside, values, 0).sum(axis=2, keepdims=True, dtype=np.float64) / n
            squares = np.where(inside, (values - own) ** 2, 0).sum(axis=2, keepdims=True) / n
            mean, scale = own, np.sqrt(squares) + _STILL * scale
        scaled = np.where(inside, (values - mean) / scale, 0)
        return ViewedWindows(scaled.astype(np.float32), windows.lengths)

    def arrays(self) -> dict[str, NDArray]:
        """Return mean and scale, to save."""
        return {"mean": self.mean, "scale": self.scale}


@dataclass(frozen=True)
class RowScaler:
    """(x - mean) / scale per column with (F,) arrays, clipped to ten deviations."""

    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, rows: NDArray) -> RowScaler:
        """Take means and deviations from rows (n, F); a constant column gets scale 1."""
        deviation = rows.std(axis=0, dtype=np.float64)
        return cls(rows.mean(axis=0, dtype=np.float64), np.where(deviation > 1e-8, deviation, 1.0))

    def transform(self, rows: NDArray) -> NDArray[np.float32]:
        """Return the scaled rows, (n, F)."""
        return np.clip((rows - self.mean) / self.scale, -_MAX_DEVIATION, _MAX_DEVIATION).astype(np.float32)

    def arrays(self) -> dict[str, NDArray]:
        """Return mean and scale, to save."""
        return {"mean": self.mean, "scale": self.scale}


def channel_moments(windows: Windows) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each channel over all time steps of all windows, (D,) each."""
    total, square, steps = np.zeros(windows.n_channels), np.zeros(windows.n_channels), 0
    first = np.asarray(windows[:1].in_memory().values[0, :, :1], np.float64)  # squares far from 0 would lose digits
    for _, part in windows.chunks(_AT_ONCE):
        values = np.asarray(part.in_memory().values, np.float64)
        inside = np.arange(values.shape[2]) < part.lengths[:, None, None]
        apart = np.where(inside, values - first, 0)
        total += apart.sum(axis=(0, 2))
        square += (apart**2).sum(axis=(0, 2))
        steps += int(part.lengths.sum())
    mean = total / steps
    return mean + first[:, 0], np.sqrt(np.maximum(square / steps - mean**2, 0))
