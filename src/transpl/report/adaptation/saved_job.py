"""What a job left in its folder, read back for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import unreadable_file
from transpl._utils.files import read_json, third_party
from transpl.council import CouncilExplanation, load_explanation
from transpl.jobs.folder import CHECK, TRUE_LABEL, TRUTH, holds_many, require_complete_predictions, require_finished
from transpl.jobs.review_order import check_order, missing_class_windows
from transpl.markov import BaseExplanation, ShiftReport

_ORIGIN = ("domain", "group", "start")  # columns of predictions.csv that say where a window comes from


class ChannelShift(NamedTuple):
    """How far a channel moved, and how much it still counts (1: as much as a channel that did not move).

    A channel that is not read has the distance 0, which says nothing.
    """

    name: str
    distance: float
    weight: float
    is_read: bool = True


class RankedWitness(NamedTuple):
    """A witness of the council, and how often it is right on this target, estimated without labels."""

    witness: str
    view: str
    accuracy: float


@dataclass(frozen=True)
class SavedJob:
    """The files of a folder; `metrics`, `explanation` and `shift` are None if the folder lacks them.

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
        if self.explanation is not None and isinstance(self.explanation, CouncilExplanation) != self.is_council:
            raise ValueError("explanation.npz and summary.json are of different variants")

    @property
    def is_council(self) -> bool:
        """Whether a council of witnesses gave the labels; otherwise channels voted, as in the paper."""
        return bool(self.summary.get("witnesses"))

    @property
    def witnesses(self) -> list[RankedWitness]:
        """The most reliable first."""
        found = [RankedWitness(each["witness"], each["view"], each["accuracy"]) for each in self.summary["witnesses"]]
        return sorted(found, key=lambda one: -one.accuracy)

    @property
    def undone(self) -> list[str]:
        """What was undone in the target's signals before they were labelled, a sentence each."""
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
        """(n, K), from which the labels follow."""
        return self.predictions.iloc[:, -len(self.classes) :].to_numpy(np.float64)

    @property
    def labels(self) -> NDArray[np.str_]:
        return self.predictions["label"].to_numpy(str)

    @property
    def truth(self) -> NDArray[np.str_] | None:
        """The true labels, "" where unknown; None if none is known."""
        if TRUTH not in self.predictions:
            return None
        truth = self.predictions[TRUTH].to_numpy(str)
        return truth if (truth != "").any() else None

    @property
    def labelled_by_hand(self) -> NDArray[np.bool_]:
        """Whether a person labelled the window, (n,)."""
        if TRUE_LABEL not in self.predictions:
            return np.zeros(len(self.predictions), np.bool_)
        return self.predictions[TRUE_LABEL].to_numpy(str) != ""

    @property
    def explained(self) -> frozenset[int]:
        """The windows that the folder explains, of which the page can show the reasons."""
        return frozenset(() if self.explanation is None else self.explanation.windows.tolist())

    @cached_property
    def check_order(self) -> NDArray[np.int64]:
        """All windows, the one to check first in front."""
        if CHECK in self.predictions:
            return np.argsort(self.predictions[CHECK].to_numpy(), kind="stable")
        return check_order(self.probabilities, self._expected_shares)  # results of an earlier version

    @property
    def missing_classes(self) -> dict[str, list[int]]:
        """The classes that no window was labelled with, and the likeliest windows of each, of those left to label."""
        found, known = missing_class_windows(self.probabilities, self._expected_shares), self.labelled_by_hand
        return {self.classes[k]: [row for row in windows if not known[row]] for k, windows in found.items()}

    @property
    def _expected_shares(self) -> NDArray[np.float64]:
        known = self.summary["prior"] or self.summary["source"]["class_shares"]
        K = len(self.classes)
        return np.full(K, 1 / K) if not known else np.array([known.get(name, 0.0) for name in self.classes])

    @property
    def channels(self) -> list[ChannelShift]:
        """In the order of the data."""
        channels = self.summary["channels"]
        if self.shift is None:
            unread = {each["name"] for each in channels if each["weight"] == 0}  # the weight of others is above 0
        else:
            unread = {name for name, blind in zip(self.shift.channel_names, self.shift.unread, strict=True) if blind}
        return [
            ChannelShift(each["name"], each["distance"], each["weight"], each["name"] not in unread)
            for each in channels
        ]

    @property
    def channels_by_distance(self) -> list[ChannelShift]:
        """The channel that moved most first; those that are not read last."""
        return sorted(self.channels, key=lambda channel: (not channel.is_read, -channel.distance))

    def origins(self, windows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Where windows come from, as "group bob, start 1280"; "" if that is not known."""
        known = [name for name in _ORIGIN if name in self.predictions.columns]
        rows = self.predictions[known].iloc[list(windows)].astype(str)
        return [", ".join(f"{name} {value}" for name, value in zip(known, row, strict=True)) for row in rows.to_numpy()]


def read_saved_job(home: Path) -> SavedJob:
    """Read the folder of a job, or of one of many targets; a folder without results is an error."""
    require_finished(home)
    if not (home / "summary.json").is_file():
        of_many = holds_many(home)
        advice = "one of its folders, which hold one target each" if of_many else "a folder of transpl adapt or bench"
        raise unreadable_file(home, problem="no summary.json in it", advice=f"Name {advice}.")
    metrics, explanation, shift = (home / name for name in ("metrics.json", "explanation.npz", "shift.json"))
    # A class may be called "NA" or "01".
    as_text = dict.fromkeys(("label", TRUTH, TRUE_LABEL, *_ORIGIN), str)
    path = home / "predictions.csv"
    with third_party(path, "not readable as csv", "Run transpl adapt or demo again."):
        predictions = pd.read_csv(path, keep_default_na=False, dtype=as_text)
    require_complete_predictions(home, predictions)
    return SavedJob(
        read_json(home / "summary.json"),
        predictions,
        read_json(metrics) if metrics.is_file() else None,
        load_explanation(explanation) if explanation.is_file() else None,
        ShiftReport.load(shift) if shift.is_file() else None,
    )
