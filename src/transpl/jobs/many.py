"""Adapt one source model to many targets at the same time, each on its own."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from transpl import __version__
from transpl._utils.clock import work_seconds
from transpl._utils.errors import UnreadableFile, invalid
from transpl._utils.files import read_json, read_npz
from transpl._utils.hashing import hash_file, hash_values
from transpl._utils.locks import process_state, writing
from transpl._utils.parallel import check_workers, run_all
from transpl.estimator import TransPL, check_mode
from transpl.jobs.folder import is_unfinished, write_failure
from transpl.jobs.target import (
    ESTIMATE,
    AdaptResult,
    AdaptTask,
    adapt_target,
    class_shares,
    probabilities_of,
    write_target_folder,
)
from transpl.jobs.target_files import TargetFile, as_target, read_target, target_digest
from transpl.windows import Labelled, Windows, name_channels

_END_OF_A_WORKER = 60.0  # seconds
_LAYOUT = 2  # of a target's folder; results of another layout are made again
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


def adapt_many(
    model: TransPL,
    targets: Mapping[str, Any],
    *,
    mode: str | None = None,
    priors: Mapping[str, ArrayLike | dict[Any, float]] | None = None,
    X_source: Any = None,
    y_source: ArrayLike | None = None,
    channel_names: Sequence[str] | None = None,
    source_name: str = "source",
    out: str | os.PathLike[str] | None = None,
    keep_models: bool = False,
    jobs: int = 1,
    backend: str = "loky",
    retries: int = 0,
    address: str | None = None,
) -> Generator[AdaptedTarget, None, None]:
    """Adapt a fitted source model to many targets; yield each as soon as it is done, in any order.

    A target that cannot be read, or whose worker dies, does not stop the others: its `error` says why. `model` is not
    changed. Each target is adapted on one thread, from the source model, as `model.adapt` would: neither the other
    targets nor `jobs` and `backend` change its numbers.

    Parameters
    ----------
    model
        a fitted model
    targets
        by name: windows as `TransPL.adapt` takes them; the path of a file that the worker reads (.npy, or what
        `read_recordings` reads; a `TargetFile` says how); or a function that the worker calls for windows
    mode
        as in `TransPL.adapt`
    priors
        label proportions by name of the target, where they are known
    X_source, y_source
        the source rows, which a loaded model does not hold: "finetune" trains with them, "plus" finds shifts by them
    channel_names
        of the source; a file with other channels is refused. They also become the model's parameter of this name if it
        has none
    source_name
        for the report
    out
        a folder for the results, with a folder per target: `predictions.csv`, `summary.json`, `metrics.json` (of
        "paper" only if the target has labels) and, with `keep_models`, `model`. The same call again yields finished
        targets from there and makes only the rest; a target is made again if model, settings or windows have changed
    keep_models
        also save the adapted models
    jobs, backend, retries, address
        workers, as in `run_all`. All machines of a cluster must see `out`

    Examples
    --------
    >>> import numpy as np
    >>> from transpl import TransPL, adapt_many
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 2, 32)), np.arange(40) % 2
    >>> X[y == 1] *= 3
    >>> model = TransPL(witnesses=["linear"], undo="none").fit(X, y)
    >>> homes = {"ann": 1.1 * X[:20], "bob": 0.9 * X[20:]}
    >>> for target in adapt_many(model, homes, backend="inline"):
    ...     print(target.name, target.labels.shape)
    ann (20,)
    bob (20,)
    """
    if not isinstance(model, TransPL):
        raise invalid("model", expected="a fitted TransPL", got=type(model).__name__, advice="Fit or load one.")
    check_mode(model.variant, mode)
    mode = model.default_mode if mode is None else mode
    check_workers(jobs, backend, retries, address)
    home = _check_out(out, address)
    _check_names(targets, home)
    source_model = model.unadapted()
    shares = _check_priors(source_model, priors or {}, targets)
    names = None if channel_names is None else name_channels(channel_names, source_model.n_channels_)
    if names is not None and source_model.channel_names is None:
        source_model.set_params(channel_names=names)
    rows = _source_rows(source_model, mode, X_source, y_source)
    needed = rows if source_model.fitted_method().adapts_with_source(mode) else None
    common = None if home is None else _common_digest(source_model, mode, needed, names)
    tasks = (_task(name, as_target(target), shares.get(name), home, common) for name, target in targets.items())
    source = _describe_source(source_model, rows, source_name)

    def adapted() -> Generator[AdaptedTarget, None, None]:
        with nullcontext() if home is None else writing(home):
            yield from results()

    def results() -> Generator[AdaptedTarget, None, None]:
        missing = {}
        for task in tasks:
            found = _read_finished(task, source_model.classes_, with_model=keep_models)
            if found is None:
                missing[task.name] = task
            else:
                yield found
        if not missing:
            return
        with ModelBundle.packed(source_model, needed, near=home if address else None) as bundle:
            worker = _Worker(bundle, mode, names, keep_models, source, source_model.device)
            how: dict[str, Any] = {"jobs": jobs, "backend": backend, "retries": retries, "address": address}
            with closing(run_all(worker, missing, **how)) as outcomes:
                for outcome in outcomes:
                    if outcome.error is None:
                        yield outcome.value
                    else:
                        yield _failed(missing[outcome.key], outcome.error, outcome.traceback)

    return adapted()


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
        """A copy of the model: nothing that is done to it reaches the next target."""
        model, rows = _read_bundle(self.folder)
        own = copy.deepcopy(model)
        if rows is not None:
            own.fitted_method().remember_source(*rows)
        return own


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
class _Task:
    """One target, as `read_target` takes it.

    prior : (K,); folder : for the results, None keeps them in memory; digest : of all that decides the results
    """

    name: str
    target: Any
    prior: NDArray[np.float64] | None
    folder: Path | None
    digest: str | None


@dataclass(frozen=True)
class _Worker:
    """What all targets share; a worker calls it with a task."""

    bundle: ModelBundle
    mode: str
    channel_names: tuple[str, ...] | None
    keep_models: bool
    source: dict[str, Any]  # for summary.json
    device: str

    def __call__(self, task: _Task) -> AdaptedTarget:
        # The worker of a job that was killed may still be at it.
        with nullcontext() if task.folder is None else writing(task.folder, wait=_END_OF_A_WORKER):
            return self._adapt(task)

    def _adapt(self, task: _Task) -> AdaptedTarget:
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

    def _write(self, task: _Task, result: AdaptResult, model: TransPL, seconds: float, notes: list[str]) -> None:
        assert task.folder is not None
        receipt = {"digest": task.digest, "seconds": seconds, "notes": notes, "scored": result.scores is not None}
        reading = task.target.saved_reading if isinstance(task.target, TargetFile) else None
        kept = model if self.keep_models else None
        write_target_folder(task.folder, result, kept, reading=reading, receipt=receipt)
        (task.folder / "failed.json").unlink(missing_ok=True)
        shutil.rmtree(task.folder / "checkpoints", ignore_errors=True)


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """Collect the user warnings of the block, each once: a worker has nobody to show them to."""
    notes: list[str] = []
    with process_state, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    texts = (str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    notes.extend(dict.fromkeys(texts))


def _failed(task: _Task, error: str, traceback: str | None) -> AdaptedTarget:
    """Record why a target failed; results of an earlier run stay."""
    if task.folder is not None:
        with suppress(OSError):  # a full disk does not make it worse
            write_failure(task.folder, error, traceback, "Correct what the error names, then run it again.")
    return AdaptedTarget(task.name, error=error, traceback=traceback, folder=task.folder)


def _read_finished(task: _Task, classes: NDArray, *, with_model: bool) -> AdaptedTarget | None:
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


def _task(name: str, target: Any, prior: NDArray[np.float64] | None, home: Path | None, common: str | None) -> _Task:
    if home is None:
        return _Task(name, target, prior, None, None)
    own = target_digest(target)
    shares = None if prior is None else prior.tolist()
    return _Task(name, target, prior, home / name, None if own is None else hash_values(common, own, shares))


def _common_digest(model: TransPL, mode: str, rows: Rows | None, names: tuple[str, ...] | None) -> str:
    """Hash of all that decides the results of every target."""
    about = [(__version__, _LAYOUT), model.fitted_method().fingerprint(), model.classes_.tolist(), mode, names]
    parts = [part for part in rows or () if part is not None]
    arrays = [array for part in parts for array in (part.windows.values, part.windows.lengths, part.y)]
    return hash_values(about, *arrays)


def _source_rows(model: TransPL, mode: str, X: Any, y: ArrayLike | None) -> Rows | None:
    """The rows given, or those of `fit`; None for a loaded model, which then cannot fine-tune or find shifts."""
    if X is not None:
        return model.source_rows(X, y)
    method = model.fitted_method()
    return method.source_rows() if mode == "finetune" or method.holds_source_rows else None


def _describe_source(model: TransPL, rows: Rows | None, name: str) -> dict[str, Any]:
    """What summary.json says of the source."""
    if rows is None:
        return {"name": name, "windows": None, "class_shares": None}
    labels = model.classes_[rows[0].y]
    return {"name": name, "windows": len(labels), "class_shares": class_shares(labels, model.classes_)}


def _check_priors(
    model: TransPL, priors: Mapping[str, ArrayLike | dict[Any, float]], targets: Mapping[str, Any]
) -> dict[str, NDArray[np.float64]]:
    unknown = [name for name in priors if name not in targets]
    if unknown:
        raise invalid("priors", expected="names of targets", got=unknown[:5], advice="Pass {target: proportions}.")
    shares = {name: model.class_shares(prior) for name, prior in priors.items()}
    return {name: share for name, share in shares.items() if share is not None}


def _check_out(out: str | os.PathLike[str] | None, address: str | None) -> Path | None:
    if out is None and address is not None:
        expected = "a folder that all machines of the cluster see"
        raise invalid("out", expected=expected, got=None, advice="Name one: the model travels through it.")
    if out is None:
        return None
    home = Path(out).absolute()
    if home.exists() and not home.is_dir():
        raise invalid("out", expected="a folder", got=f"the file {home}", advice="Choose another name.")
    return home


def _check_names(targets: Mapping[str, Any], home: Path | None) -> None:
    if not isinstance(targets, Mapping):
        raise invalid("targets", expected="{name: windows}", got=type(targets).__name__, advice="Name the targets.")
    for name in targets:
        if not isinstance(name, str):
            raise invalid("targets", expected="names as text", got=repr(name), advice="Rename it.")
        hidden_or_outside = not name or name[0] == "." or set(name) & set("/\\\0")
        if home is not None and hidden_or_outside:
            raise invalid("targets", expected="names that a folder may have", got=repr(name), advice="Rename it.")
