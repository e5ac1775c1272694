"""A target's results in a folder of their own, with `unfinished.json` for as long as they are not all there."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile
from transpl._utils.files import read_json, sha256, write_json
from transpl.estimator.classifier import TransPL
from transpl.jobs.many.adapted import AdaptedTarget
from transpl.jobs.result_folders import being_written, is_unfinished
from transpl.jobs.results import ESTIMATE, probabilities_in, with_estimate, write_failure, write_metrics, write_table

_FILES = (  # also those that only a job for one target writes
    *("summary.json", "predictions.csv", "metrics.json", "report.html"),
    *("explanation.npz", "shift.json", "sample.npz"),
)


class TargetFolder:
    """The folder of a target; `digest` names all that decides its results, None is like no other."""

    def __init__(self, home: Path, digest: str | None) -> None:
        self.home, self.digest = home, digest

    @property
    def checkpoints(self) -> Path:
        return self.home / "checkpoints"

    def finish(
        self,
        found: AdaptedTarget,
        table: pd.DataFrame,
        summary: dict[str, Any],
        model: TransPL | None,
        reading: dict[str, Any] | None = None,
    ) -> None:
        """Write everything, the model if it is to be kept; what an earlier run left goes first.

        reading : how the target's file was read, kept beside the model
        """
        with being_written(self.home):
            self._clear()
            if model is not None:
                self._write_model(model, reading)
            self._write_results(found, table, summary)
        (self.home / "failed.json").unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def _clear(self) -> None:
        for name in _FILES:
            (self.home / name).unlink(missing_ok=True)
        shutil.rmtree(self.home / "model", ignore_errors=True)

    def _write_model(self, model: TransPL, reading: dict[str, Any] | None) -> None:
        model.save(self.home / "model")
        if reading is not None:
            write_json(self.home / "model" / "reading.json", reading)

    def _write_results(self, found: AdaptedTarget, table: pd.DataFrame, summary: dict[str, Any]) -> None:
        write_table(self.home / "predictions.csv", table)
        write_metrics(self.home / "metrics.json", with_estimate(found.scores, found.estimated_accuracy))
        record = {
            "digest": self.digest,
            "predictions": sha256(self.home / "predictions.csv"),
            "seconds": found.seconds,
            "notes": list(found.notes),
            "scored": found.scores is not None,
        }
        write_json(self.home / "summary.json", {**summary, "many": record})

    def fail(self, error: str, traceback: str | None) -> None:
        """Leave a record; a disk that is full does not make it worse. Results of an earlier run stay."""
        with suppress(OSError):
            write_failure(self.home, error, traceback, "Mend what the error names, then run it again.")

    def finished(self, name: str, classes: NDArray, *, with_model: bool) -> AdaptedTarget | None:
        """Read the results back; None unless all of them are there, unchanged, and those asked for."""
        lacks_model = with_model and not (self.home / "model" / "model.json").is_file()
        if self.digest is None or lacks_model or is_unfinished(self.home):
            return None
        try:
            found = self._read(name, classes)
        except (UnreadableFile, OSError, LookupError, TypeError, ValueError):  # absent, or tampered with
            return None
        if found is not None:
            (self.home / "failed.json").unlink(missing_ok=True)
        return found

    def _read(self, name: str, classes: NDArray) -> AdaptedTarget | None:
        summary = read_json(self.home / "summary.json")
        record, path = summary["many"], self.home / "predictions.csv"
        if record["digest"] != self.digest or sha256(path) != record["predictions"]:
            return None
        p = probabilities_in(pd.read_csv(path, float_precision="round_trip"), len(classes))
        return AdaptedTarget.from_results(
            name,
            classes,
            p,
            summary,
            scores=self._scores() if record["scored"] else None,
            seconds=record["seconds"],
            notes=tuple(record["notes"]),
            folder=self.home,
        )

    def _scores(self) -> dict[str, Any]:
        metrics = read_json(self.home / "metrics.json")
        return {name: value for name, value in metrics.items() if name != ESTIMATE}
