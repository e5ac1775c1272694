"""Results in a folder: one JSON per run under the hash of its spec, written at once or not at all.

runs/<digest>.json, .npz     a finished run: spec, versions, scores; probabilities and pseudo-labels
plans/<digest>.json          the runs that were asked for
failures/<digest>.json       the last failure of a run that never finished: error, traceback, attempts
sources/<digest>/            a trained source network (see `source_store`)
checkpoints/<digest>/        a run in the making
locks/<digest>               held while a run is made, by whichever process makes it

A file that cannot be read counts as absent, and a warning names it.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile, unreadable_file
from transpl._utils.files import read_json, read_npz, replacing, write_json
from transpl.benchmark.locks import exclusive
from transpl.benchmark.result import Result
from transpl.benchmark.spec import RunSpec, short_digest

FORMAT = "transpl-run-1"


@dataclass(frozen=True)
class Failure:
    """Why a run has no result."""

    spec: RunSpec
    error: str
    traceback: str
    attempts: int


class Store:
    """The results of a benchmark folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    @property
    def is_used(self) -> bool:
        """True if a benchmark wrote to this folder."""
        return (self.folder / "plans").is_dir() or (self.folder / "runs").is_dir()

    def has(self, spec: RunSpec) -> bool:
        """True if the run is finished."""
        return self.find(spec) is not None

    def find(self, spec: RunSpec) -> Result | None:
        """The result of a run, or None if it is not finished."""
        path = self._run(spec.digest)
        if not path.exists():
            return None
        try:
            return self._read(path)[1]
        except UnreadableFile as problem:
            _warn(problem)
            return None

    def read(self, spec: RunSpec) -> Result:
        """The result of a finished run; refused if there is none."""
        return self._read(self._run(spec.digest))[1]

    def arrays(self, spec: RunSpec) -> dict[str, NDArray[Any]]:
        """The probabilities and pseudo-labels of a finished run."""
        return read_npz(self._run(spec.digest).with_suffix(".npz"))

    def write(self, spec: RunSpec, result: Result, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep a result; its JSON is written last, so that a run that has it is whole."""
        path = self._run(spec.digest)
        with replacing(path.with_suffix(".npz")) as part, part.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        write_json(path, {"format": FORMAT, "spec": spec.as_dict(), "result": result.as_dict()})
        with suppress(OSError):  # from here on the run is finished, whatever cannot be tidied up
            self._failure(spec.digest).unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints(spec), ignore_errors=True)

    def fail(self, spec: RunSpec, error: str, traceback: str, attempts: int) -> None:
        """Keep the record of a run that came to nothing."""
        record = {"spec": spec.as_dict(), "error": error, "traceback": traceback, "attempts": attempts}
        with self.lock("failures"):
            remove_half_files(self.folder / "failures")
            write_json(self._failure(spec.digest), {"format": FORMAT, **record})

    def failure(self, spec: RunSpec) -> Failure | None:
        """The last failure of an unfinished run, if there was one."""
        path = self._failure(spec.digest)
        if not path.exists() or self.has(spec):
            return None
        try:
            record = _record(path, {"error", "traceback", "attempts"})
        except UnreadableFile as problem:
            _warn(problem)
            return None
        return Failure(spec, record["error"], record["traceback"], record["attempts"])

    def results(self) -> Iterator[tuple[RunSpec, Result]]:
        """All finished runs, in the order of their names."""
        for path in _whole_files(self.folder / "runs"):
            try:
                yield self._read(path)
            except UnreadableFile as problem:
                _warn(problem)

    def plan(self, specs: Sequence[RunSpec]) -> None:
        """Remember which runs were asked for, so that a table knows what it lacks."""
        runs = [spec.as_dict() for spec in specs]
        with self.lock("plans"):
            remove_half_files(self.folder / "plans")
            write_json(self.folder / "plans" / f"{short_digest(runs)}.json", {"format": FORMAT, "runs": runs})

    def planned(self) -> list[RunSpec]:
        """All runs that were ever asked for."""
        found: dict[str, RunSpec] = {}
        for path in _whole_files(self.folder / "plans"):
            try:
                found |= {spec.digest: spec for spec in _planned_in(path)}
            except UnreadableFile as problem:
                _warn(problem)
        return list(found.values())

    def known(self) -> dict[str, tuple[RunSpec, Result | None]]:
        """By digest, every run that was asked for or is finished; its result is None if it is not."""
        finished = {spec.digest: (spec, result) for spec, result in self.results()}
        return {**{spec.digest: (spec, None) for spec in self.planned()}, **finished}

    def missing(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """Those that are not finished."""
        return [spec for spec in specs if not self.has(spec)]

    def lock(self, name: str, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Be the only one to make the run of this digest; see `exclusive`."""
        return exclusive(self.folder / "locks" / name, wait=wait)

    def checkpoints(self, spec: RunSpec) -> Path:
        """Where an unfinished run can be resumed from."""
        return self.folder / "checkpoints" / spec.digest

    def remove_half_files(self, spec: RunSpec) -> None:
        """Remove what a killed process left of a run beside its checkpoints; call it under the run's lock."""
        remove_half_files(self.folder / "runs", f".{spec.digest}.")

    def remove_old_checkpoints(self, specs: Iterable[RunSpec]) -> None:
        """Remove the checkpoints of finished runs whose process was killed before it could."""
        for spec in specs:
            if self.checkpoints(spec).exists() and self.has(spec):
                shutil.rmtree(self.checkpoints(spec), ignore_errors=True)

    def _run(self, digest: str) -> Path:
        return self.folder / "runs" / f"{digest}.json"

    def _failure(self, digest: str) -> Path:
        return self.folder / "failures" / f"{digest}.json"

    @staticmethod
    def _read(path: Path) -> tuple[RunSpec, Result]:
        record = _record(path, {"spec", "result"})
        try:
            spec, result = RunSpec.from_dict(record["spec"]), Result.from_dict(record["result"])
        except (ValueError, TypeError, KeyError) as error:
            raise _damaged(path, f"not a result ({error})") from None
        if spec.digest != path.stem:
            raise _damaged(path, "changed since it was written")
        return spec, result


def remove_half_files(folder: Path, prefix: str = ".") -> None:
    """Remove files that a killed process never finished; whoever calls this must be the only one to write them."""
    for path in folder.glob(f"{prefix}*.part*"):
        with suppress(OSError):
            path.unlink()


def _whole_files(folder: Path) -> list[Path]:
    """JSON files but for those still being written, whose names begin with a dot."""
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))


def _planned_in(path: Path) -> list[RunSpec]:
    runs = _record(path, {"runs"})["runs"]
    try:
        return [RunSpec.from_dict(values) for values in runs]
    except (ValueError, TypeError, KeyError) as error:
        raise unreadable_file(path, problem=f"not a plan ({error})", advice="Run the same benchmark again.") from None


def _record(path: Path, keys: set[str]) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict) or record.get("format") != FORMAT or not keys <= set(record):
        raise _damaged(path, "not written by this version of transpl")
    return record


def _damaged(path: Path, problem: str) -> UnreadableFile:
    return unreadable_file(path, problem=problem, advice="`transpl bench` makes it anew.")


def _warn(problem: UnreadableFile) -> None:
    warnings.warn(f"{problem} It counts as missing.", stacklevel=1)  # whoever asks, a file is named once
