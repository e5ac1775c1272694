"""What a job left in its folder, read back for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import unreadable_file
from transpl._utils.files import read_json
from transpl.council import CouncilExplanation, load_explanation
from transpl.jobs.result_folders import holds_many, require_whole, require_whole_predictions
from transpl.markov import BaseExplanation, ShiftReport

_ORIGIN = ("domain", "group", "start")  # columns of predictions.csv that tell where a window comes from


class Channel(NamedTuple):
    """How far a channel moved, and how much it still counts (1 is as one that did not move)."""

    name: str
    distance: float
    weight: float


class Believed(NamedTuple):
    """A witness of the council, and how often it is right on this target as far as can be told without labels."""

    witness: str
    view: str
    accuracy: float


@dataclass(frozen=True)
class Saved:
    """The files of a folder; `metrics`, `explanation` and `shift` are None where there are none.

    predictions : one row per window: label, confidence, probabilities in the last columns
    """

    summary: dict[str, Any]
    predictions: pd.DataFrame
    metrics: dict[str, Any] | None = None
    explanation: BaseExplanation | None = None
    shift: ShiftReport | None = None

    def __post_init__(self) -> None:
        windows = () if self.explanation is None else self.explanation.windows
        if len(windows) and max(windows) >= len(self.predictions):
            raise ValueError(f"explanation.npz explains window {max(windows)}, predictions.csv has none of that number")
        if self.explanation is not None and isinstance(self.explanation, CouncilExplanation) != self.of_council:
            raise ValueError("explanation.npz and summary.json are of different variants")

    @property
    def of_council(self) -> bool:
        """Whether witnesses were joined; otherwise channels voted, as in the paper."""
        return bool(self.summary.get("witnesses"))

    @property
    def witnesses(self) -> list[Believed]:
        """The most reliable first; of equally reliable ones the first."""
        found = [Believed(each["witness"], each["view"], each["accuracy"]) for each in self.summary["witnesses"]]
        return sorted(found, key=lambda one: -one.accuracy)

    @property
    def undone(self) -> list[str]:
        """What was taken off the target's signals before they were labelled, a sentence each."""
        if "undone" in self.summary or self.shift is None:
            return list(self.summary.get("undone") or ())
        return [one.sentence for one in self.shift.undone]

    @property
    def classes(self) -> list[str]:
        return self.summary["classes"]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """How sure each label is, (n,)."""
        return self.predictions["confidence"].to_numpy(np.float64)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(n, K), those that gave the labels."""
        return self.predictions.iloc[:, -len(self.classes) :].to_numpy(np.float64)

    @property
    def channels(self) -> list[Channel]:
        """In the order in which they came."""
        return [Channel(each["name"], each["distance"], each["weight"]) for each in self.summary["channels"]]

    @property
    def furthest_first(self) -> list[Channel]:
        """The channel that moved most first; of equally far ones the first."""
        return sorted(self.channels, key=lambda channel: -channel.distance)

    def origins(self, windows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Where windows come from, as "group bob, start 1280"; "" where that is not known."""
        known = [name for name in _ORIGIN if name in self.predictions.columns]
        rows = self.predictions[known].iloc[list(windows)].astype(str)
        return [", ".join(f"{name} {value}" for name, value in zip(known, row, strict=True)) for row in rows.to_numpy()]


def read_saved(home: Path) -> Saved:
    """Read the files of a job or of one of many targets; a folder without results is refused."""
    require_whole(home)
    if not (home / "summary.json").is_file():
        of_many = holds_many(home)
        advice = "one of its folders, which are of one target each" if of_many else "a folder of transpl adapt or bench"
        raise unreadable_file(home, problem="no summary.json in it", advice=f"Point at {advice}.")
    metrics, explanation, shift = (home / name for name in ("metrics.json", "explanation.npz", "shift.json"))
    # A class may be called "NA" or "01".
    predictions = pd.read_csv(
        home / "predictions.csv", keep_default_na=False, dtype=dict.fromkeys(("label", *_ORIGIN), str)
    )
    require_whole_predictions(home, predictions)
    return Saved(
        read_json(home / "summary.json"),
        predictions,
        read_json(metrics) if metrics.is_file() else None,
        load_explanation(explanation) if explanation.is_file() else None,
        ShiftReport.load(shift) if shift.is_file() else None,
    )
