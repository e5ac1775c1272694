"""Labels for a file of windows of any size: one chunk in memory, and an interrupted run goes on.

The folder ends up with `labels.npy` (positions in `classes.json`), `probabilities.npy` and `progress.json`; where the
windows were counted as a new target domain also with `target_counts.npz`, and with `codes.npy` in the variant "paper".
An array whose last row is not yet written has the suffix `.part`. `progress.json` is replaced after every chunk, once
its rows are on the disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transpl._utils.errors import InputError, check_int, invalid, unreadable_file
from transpl._utils.files import map_npy, new_npy, read_json, remove_leftovers, write_json, write_rows
from transpl._utils.hashing import hash_bytes
from transpl._utils.layout import check_facts
from transpl._utils.locks import require_held, writing
from transpl._utils.progress import task
from transpl.datasets.recordings.tables import TABLES, has_suffix
from transpl.estimator import TransPL
from transpl.methods import ExplainableMethod
from transpl.windows import BATCH, CHUNK, Windows, as_windows

_FORMAT = "transpl-labels-2"
_COUNTED_AT_ONCE = 1 << 20
_ARRAYS = ("labels.npy", "probabilities.npy", "codes.npy")
_AFRESH = "Choose another folder, or delete this one to start afresh."


class WindowLabels(NamedTuple):
    """Where the labels are, and the labels as memory maps."""

    folder: Path
    classes: NDArray  # (K,)
    labels: NDArray[np.int32]  # (n,), positions in `classes`
    probabilities: NDArray[np.float32]  # (n, K)

    def windows_per_class(self) -> NDArray[np.int64]:
        """How many windows got each class, (K,)."""
        K, counts = len(self.classes), np.zeros(len(self.classes), np.int64)
        for rows in _slices(0, len(self.labels), _COUNTED_AT_ONCE):
            part = self.labels[rows]
            if part.min() < 0 or part.max() >= K:
                raise unreadable_file(self.folder / "labels.npy", problem="labels that do not exist", advice=_AFRESH)
            counts += np.bincount(part, minlength=K)
        return counts


def label_windows(
    model: TransPL,
    X: NDArray | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    adapt: bool = False,
    chunk: int = CHUNK,
    progress: bool = False,
) -> WindowLabels:
    """Label the windows of a .npy file, or of an array, into the folder `out`; go on where an interrupted call stopped.

    X : path of a .npy file (n, channels, time), a memory map or an array
    adapt : count X as a new target domain first, without a gradient step; `model` itself stays as it is
    chunk : windows in memory at once, rounded up to whole batches; it does not change the result
    progress : show progress on stderr

    Without `adapt` the labels are `model.predict(X)`, with it those after `model.adapt(X, mode="markov")`, for which
    "plus" takes at most 4,096 windows in equal steps. All windows are read and checked before the first is
    labelled, and every window passes the encoder of "paper" once. A folder that holds labels of another model or of
    other windows is refused.
    """
    check_int("chunk", chunk, least=1)
    with writing(out):
        return _label_into(Path(out), model.unadapted() if adapt else model, X, adapt, chunk, progress)


def _label_into(
    out: Path, model: TransPL, X: NDArray | str | os.PathLike[str], adapt: bool, chunk: int, progress: bool
) -> WindowLabels:
    method = model.fitted_method()
    windows, whole_batches = _WindowFile(X, model), -(-chunk // BATCH) * BATCH
    earlier = _Run.earlier_state(out)  # before the whole file is read
    identity = _identity(model, adapt, windows, windows.digest(whole_batches, progress))
    run = _Run.start(out, earlier, identity, len(windows), progress)
    if not run.state.finished:
        remove_leftovers(out)
        write_json(run.folder / "classes.json", model.classes_.tolist())
        answer = _adapted(method, windows, run, whole_batches) if adapt else _as_it_is(method, windows)
        _label(answer, len(model.classes_), run, whole_batches)
        run.finish()
    n, K = len(windows), len(model.classes_)
    labels = _map_array(run.folder / "labels.npy", (n,), np.int32)
    probabilities = _map_array(run.folder / "probabilities.npy", (n, K), np.float32)
    return WindowLabels(run.folder, model.classes_, labels, probabilities)


Answer = Callable[[slice], NDArray[np.float64]]  # probabilities (rows, K)


def _as_it_is(method: ExplainableMethod, windows: _WindowFile) -> Answer:
    """Probabilities by the classifier that the model's last step left."""
    return lambda rows: method.predict_proba(windows[rows])


