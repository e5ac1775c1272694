"""Signals small enough for a page: at most so many points each, 16 bits per value."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

POINTS = 512  # per channel; a page has hardly more dots across
ABSENT = 65535


def packed(signals: NDArray[np.float32]) -> dict[str, Any]:
    """Every `stride`-th step of (n, D, T), in 65535 levels from `low` to `high` of each channel, as base64.

    value = low_d + level / 65534 (high_d - low_d); level 65535 is a step behind the end of a shorter window.
    """
    stride = -(-signals.shape[-1] // POINTS)
    kept = signals[..., ::stride].astype(np.float64)
    known = np.isfinite(kept)
    low = np.where(known, kept, np.inf).min(axis=(0, 2))
    high = np.where(known, kept, -np.inf).max(axis=(0, 2))
    span = np.where(high > low, high - low, 1.0)[:, None]
    levels = np.where(known, np.round((np.where(known, kept, 0.0) - low[:, None]) / span * (ABSENT - 1)), ABSENT)
    return {
        "steps": signals.shape[-1],
        "stride": stride,
        "points": kept.shape[-1],
        "low": low.tolist(),
        "high": (low + span[:, 0]).tolist(),
        "data": base64.b64encode(levels.astype("<u2").tobytes()).decode(),
    }
