"""One of many targets: what a worker is given, what it does, and what is read back when it was done before."""

from __future__ import annotations

import copy
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.clock import work_seconds
from transpl._utils.errors import UnreadableFile
from transpl._utils.files import read_json, read_npz
from transpl._utils.hashing import hash_file
from transpl._utils.locks import process_state, writing
from transpl.estimator import TransPL
from transpl.jobs.folder import is_unfinished
from transpl.jobs.target import AdaptResult, AdaptTask, adapt_target, probabilities_of, write_target_folder
from transpl.jobs.target_files import TargetFile, read_target
from transpl.jobs.target_summary import ESTIMATE
from transpl.windows import Labelled, Windows, name_channels

_END_OF_A_WORKER = 60.0  # seconds
Rows = tuple[Labelled, Labelled | None]  # training, validation


@dataclass(frozen=True, eq=False)
class AdaptedTarget:
    """Labels for the windows of a target, or an error.

    Attributes
    ----------
    labels
        (n,) by the adapted classifier; None if there was an error, as all arrays then are
    confidence
        (n,) the largest probability
    probabilities
        (n, K), columns in the order of `classes_`
    channel_distances, channel_weights
        (channels,) how far each channel moved, how much it counts
    scores
        accuracy and macro-F1 before and after, and of the pseudo-labels, if the target has labels to score with
    estimated_accuracy
        accuracy, low and high, estimated without labels; None for variant "paper"
    undone
        a sentence for each shift of the target's sensors that was undone
    seconds
        on the clock of the worker
    notes
        warnings on the way
    error
        one line; None if all went well
    traceback
        of the error; None if the worker died
    folder
        of the results, if they were written
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
        """Make it of probabilities (n, K) and the content of summary.json."""
        channels = summary["channels"]
        return cls(
            name,
            labels=classes[probabilities.argmax(axis=1)],
            confidence=probabilities.max(axis=1),
            probabilities=probabilities,
            channel_names=tuple(channel["name"] for channel in channels),
            channel_distances=np.array([channel["distance"] for channel in channels]),
            channel_weights=np.array([channel["weight"] for channel in channels]),
            estimated_accuracy=summary.get(ESTIMATE),
            undone=tuple(summary.get("undone", ())),
            **more,
        )


@dataclass(frozen=True)
class ModelBundle:
    """A model folder, with the source rows if adaptation needs them, that every worker reads once."""

    folder: Path

    @classmethod
    @contextmanager
    def packed(cls, model: TransPL, rows: Rows | None, near: Path | None) -> Iterator[Self]:
        """Write a bundle that exists inside the block; in the folder `near`, or among the temporary files."""
        if near is not None:
            near.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".transpl-source-", dir=near) as name:
            folder = Path(name)
            model.save(folder)
            if rows is not None:
                arrays: dict[str, NDArray] = {}
                for part, labelled in zip(("source", "validation"), rows, strict=True):
                    if labelled is not None:
                        windows = labelled.windows
                        arrays |= {f"{part}_x": windows.values, f"{part}_lengths": windows.lengths}
                        arrays[f"{part}_y"] = labelled.y
                np.savez(folder / "source_rows.npz", allow_pickle=False, **arrays)
            try:
                yield cls(folder)
            finally:
                _read_bundle.cache_clear()

    def load(self) -> TransPL:
        """A copy of the model, so that no target affects the next."""
        model, rows = _read_bundle(self.folder)
        copied = copy.deepcopy(model)
        if rows is not None:
            copied.fitted_method().remember_source(*rows)
        return copied


@lru_cache(maxsize=1)
def _read_bundle(folder: Path) -> tuple[TransPL, Rows | None]:
    model, path = TransPL.load(folder), folder / "source_rows.npz"
    if not path.exists():
        return model, None
    arrays = read_npz(path)

    def rows(part: str) -> Labelled:
        windows = Windows(arrays[f"{part}_x"], arrays[f"{part}_lengths"])
        return Labelled(windows, arrays[f"{part}_y"], len(model.classes_))

    return model, (rows("source"), rows("validation") if "validation_x" in arrays else None)


@dataclass(frozen=True)
class Task:
    """One target, as `read_target` takes it.

    prior : (K,); folder : for the results, None keeps them in memory; digest : of all that decides the results
    """

    name: str
    target: Any
    prior: NDArray[np.float64] | None
    folder: Path | None
    digest: str | None


@dataclass(frozen=True)
class Worker:
    """What all targets share; a worker calls it with a task."""

    bundle: ModelBundle
    mode: str
    channel_names: tuple[str, ...] | None
    keep_models: bool
    source: dict[str, Any]  # for summary.json
    device: str

    def __call__(self, task: Task) -> AdaptedTarget:
        # The worker of a killed job may still be writing.
        with nullcontext() if task.folder is None else writing(task.folder, wait=_END_OF_A_WORKER):
            return self._adapt(task)

    def _adapt(self, task: Task) -> AdaptedTarget:
        start = work_seconds()
        checkpoints = None if task.folder is None else task.folder / "checkpoints"
        with _collected_warnings() as notes:
            target, names = read_target(task.target, self.channel_names)
            model = self.bundle.load()
            model.set_params(device=self.device, n_threads=1, checkpoint_dir=checkpoints)
            channel_names = names or name_channels(None, model.n_channels_)
            result = adapt_target(
                model, AdaptTask(task.name, target, self.mode, channel_names, self.source, prior=task.prior)
            )
        notes.extend(result.summary["warnings"])
        seconds = work_seconds() - start
        if task.folder is not None:
            self._write(task, result, model, seconds, notes)
        return AdaptedTarget.from_results(
            task.name,
            model.classes_,
            probabilities_of(result.predictions, len(model.classes_)),
            result.summary,
            scores=result.scores,
            seconds=seconds,
            notes=tuple(notes),
            folder=task.folder,
        )

    def _write(self, task: Task, result: AdaptResult, model: TransPL, seconds: float, notes: list[str]) -> None:
        assert task.folder is not None
        receipt = {"digest": task.digest, "seconds": seconds, "notes": notes, "scored": result.scores is not None}
        reading = task.target.saved_reading if isinstance(task.target, TargetFile) else None
        kept = model if self.keep_models else None
        write_target_folder(task.folder, result, kept, reading=reading, receipt=receipt)
        (task.folder / "failed.json").unlink(missing_ok=True)
        shutil.rmtree(task.folder / "checkpoints", ignore_errors=True)


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """Collect the user warnings of the block, each once: nobody sees the stderr of a worker."""
    notes: list[str] = []
    with process_state, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    texts = (str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    notes.extend(dict.fromkeys(texts))


def read_finished(task: Task, classes: NDArray, *, with_model: bool) -> AdaptedTarget | None:
    """Read the results of a target back; None unless they are all there, unchanged, and those of this task."""
    folder = task.folder
    if folder is None or task.digest is None or is_unfinished(folder):
        return None
    if with_model and not (folder / "model" / "model.json").is_file():
        return None
    try:
        summary, path = read_json(folder / "summary.json"), folder / "predictions.csv"
        receipt = summary["many"]
        if receipt["digest"] != task.digest or hash_file(path) != receipt["predictions"]:
            return None
        metrics = read_json(folder / "metrics.json") if receipt["scored"] else {}
        found = AdaptedTarget.from_results(
            task.name,
            classes,
            probabilities_of(pd.read_csv(path, float_precision="round_trip"), len(classes)),
            summary,
            scores={name: value for name, value in metrics.items() if name != ESTIMATE} or None,
            seconds=receipt["seconds"],
            notes=tuple(receipt["notes"]),
            folder=folder,
        )
    except (UnreadableFile, OSError, LookupError, TypeError, ValueError):  # absent, or tampered with
        return None
    (folder / "failed.json").unlink(missing_ok=True)
    return found
