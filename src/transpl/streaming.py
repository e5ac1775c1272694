"""Labels for a file of windows of any size: one chunk in memory, and an interrupted run goes on.

("plus", adapted to the file, also holds label, sureness and probabilities of each window.)

The folder ends up with `labels.npy` (positions in `classes.json`), `probabilities.npy` and `progress.json`; where the
windows were counted as a new target domain also with `codes.npy`, `target_counts.npz` and, where the network votes too,
`opinions.npy`. An array whose last row is not yet written has the suffix `.part`. `progress.json` is replaced after
every chunk, once its rows are on the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transpl.errors import unreadable, whole_number, wrong
from transpl.estimator import TransPL
from transpl.files import map_npy, new_npy, read_json, write_json, write_rows
from transpl.methods import TransPLMethod
from transpl.methods.moments import Moments
from transpl.methods.settings import since_before
from transpl.methods.transpl_codes import CHUNK
from transpl.methods.transpl_state import TransPLState
from transpl.methods.vote import Coded
from transpl.network.inference import BATCH, code_type
from transpl.persistence import fingerprint
from transpl.training.progress import windows_bar
from transpl.windows import Windows, as_windows

_FORMAT = "transpl-labels-2"
_COUNTED_AT_ONCE = 1 << 20
_ARRAYS = ("labels.npy", "probabilities.npy", "codes.npy", "opinions.npy")
_AFRESH = "Choose another folder, or delete this one to start afresh."


class WindowLabels(NamedTuple):
    """Where the labels are, and the labels as memory maps."""

    folder: Path
    classes: NDArray  # (K,)
    labels: NDArray[np.int32]  # (n,), positions in `classes`
    probabilities: NDArray[np.float32]  # (n, K)

    def windows_per_class(self) -> NDArray[np.int64]:
        """How many windows got each class, (K,)."""
        K, parts = len(self.classes), _slices(0, len(self.labels), _COUNTED_AT_ONCE)
        return sum((np.bincount(self.labels[rows], minlength=K) for rows in parts), start=np.zeros(K, np.int64))


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
    progress : show a progress bar (in terminals only)

    Without `adapt` the labels are `model.predict(X)`, with it those after `model.adapt(X, mode="markov")`. All windows
    are read and checked before the first is labelled, and every window passes the encoder once. A folder that holds
    labels of another model or of other windows is refused.
    """
    whole_number("chunk", chunk, least=1)
    method = model.fitted_method()
    windows, whole_batches = _WindowFile(X, model), -(-chunk // BATCH) * BATCH
    earlier = _Run.earlier_state(Path(out))  # before the whole file is read
    identity = _identity(model, adapt, windows, windows.digest(whole_batches, progress))
    run = _Run.start(Path(out), earlier, identity, len(windows), progress)
    if not run.state.finished:
        write_json(run.folder / "classes.json", model.classes_.tolist())
        answer = _adapted(method, windows, run, whole_batches) if adapt else _as_it_is(method, windows)
        _label(answer, len(model.classes_), run, whole_batches)
        run.finish()
    arrays = (map_npy(run.folder / name) for name in _ARRAYS[:2])
    return WindowLabels(run.folder, model.classes_, *arrays)


Answer = Callable[[slice], NDArray[np.float64]]  # probabilities (rows, K)


def _as_it_is(method: TransPLMethod, windows: _WindowFile) -> Answer:
    """Probabilities by the classifier that the model's last step left."""
    return lambda rows: method.predict_proba(windows[rows])


def _adapted(method: TransPLMethod, windows: _WindowFile, run: _Run, chunk: int) -> Answer:
    """Probabilities from what one pass of the encoder leaves on the disk, as those of a new target domain."""
    there = _facing(method, windows, chunk)
    files = _CodeFiles.of(method, windows, run, len(there.views))
    run.work_through("encoded", "encoding", chunk, lambda rows: files.write(rows, method.coded(windows[rows], there)))
    parts = list(_slices(0, len(windows), chunk))
    coded: Callable[[slice], Coded] = files.read
    if there.alignment is not None and not method.keeps_copies((rows, files.read(rows)) for rows in parts):
        coded, there = partial(files.read_recorded, there.views[0]), there.as_recorded()
    first, *others = (method.count_codes(coded(rows).codes) for rows in parts)
    counts = sum(others, start=first)
    counts.save(run.folder / "target_counts.npz")
    state = replace(there, target_counts=counts)
    vote = method.vote(method.refined(state, lambda: ((rows, coded(rows)) for rows in parts)))
    return lambda rows: vote.probabilities(coded(rows))


class _CodeFiles(NamedTuple):
    """Where the codes of all windows are and, where the network votes too, its opinions."""

    codes: Path
    opinions: Path | None

    @classmethod
    def of(cls, method: TransPLMethod, windows: _WindowFile, run: _Run, n_views: int) -> Self:
        """Make the files, or find those of an interrupted run."""
        n, settings = len(windows), method.settings
        shape = (n, n_views * windows.n_channels, windows.n_patches)
        return cls(
            run.array("codes.npy", shape, code_type(settings.n_coarse)),
            run.array("opinions.npy", (n, n_views, method.n_classes), np.float64)
            if settings.classifier_evidence
            else None,
        )

    def write(self, rows: slice, coded: Coded) -> None:
        write_rows(self.codes, rows.start, coded.codes)
        if self.opinions is not None and coded.opinions is not None:
            write_rows(self.opinions, rows.start, coded.opinions)

    def read(self, rows: slice) -> Coded:
        return Coded(map_npy(self.codes)[rows], None if self.opinions is None else map_npy(self.opinions)[rows])

    def read_recorded(self, channels: slice, rows: slice) -> Coded:
        """Without the aligned copies of the channels."""
        return self.read(rows).of_view(0, channels)


def _facing(method: TransPLMethod, windows: _WindowFile, chunk: int) -> TransPLState:
    """The state that meets these windows as a new target domain; to align them takes a pass over the file."""
    there = method.state.unadapted()
    if not method.settings.aligned_copies:
        return there
    moments = Moments.empty(windows.n_channels)
    for rows in _slices(0, len(windows), chunk):
        moments += Moments.of_windows(windows[rows])
    return there.facing(moments)


def _label(answer: Answer, n_classes: int, run: _Run, chunk: int) -> None:
    labels = run.array("labels.npy", (run.n,), np.int32)
    probabilities = run.array("probabilities.npy", (run.n, n_classes), np.float32)

    def label(rows: slice) -> None:
        y = answer(rows)
        write_rows(labels, rows.start, y.argmax(axis=1))
        write_rows(probabilities, rows.start, y)

    run.work_through("labelled", "labelling", chunk, label)


class _WindowFile:
    """Windows of a file or array, checked where a part of them is taken."""

    def __init__(self, X: NDArray | str | os.PathLike[str], model: TransPL) -> None:
        self._X, self._model = X, model
        self._name = Path(X).name if isinstance(X, str | os.PathLike) else "X"
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
            min_length=2 * self._model.patch_length,
        )

    @property
    def n_channels(self) -> int:
        return self._model.n_channels_

    @property
    def n_patches(self) -> int:
        return int(self.shape[-1]) // self._model.patch_length

    def digest(self, chunk: int, progress: bool) -> str:
        """SHA-256 of all windows, each chunk checked on the way: a bad value is named before hours of labelling."""
        whole = hashlib.sha256()
        with windows_bar("checking", len(self), shown=progress) as report:
            for rows in _slices(0, len(self), chunk):
                whole.update(np.ascontiguousarray(self[rows].in_memory().values).data)
                report(rows.stop)
        return whole.hexdigest()

    def _array(self) -> NDArray:
        if isinstance(self._X, np.ndarray):
            return self._X
        if isinstance(self._X, str | os.PathLike):
            return map_npy(self._X)  # anew for every part, so that pages of the last part do not stay in our memory
        got = type(self._X).__name__
        raise wrong("X", expected="an array or the path of a .npy file", got=got, advice="Write it with numpy.save.")


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
        try:
            state = cls(**read_json(path))
        except TypeError:
            state = None
        if state is None or state.format != _FORMAT:
            raise unreadable(path, problem="not written by transpl label of this version", advice=_AFRESH)
        return state


