"""Has a new recording moved further than chance? Channel distances beside the band that chance alone would show.

On integer arrays of codes, as `markov` is; nothing here knows about torch, training or files.
"""

from transpl.markov.drift.band import Band, chance_band
from transpl.markov.drift.movement import movements
from transpl.markov.drift.verdict import Drift, measure_drift

__all__ = ["Band", "Drift", "chance_band", "measure_drift", "movements"]
