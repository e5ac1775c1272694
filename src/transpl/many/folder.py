"""A target's results in a folder of their own. `summary.json` is written last: a folder that has it is whole."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from transpl.errors import NotReadable
from transpl.estimator import TransPL
from transpl.files import read_json, sha256, write_json
from transpl.many.adapted import AdaptedTarget
from transpl.results import probabilities_in, write_failure, write_metrics, write_table

_FILES = ("summary.json", "predictions.csv", "metrics.json", "report.html")  # in the order of their removal


class TargetFolder:
    """The folder of a target; `digest` names all that decides its results, None is like no other."""

    def __init__(self, home: Path, digest: str | None) -> None:
        self.home, self.digest = home, digest

    @property
    def checkpoints(self) -> Path:
        return self.home / "checkpoints"

    def finish(self, found: AdaptedTarget, table: pd.DataFrame, summary: dict[str, Any], model: TransPL | None) -> None:
        """Write everything, the model if it is to be kept; what an earlier run left goes first."""
        for name in _FILES:
            (self.home / name).unlink(missing_ok=True)
        shutil.rmtree(self.home / "model", ignore_errors=True)
        if model is not None:
            model.save(self.home / "model")
        write_table(self.home / "predictions.csv", table)
        write_metrics(self.home / "metrics.json", found.scores)
        record = {
            "digest": self.digest,
            "predictions": sha256(self.home / "predictions.csv"),
            "seconds": found.seconds,
            "notes": list(found.notes),
            "scored": found.scores is not None,
        }
        write_json(self.home / "summary.json", {**summary, "many": record})
        (self.home / "failed.json").unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def fail(self, error: str, traceback: str | None) -> None:
        """Leave a record; a disk that is full does not make it worse. Results of an earlier run stay."""
        with suppress(OSError):
            write_failure(self.home, error, traceback, "Mend what the error names, then run it again.")

    def finished(self, name: str, classes: NDArray, *, with_model: bool) -> AdaptedTarget | None:
        """Read the results back; None unless all of them are there, unchanged, and those asked for."""
        if self.digest is None or (with_model and not (self.home / "model" / "model.json").is_file()):
            return None
        try:
            found = self._read(name, classes)
        except (NotReadable, OSError, LookupError, TypeError, ValueError):  # absent, or tampered with
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
            scores=read_json(self.home / "metrics.json") if record["scored"] else None,
            seconds=record["seconds"],
            notes=tuple(record["notes"]),
            folder=self.home,
        )