class _Run:
    """A folder that fills up, and how far it is."""

    def __init__(self, folder: Path, state: _State, n: int, progress: bool) -> None:
        self.folder, self.state, self.n, self._progress = folder, state, n, progress

    @staticmethod
    def earlier_state(folder: Path) -> _State | None:
        """How far a folder is; None if it is a new one. One with anything else in it is refused."""
        if folder.exists() and not folder.is_dir():
            raise wrong("out", expected="a folder", got=f"the file {folder}", advice="Choose another name.")
        path = folder / "progress.json"
        if path.is_file():
            return _State.read(path)
        taken = [name for name in (*_ARRAYS, "classes.json", "target_counts.npz") if (folder / name).exists()]
        if taken:
            raise wrong("out", expected="a folder without results", got=folder / taken[0], advice=_AFRESH)
        return None

    @classmethod
    def start(cls, folder: Path, earlier: _State | None, identity: str, n: int, progress: bool) -> Self:
        """Begin a folder, or go on with one of the same model and windows."""
        if earlier is not None:
            if earlier.fingerprint != identity:
                raise wrong("out", expected="a folder of this model and these windows", got=folder, advice=_AFRESH)
            return cls(folder, earlier, n, progress)
        folder.mkdir(parents=True, exist_ok=True)
        run = cls(folder, _State(_FORMAT, identity), n, progress)
        run._save()  # the folder is ours before anything else is in it
        return run

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Path:
        """Path of a .npy file of this shape, made if the run has not reached it yet."""
        path = self.folder / f"{name}.part"
        done = self.state.encoded if name in ("codes.npy", "opinions.npy") else self.state.labelled
        if done == 0:
            new_npy(path, shape, dtype)
        elif not path.is_file():  # all rows are there, and the last run ended between renaming and its last word
            path = self.folder / name
        if map_npy(path).shape != shape:
            raise unreadable(path, problem=f"expected shape {shape}", advice=_AFRESH)
        return path

    def work_through(self, stage: str, title: str, chunk: int, work: Callable[[slice], None]) -> None:
        """Do the rows that a stage has not done yet; a chunk counts as done once `work` has returned from it."""
        done = getattr(self.state, stage)
        with windows_bar(title, self.n, shown=self._progress) as report:
            report(done)
            for rows in _slices(done, self.n, chunk):
                work(rows)
                setattr(self.state, stage, rows.stop)
                self._save()
                report(rows.stop)

    def finish(self) -> None:
        """Give the arrays their names and say that all is done."""
        for name in _ARRAYS:
            part = self.folder / f"{name}.part"
            if part.exists():
                os.replace(part, self.folder / name)
        self.state.finished = True
        self._save()

    def _save(self) -> None:
        write_json(self.folder / "progress.json", asdict(self.state))


def _slices(first: int, n: int, chunk: int) -> Iterator[slice]:
    return (slice(start, min(start + chunk, n)) for start in range(first, n, chunk))


def _identity(model: TransPL, adapt: bool, windows: _WindowFile, digest: str) -> str:
    """SHA-256 of what decides the result: the model and the windows."""
    method = model.fitted_method()
    about = [fingerprint(method.state), since_before(method.settings), model.classes_.tolist(), adapt]
    about += [list(windows.shape), windows.dtype.str, digest]
    return hashlib.sha256(json.dumps(about, default=str).encode()).hexdigest()
