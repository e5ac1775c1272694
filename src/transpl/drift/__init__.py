"""Has a new recording moved further than chance? Channel distances beside the band that equal data would show.

On integer arrays of codes, as `markov` is; nothing here knows about torch, training or files.
"""

from transpl.drift.band import Band, bootstrap_band
from transpl.drift.verdict import Drift, measure_drift

__all__ = ["Band", "Drift", "bootstrap_band", "measure_drift"]