def _adapted(method: ExplainableMethod, windows: _WindowFile, run: _Run, chunk: int) -> Answer:
    """Probabilities of windows as a new target domain: from what one pass leaves on the disk, or from the windows."""
    target = method.new_target()
    kept = target.row(windows.n_channels, windows.n_steps)
    parts: Callable[[slice], Any] = windows.__getitem__
    if kept is not None:
        codes = run.array("codes.npy", (len(windows), *kept[0]), kept[1])
        run.work_through(
            "encoded", "encoding", chunk, lambda rows: run.write(codes, rows.start, target.encode(windows[rows]))
        )
        parts = lambda rows: map_npy(codes)[rows]  # noqa: E731
    counts = target.adapt((parts(rows) for rows in _slices(0, len(windows), chunk)), len(windows))
    counts.save(run.folder / "target_counts.npz")
    return lambda rows: target.probabilities(parts(rows))


def _label(answer: Answer, n_classes: int, run: _Run, chunk: int) -> None:
    labels = run.array("labels.npy", (run.n,), np.int32)
    probabilities = run.array("probabilities.npy", (run.n, n_classes), np.float32)

    def label(rows: slice) -> None:
        y = answer(rows)
        run.write(labels, rows.start, y.argmax(axis=1))
        run.write(probabilities, rows.start, y)

    run.work_through("labelled", "labelling", chunk, label)


class _WindowFile:
    """Windows of a file or array, checked where a part of them is taken."""

    def __init__(self, X: NDArray | str | os.PathLike[str], model: TransPL) -> None:
        self._X, self._model = X, model
        self._name = Path(X).name if isinstance(X, str | os.PathLike) else "X"
        if isinstance(X, str | os.PathLike) and has_suffix(Path(X), (*TABLES, ".npz")):
            problem, advice = (
                "recordings, not a .npy file of windows",
                f"transpl predict --model MODEL --input {X} labels them.",
            )
            raise unreadable_file(X, problem=problem, advice=advice)
        array = self._array()
        if array.ndim not in (2, 3) or len(array) == 0:
            as_windows(array, name=self._name)  # says what is wrong with it
        self.shape, self.dtype = array.shape, array.dtype

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> Windows:
        return as_windows(
            self._array()[rows],
            name=f"{self._name}[{rows.start}:{rows.stop}]",
            n_channels=self.n_channels,
            min_length=self._model.method_.shortest_window,
        )

    @property
    def n_channels(self) -> int:
        return self._model.n_channels_

    @property
    def n_steps(self) -> int:
        return int(self.shape[-1])

    def digest(self, chunk: int, progress: bool) -> str:
        """SHA-256 of all windows, each chunk checked on the way: a bad value is named before hours of labelling."""

        def pieces() -> Iterator[memoryview]:
            for rows in _slices(0, len(self), chunk):
                yield np.ascontiguousarray(self[rows].in_memory().values).data
                report(rows.stop)

        with task("checking", len(self), shown=progress) as report:
            return hash_bytes(pieces())

    def _array(self) -> NDArray:
        if isinstance(self._X, np.ndarray):
            return self._X
        if isinstance(self._X, str | os.PathLike):
            return map_npy(self._X)  # anew for every part, so that pages of the last part do not stay in our memory
        got = type(self._X).__name__
        raise invalid("X", expected="an array or the path of a .npy file", got=got, advice="Write it with numpy.save.")


_STATE = {"format": str, "fingerprint": str, "encoded": int, "labelled": int, "finished": bool}


