"""The folder of a benchmark: one JSON file per run, named after the digest of its spec and written atomically.

runs/<digest>.json, .npz     a finished run: spec, versions, scores; probabilities and pseudo-labels
plans/<digest>.json          the runs that were asked for
failures/<digest>.json       the last failure of a run that never finished: error, traceback, attempts
sources/<digest>/            a trained source network (see `source_store`)
checkpoints/<digest>/        an unfinished run
locks/<digest>               held by the process that makes the run

A file that cannot be read counts as missing, and a warning names it.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, UnreadableFile, unreadable_file
from transpl._utils.files import read_json, read_npz, remove_leftovers, replacing, write_json
from transpl._utils.hashing import hash_json
from transpl._utils.layout import check_facts
from transpl._utils.locks import file_lock
from transpl.benchmark.run_spec import RunSpec, check_fields, short_digest

FORMAT = "transpl-run-1"
# A stored result, as `check_facts` takes it, and the details that pages and tables show.
_RESULT = {
    **dict.fromkeys(("dataset", "method", "fingerprint"), str),
    "pair": [int],
    "seed": int,
    "settings": dict,
    "test": {str: float},
    "pseudo_labels": {str: {str: float}},
    "seconds": {str: float},
    "epochs": {str: int},
    "risks": {str: float},
    "details": dict,
    "versions": {str: str},
    "cpu_seconds": (float, None),
    "error": (str, None),
}
_DETAILS = {
    "learnt_from": {"rows": int, "share": float, "accuracy?": float},
    "source_guard": {"held_back": bool, "cross_entropy": float, "bound": float},
    "channel_weights": [float],
    "channel_distances": [float],
    "codebooks": {str: {"perplexity?": float, "dead": int, "codes": int}},
    "reconstruction_error": float,
}
_FAILURE = {"error": str, "traceback": (str, None), "attempts": int}


@dataclass(frozen=True)
class Result:
    """What a method did on a pair of domains, as plain values that survive JSON.

    Attributes
    ----------
    dataset, pair, method, seed, settings
        What was run: everything that decided the numbers.
    test : dict
        Scores on the target's test part.
    pseudo_labels : dict
        Scores on the target's train part of the labels that the method learned from: "initial", and "final" where it
        relabelled. A method that learns from none is scored by its labels after adaptation.
    seconds : dict
        "source" (training the source model, which methods share), "start" (preparing from it), "adapt" and "predict";
        or "label".
    epochs : dict
        Number of epochs by phase.
    risks : dict
        Risk of the adapted classifier by selection rule, lower is better (see `transpl.benchmark.selection`).
    details : dict
        What else the method reports, such as codebook usage, channel weights or the state of SHOT's guard.
    versions : dict
        Versions of Python, this package and the packages that the numbers depend on.
    fingerprint : str
        Hash of predictions, pseudo-labels and losses: equal for runs that agree to the last bit.
    cpu_seconds : float or None
        CPU time of the whole run, without training the source model. Runs of earlier versions do not have it.
    error : str or None
        Why there are no scores.
    """

    dataset: str
    pair: tuple[int, int]
    method: str
    seed: int
    settings: dict[str, Any]
    test: dict[str, float] = field(default_factory=dict)
    pseudo_labels: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    risks: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    cpu_seconds: float | None = None
    error: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "pair": list(self.pair)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create a result from `as_dict`."""
        values = {"cpu_seconds": None, **values}
        check_fields(cls, values)
        check_facts("result", values, _RESULT)
        for name, kind in _DETAILS.items():
            if name in values["details"]:
                check_facts(f"result.details.{name}", values["details"][name], kind)
        source, target = values["pair"]
        return cls(**{**values, "pair": (source, target)})


@dataclass(frozen=True)
class Failure:
    """Why a run has no result."""

    spec: RunSpec
    error: str
    traceback: str
    attempts: int


