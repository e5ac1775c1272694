"""Targets of `adapt_many`: windows, a file that the worker reads, or a function that the worker calls."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transpl._utils.errors import InputError, invalid
from transpl._utils.files import map_npy
from transpl._utils.hashing import hash_pickle, hash_values
from transpl.datasets.recordings.reading import Recordings, read_recordings
from transpl.datasets.recordings.several import files_of, read_several
from transpl.jobs.folder import READING
from transpl.jobs.target import Target, origin_of


@dataclass(frozen=True)
class TargetFile:
    """A file of windows or recordings, or a folder with the recordings of one person.

    Parameters
    ----------
    path
        a folder, a .npy file, which is mapped into memory as it is, or what `read_recordings` reads
    reading
        arguments of `read_recordings`
    """

    path: Path
    reading: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> Any:
        """Read the windows, as `Recordings` unless the file is .npy."""
        if self.path.suffix == ".npy":
            return map_npy(self.path)
        return read_several(files_of(self.path), read_recordings, labels_only_score=True, **self.reading)

    @property
    def saved_reading(self) -> dict[str, Any]:
        """What of `reading` also applies to new recordings of this target."""
        return saved_reading(self.reading)


def saved_reading(reading: Mapping[str, Any]) -> dict[str, Any]:
    """What of the arguments of `read_recordings` also applies to new recordings."""
    return {name: value for name, value in reading.items() if name in READING}


def as_target(target: Any) -> Any:
    """Make a path a `TargetFile` with an absolute path, as a worker may run in another folder; keep the rest."""
    if isinstance(target, str | os.PathLike):
        target = TargetFile(Path(target))
    return replace(target, path=target.path.absolute()) if isinstance(target, TargetFile) else target


def read_target(target: Any, channel_names: tuple[str, ...] | None) -> tuple[Target, tuple[str, ...] | None]:
    """The windows of a target, and the names of its channels if known, which must agree with `channel_names`."""
    found = target
    if isinstance(target, TargetFile):
        found = target.read()
    elif callable(target):
        found = target()
    if not isinstance(found, Recordings):
        return Target(found), channel_names
    for line in found.warnings:
        warnings.warn(line, stacklevel=2)
    if channel_names is not None and found.channel_names != channel_names:
        got, advice = ", ".join(found.channel_names), "If the source has no names, give them in its order."
        raise invalid("target", expected=f"channels {', '.join(channel_names)}", got=got, advice=advice)
    return Target(found.X, found.y, origin_of(found)), found.channel_names


def target_digest(target: Any) -> str | None:
    """A hash that changes with the target; None if it has none.

    A file is known by its size and time of change, as reading it all would take long. A function is known by its code
    or name and by the arguments bound to it, not by what it reads.
    """
    if isinstance(target, TargetFile):
        try:
            found = [file.stat() for file in files_of(target.path)]
        except (OSError, InputError):
            return None
        return hash_values([(each.st_size, each.st_mtime_ns) for each in found], dict(target.reading))
    try:
        return hash_pickle(target)
    except Exception:  # what does not pickle cannot travel either, and its task will say so
        return None


def name_files(paths: Sequence[Path], taken: Collection[str] = ()) -> dict[str, Path]:
    """Name each file after itself, with suffix or folders only where files would otherwise share a name.

    Parameters
    ----------
    taken
        names that are not to be used
    """
    deepest = max((len(path.absolute().parts) for path in paths), default=1)
    for folders in range(deepest):
        for with_suffix in (False, True):
            names = [_file_name(path, folders, with_suffix) for path in paths]
            if max(Counter([*names, *taken]).values(), default=1) == 1:
                return dict(zip(names, paths, strict=True))
    got = [str(path) for path in paths]
    raise invalid("targets", expected="files of different names", got=got, advice="Rename one.")


def _file_name(path: Path, folders: int, with_suffix: bool) -> str:
    """The file's name after the names of so many folders that it is in."""
    *parents, name = Path(os.path.abspath(path)).parts[1:]
    if not with_suffix:
        name = Path(path.stem).stem if path.suffix == ".gz" else path.stem
    return "-".join([*parents[max(len(parents) - folders, 0) :], name]).lstrip(".")