@dataclass
class _State:
    """How far a folder is, as `progress.json` says."""

    format: str
    fingerprint: str
    encoded: int = 0
    labelled: int = 0
    finished: bool = False

    @classmethod
    def read(cls, path: Path) -> Self:
        content = read_json(path)
        try:
            check_facts(path.name, content, _STATE)
        except InputError:
            content = None
        if content is None or content["format"] != _FORMAT:
            raise unreadable_file(path, problem="not written by transpl label of this version", advice=_AFRESH)
        return cls(**content)


class _Run:
    """A folder that fills up, and how far it is."""

    def __init__(self, folder: Path, state: _State, n: int, progress: bool) -> None:
        self.folder, self.state, self.n, self._progress = folder, state, n, progress

    @staticmethod
    def earlier_state(folder: Path) -> _State | None:
        """How far a folder is; None if it is a new one. One with anything else in it is refused."""
        path = folder / "progress.json"
        if path.is_file():
            return _State.read(path)
        taken = [name for name in (*_ARRAYS, "classes.json", "target_counts.npz") if (folder / name).exists()]
        if taken:
            raise invalid("out", expected="a folder without results", got=folder / taken[0], advice=_AFRESH)
        return None

    @classmethod
    def start(cls, folder: Path, earlier: _State | None, identity: str, n: int, progress: bool) -> Self:
        """Begin a folder, or go on with one of the same model and windows."""
        if earlier is not None:
            if earlier.fingerprint != identity:
                raise invalid("out", expected="a folder of this model and these windows", got=folder, advice=_AFRESH)
            if not (0 <= earlier.encoded <= n and 0 <= earlier.labelled <= n):
                problem = f"counts others than the {n} windows"
                raise unreadable_file(folder / "progress.json", problem=problem, advice=_AFRESH)
            return cls(folder, earlier, n, progress)
        folder.mkdir(parents=True, exist_ok=True)
        run = cls(folder, _State(_FORMAT, identity), n, progress)
        run._save()  # the folder is ours before anything else is in it
        return run

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Path:
        """Path of a .npy file of this shape, made if the run has not reached it yet."""
        path = self.folder / f"{name}.part"
        done = self.state.encoded if name == "codes.npy" else self.state.labelled
        if done == 0:
            new_npy(path, shape, dtype)
        elif not path.is_file():  # all rows are there, and the last run ended between renaming and its last word
            path = self.folder / name
        _map_array(path, shape, dtype)
        return path

    def write(self, path: Path, first: int, rows: NDArray[Any]) -> None:
        """Write rows of an array, unless another process has begun the folder afresh meanwhile."""
        require_held(self.folder)
        write_rows(path, first, rows)

    def work_through(self, stage: str, title: str, chunk: int, work: Callable[[slice], None]) -> None:
        """Do the rows that a stage has not done yet; a chunk counts as done once `work` has returned from it."""
        done = getattr(self.state, stage)
        with task(title, self.n, first=done, shown=self._progress) as report:
            for rows in _slices(done, self.n, chunk):
                work(rows)
                setattr(self.state, stage, rows.stop)
                self._save()
                report(rows.stop)

    def finish(self) -> None:
        """Give the arrays their names and say that all is done."""
        require_held(self.folder)
        for name in _ARRAYS:
            part = self.folder / f"{name}.part"
            if part.exists():
                os.replace(part, self.folder / name)
        self.state.finished = True
        self._save()

    def _save(self) -> None:
        require_held(self.folder)
        write_json(self.folder / "progress.json", asdict(self.state))


def _map_array(path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> np.memmap:
    array = map_npy(path)
    if array.shape != shape or array.dtype != dtype:
        problem = f"expected {np.dtype(dtype)} of shape {shape}, got {array.dtype} of shape {array.shape}"
        raise unreadable_file(path, problem=problem, advice=_AFRESH)
    return array


def _slices(first: int, n: int, chunk: int) -> Iterator[slice]:
    return (slice(start, min(start + chunk, n)) for start in range(first, n, chunk))


def _identity(model: TransPL, adapt: bool, windows: _WindowFile, digest: str) -> str:
    """SHA-256 of what decides the result: the model and the windows."""
    about = [model.fitted_method().fingerprint(), model.classes_.tolist(), adapt]
    about += [list(windows.shape), windows.dtype.str, digest]
    return hash_bytes([json.dumps(about, default=str)])