class Store:
    """The runs of a benchmark folder.

    Parameters
    ----------
    folder : Path
        Folder that `transpl bench` writes.
    """

    def __init__(self, folder: str | Path) -> None:
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
        path = self._run_path(spec)
        return next((result for _, result in self._readable([path])), None) if path.exists() else None

    def read(self, spec: RunSpec) -> Result:
        """The result of a run; an unfinished run is refused."""
        return _read_run(self._run_path(spec))[1]

    def arrays(self, spec: RunSpec) -> dict[str, NDArray[Any]]:
        """The probabilities and pseudo-labels of a finished run."""
        return read_npz(self._run_path(spec).with_suffix(".npz"))

    def write(self, spec: RunSpec, result: Result, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Store a result. The JSON file is written last: a run that has it is complete."""
        path = self._run_path(spec)
        with replacing(path.with_suffix(".npz")) as part, part.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        record = {"format": FORMAT, "spec": spec.as_dict(), "result": result.as_dict()}
        write_json(path, {**record, "digest": hash_json(record)})
        with suppress(OSError):  # the run is finished, even if the rest cannot be removed
            self._failure_path(spec).unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints(spec), ignore_errors=True)

    def fail(self, spec: RunSpec, error: str, traceback: str, attempts: int) -> None:
        """Store why a run has no result."""
        record = {"spec": spec.as_dict(), "error": error, "traceback": traceback, "attempts": attempts}
        with self.lock("failures"):
            remove_leftovers(self.folder / "failures")
            write_json(self._failure_path(spec), {"format": FORMAT, **record})

    def failure(self, spec: RunSpec) -> Failure | None:
        """The last failure of an unfinished run, or None."""
        path = self._failure_path(spec)
        if not path.exists() or self.has(spec):
            return None
        try:
            record = _read_record(path, set(_FAILURE))
            check_facts("failure", {name: record[name] for name in _FAILURE}, _FAILURE)
        except UnreadableFile as problem:
            _warn(problem)
            return None
        except InputError as error:
            _warn(_damaged(path, f"not a failure ({error})"))
            return None
        return Failure(spec, record["error"], record["traceback"], record["attempts"])

    def results(self) -> Iterator[tuple[RunSpec, Result]]:
        """All finished runs, in the order of their digests."""
        yield from self._readable(_json_files(self.folder / "runs"))

    def plan(self, specs: Sequence[RunSpec]) -> None:
        """Record which runs were asked for, so that tables know what is missing."""
        runs = [spec.as_dict() for spec in specs]
        with self.lock("plans"):
            remove_leftovers(self.folder / "plans")
            write_json(self.folder / "plans" / f"{short_digest(runs)}.json", {"format": FORMAT, "runs": runs})

    def planned(self) -> list[RunSpec]:
        """All runs that were ever asked for."""
        found: dict[str, RunSpec] = {}
        for path in _json_files(self.folder / "plans"):
            try:
                specs = [RunSpec.from_dict(values) for values in _read_record(path, {"runs"})["runs"]]
            except UnreadableFile as problem:
                _warn(problem)
            except (ValueError, TypeError, KeyError) as error:
                advice = "Run the same benchmark again."
                _warn(unreadable_file(path, problem=f"not a plan ({error})", advice=advice))
            else:
                found |= {spec.digest: spec for spec in specs}
        return list(found.values())

    def known(self) -> dict[str, tuple[RunSpec, Result | None]]:
        """Every run that was asked for or is finished, by digest; the result is None if it is not finished."""
        planned: dict[str, tuple[RunSpec, Result | None]] = {spec.digest: (spec, None) for spec in self.planned()}
        return planned | {spec.digest: (spec, result) for spec, result in self.results()}

    def missing(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """The specs whose runs are not finished."""
        return [spec for spec in specs if not self.has(spec)]

    def lock(self, name: str, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold the lock of this name, such as a run's digest; see `file_lock`."""
        return file_lock(self.folder / "locks" / name, wait=wait)

    def checkpoints(self, spec: RunSpec) -> Path:
        """Folder that an unfinished run resumes from."""
        return self.folder / "checkpoints" / spec.digest

    def remove_partial_files(self, spec: RunSpec) -> None:
        """Remove what a killed process left of a run, except checkpoints; the caller must hold the run's lock."""
        remove_leftovers(self.folder / "runs", f"{spec.digest}.")

    def remove_old_checkpoints(self, specs: Iterable[RunSpec]) -> None:
        """Remove the checkpoints of finished runs whose process was killed before it could do so."""
        for spec in specs:
            if self.checkpoints(spec).exists() and self.has(spec):
                shutil.rmtree(self.checkpoints(spec), ignore_errors=True)

    def _run_path(self, spec: RunSpec) -> Path:
        return self.folder / "runs" / f"{spec.digest}.json"

    def _failure_path(self, spec: RunSpec) -> Path:
        return self.folder / "failures" / f"{spec.digest}.json"

    @staticmethod
    def _readable(paths: Iterable[Path]) -> Iterator[tuple[RunSpec, Result]]:
        for path in paths:
            try:
                yield _read_run(path)
            except UnreadableFile as problem:
                _warn(problem)


def package_versions(results: Iterable[Result]) -> dict[str, tuple[str, ...]]:
    """The versions of each package that the runs were made with."""
    found: dict[str, set[str]] = {}
    for result in results:
        for name, version in result.versions.items():
            found.setdefault(name, set()).add(version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def _read_run(path: Path) -> tuple[RunSpec, Result]:
    record = _read_record(path, {"spec", "result"})
    try:
        spec, result = RunSpec.from_dict(record["spec"]), Result.from_dict(record["result"])
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, f"not a result ({error})") from None
    written = {key: value for key, value in record.items() if key != "digest"}
    if spec.digest != path.stem or record.get("digest", hash_json(written)) != hash_json(written):  # old ones have none
        raise _damaged(path, "changed since it was written")
    return spec, result


def _read_record(path: Path, keys: set[str]) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict) or record.get("format") != FORMAT or not keys <= set(record):
        raise _damaged(path, "not written by this version of transpl")
    return record


def _json_files(folder: Path) -> list[Path]:
    """JSON files, without those still being written, whose names begin with a dot."""
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))


def _damaged(path: Path, problem: str) -> UnreadableFile:
    return unreadable_file(path, problem=problem, advice="`transpl bench` writes it again.")


def _warn(problem: UnreadableFile) -> None:
    warnings.warn(f"{problem} It counts as missing.", stacklevel=1)  # one place, so that each file is named once
