"""What came of one target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class AdaptedTarget:
    """Labels for the windows of a target, or an error.

    labels : (n,) by the adapted classifier; None if there was an error, as all arrays then are
    confidence : (n,) the largest probability
    probabilities : (n, K), columns in the order of `classes_`
    channel_distances, channel_weights : (channels,) how far each channel moved, how far it is trusted
    scores : accuracy and macro-F1 before and after, and of the pseudo-labels, if the target has labels to score with
    estimated_accuracy : accuracy, low and high, judged without labels; None of "paper"
    undone : what the target's sensors suffered and was undone, a sentence each
    seconds : on the clock of the worker
    notes : warnings on the way
    error : one line; None if all went well
    traceback : of the error; None if the worker died
    folder : where the results are, if they were to be written
    """

    name: str
    labels: NDArray | None = None
    confidence: NDArray[np.float64] | None = None
    probabilities: NDArray[np.float64] | None = None
    channel_names: tuple[str, ...] = ()
    channel_distances: NDArray[np.float64] | None = None
    channel_weights: NDArray[np.float64] | None = None
    scores: dict[str, Any] | None = None
    estimated_accuracy: dict[str, float] | None = None
    undone: tuple[str, ...] = ()
    seconds: float | None = None
    notes: tuple[str, ...] = ()
    error: str | None = None
    traceback: str | None = None
    folder: Path | None = None

    @classmethod
    def from_results(
        cls, name: str, classes: NDArray, probabilities: NDArray[np.float64], summary: dict[str, Any], **more: Any
    ) -> Self:
        """Of probabilities and a summary, whether just made or read from a folder."""
        channels = summary["channels"]
        return cls(
            name,
            labels=classes[probabilities.argmax(axis=1)],
            confidence=probabilities.max(axis=1),
            probabilities=probabilities,
            channel_names=tuple(channel["name"] for channel in channels),
            channel_distances=np.array([channel["distance"] for channel in channels]),
            channel_weights=np.array([channel["weight"] for channel in channels]),
            estimated_accuracy=summary.get("estimated_accuracy"),
            undone=tuple(summary.get("undone", ())),
            **more,
        )
