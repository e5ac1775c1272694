"""What is said about a new recording: which channels moved further than chance moves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import invalid
from transpl.markov.alignment import channel_distances
from transpl.markov.counts import TransitionCounts
from transpl.markov.drift.band import chance_band
from transpl.markov.drift.movement import movements

FORMAT = "transpl-drift-1"
FEWEST_WINDOWS = 10  # of fewer, chance moves the codes so far that nothing can be said


@dataclass(frozen=True, eq=False)
class Drift:
    """How far each channel of new windows is from a reference, and how far chance would move it.

    channel_distances : (channels,) of the paper, which decide how far a channel is trusted; not judged here
    distances : (channels,) `movements` of the codes, 0 is none
    usual, upper : (channels,) what chance shows on average, and at most
    windows, reference_windows : how many were compared
    compared_with : "source" or "reference"
    shuffles, block : how the band was found, see `chance_band`

    If new windows are like those of the reference, all channels stay below `upper` in a share `level` of the cases.
    """

    channel_names: tuple[str, ...]
    channel_distances: NDArray[np.float64]
    distances: NDArray[np.float64]
    usual: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: float
    windows: int
    reference_windows: int
    compared_with: str
    shuffles: int
    block: int

    @property
    def left(self) -> NDArray[np.bool_]:
        """Which channels left their band, (channels,)."""
        return self.distances > self.upper

    @property
    def drifted(self) -> bool:
        return bool(self.left.any())

    def table(self) -> pd.DataFrame:
        """One row per channel, the one furthest above what chance shows at most first, in shares of it."""
        table = pd.DataFrame(
            {
                "channel": self.channel_names,
                "distance": self.distances,
                "usual": self.usual,
                "upper": self.upper,
                "left": self.left,
                "channel_distance": self.channel_distances,
            }
        )
        excess = (self.distances - self.upper) / np.where(self.upper > 0, self.upper, 1.0)
        return table.iloc[np.argsort(-excess, kind="stable")].reset_index(drop=True)

    def sentence(self) -> str:
        """The answer in one sentence."""
        chance = f"chance moves windows like those of the {self.compared_with} in {100 * self.level:g} % of cases"
        if not self.drifted:
            return f"No channel moved further than {chance}."
        gone = self.table().query("left")
        names = ", ".join(f"{row.channel} ({row.distance:.3f}, at most {row.upper:.3f})" for row in gone.itertuples())
        return f"{len(gone)} of {len(self.channel_names)} channels moved further than {chance}: {names}."

    def as_json(self) -> dict[str, Any]:
        """Plain data; the keys stay."""
        return {
            "format": FORMAT,
            "drifted": self.drifted,
            "compared_with": self.compared_with,
            "windows": self.windows,
            "reference_windows": self.reference_windows,
            "level": self.level,
            "shuffles": self.shuffles,
            "block": self.block,
            "channels": [self._channel(d) for d in range(len(self.channel_names))],
            "sentence": self.sentence(),
        }

    def _channel(self, d: int) -> dict[str, Any]:
        return {
            "name": self.channel_names[d],
            "distance": float(self.distances[d]),
            "usual": float(self.usual[d]),
            "upper": float(self.upper[d]),
            "left": bool(self.left[d]),
            "channel_distance": float(self.channel_distances[d]),
        }


def measure_drift(
    codes: NDArray[np.integer],
    reference: NDArray[np.integer],
    cost: ArrayLike,
    channel_names: tuple[str, ...],
    *,
    compared_with: str = "source",
    level: float = 0.99,
    n_shuffles: int = 200,
    block: int = 1,
    smoothing: str = "floor",
    epsilon: float | None = None,
    seed: int = 0,
) -> Drift:
    """Compare codes (windows, channels, N) of new windows with those of a reference; options as in `chance_band`.

    smoothing, epsilon : of the paper's distances, which stand beside those that are judged
    """
    _check_enough("X", codes)
    _check_enough(compared_with, reference)
    n_codes = np.shape(cost)[0]
    here, there = (TransitionCounts.from_codes(part, n_codes) for part in (codes, reference))
    band = chance_band(codes, reference, cost, level=level, n_shuffles=n_shuffles, block=block, seed=seed)
    return Drift(
        channel_names,
        channel_distances(there, here, cost, smoothing, epsilon),
        movements(there, here, cost),
        *band,
        level=level,
        windows=len(codes),
        reference_windows=len(reference),
        compared_with=compared_with,
        shuffles=n_shuffles,
        block=block,
    )


def _check_enough(name: str, codes: NDArray[np.integer]) -> None:
    if len(codes) < FEWEST_WINDOWS:
        expected = f"{FEWEST_WINDOWS} or more windows"
        advice = "Record longer: chance alone moves the codes of so few windows too far to tell."
        raise invalid(name, expected=expected, got=len(codes), advice=advice)
