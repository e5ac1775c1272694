"""Results in a folder: one JSON per run under the hash of its spec, written at once or not at all.

runs/<digest>.json, .npz     a finished run: spec, versions, scores; probabilities and pseudo-labels
plans/<digest>.json          the runs that were asked for
failures/<digest>.json       the last failure of a run that never finished: error, traceback, attempts
sources/<digest>/            a trained source network (see `source_store`)
checkpoints/<digest>/        a run in the making
locks/<digest>               held while a run is made, by whichever process makes it
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl.benchmark.locks import exclusive
from transpl.benchmark.result import Result
from transpl.benchmark.spec import RunSpec, digest_of
from transpl.errors import NotReadable, unreadable
from transpl.files import read_json, read_npz, replacing, write_json

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

    def has(self, spec: RunSpec) -> bool:
        """True if the run is finished."""
        return self._run(spec.digest).exists()

    def read(self, spec: RunSpec) -> Result:
        """The result of a finished run."""
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
        self._failure(spec.digest).unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints(spec), ignore_errors=True)

    def fail(self, spec: RunSpec, error: str, traceback: str, attempts: int) -> None:
        """Keep the record of a run that came to nothing."""
        record = {"spec": spec.as_dict(), "error": error, "traceback": traceback, "attempts": attempts}
        write_json(self._failure(spec.digest), {"format": FORMAT, **record})

    def failure(self, spec: RunSpec) -> Failure | None:
        """The last failure of an unfinished run, if there was one."""
        path = self._failure(spec.digest)
        if self.has(spec) or not path.exists():
            return None
        record = _checked(path, read_json(path), {"error", "traceback", "attempts"})
        return Failure(spec, record["error"], record["traceback"], record["attempts"])

    def results(self) -> Iterator[tuple[RunSpec, Result]]:
        """All finished runs, in the order of their names."""
        for path in sorted((self.folder / "runs").glob("*.json")):
            yield self._read(path)

    def plan(self, specs: Sequence[RunSpec]) -> None:
        """Remember which runs were asked for, so that a table knows what it lacks."""
        runs = [spec.as_dict() for spec in specs]
        write_json(self.folder / "plans" / f"{digest_of(runs)}.json", {"format": FORMAT, "spec": None, "runs": runs})

    def planned(self) -> list[RunSpec]:
        """All runs that were ever asked for."""
        found = {}
        for path in sorted((self.folder / "plans").glob("*.json")):
            for values in _checked(path, read_json(path), {"runs"})["runs"]:
                spec = RunSpec.from_dict(values)
                found[spec.digest] = spec
        return list(found.values())

    def missing(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """Those that are not finished."""
        return [spec for spec in specs if not self.has(spec)]

    def lock(self, digest: str, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Be the only one to make a run; see `exclusive`."""
        return exclusive(self.folder / "locks" / digest, wait=wait)

    def checkpoints(self, spec: RunSpec) -> Path:
        """Where an unfinished run can be resumed from."""
        return self.folder / "checkpoints" / spec.digest

    def _run(self, digest: str) -> Path:
        return self.folder / "runs" / f"{digest}.json"

    def _failure(self, digest: str) -> Path:
        return self.folder / "failures" / f"{digest}.json"

    @staticmethod
    def _read(path: Path) -> tuple[RunSpec, Result]:
        record = _checked(path, read_json(path), {"result"})
        try:
            spec, result = RunSpec.from_dict(record["spec"]), Result.from_dict(record["result"])
        except (ValueError, TypeError, KeyError) as error:
            raise unreadable(path, problem=f"not a result ({error})", advice="Delete it to run it anew.") from None
        if spec.digest != path.stem:
            raise unreadable(path, problem="changed since it was written", advice="Delete it to run it anew.")
        return spec, result


def _checked(path: Path, record: Any, keys: set[str]) -> dict[str, Any]:
    if not isinstance(record, dict) or record.get("format") != FORMAT or not keys | {"spec"} <= set(record):
        raise NotReadable(f"{path}: not written by this version of transpl. Delete it to run it anew.")
    return record
