"""What a target may be: windows, a file that the worker reads, or a function that the worker calls."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cloudpickle

from transpl._utils.errors import invalid
from transpl._utils.files import map_npy
from transpl._utils.hashing import digest_of
from transpl.datasets.recordings.reading import Recordings, read_recordings
from transpl.jobs.results import Target, where

# what `predict` takes over from `adapt`
READING = {"domain_col", "time_col", "group_col", "channels", "window", "step", "interval"}


@dataclass(frozen=True)
class TargetFile:
    """A file of windows or recordings.

    reading : arguments of `read_recordings`; a .npy file is mapped into memory as it is
    """

    path: Path
    reading: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> Any:
        """The windows, with labels and origins if the file has them."""
        if self.path.suffix == ".npy":
            return map_npy(self.path)
        return read_recordings(self.path, labels_only_score=True, **self.reading)

    def identity(self) -> str | None:
        """Tell this file, as it is now, from others; by size and time of change, for reading it all would take long."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return digest_of(found.st_size, found.st_mtime_ns, dict(self.reading))


def remembered(reading: Mapping[str, Any]) -> dict[str, Any]:
    """What of the arguments of `read_recordings` is also true of files to come."""
    return {name: value for name, value in reading.items() if name in READING}


def as_target(target: Any) -> Any:
    """A path as `TargetFile`, from the root on: a worker may be at home in another folder. Others as they are."""
    if isinstance(target, str | os.PathLike):
        target = TargetFile(Path(target))
    return replace(target, path=target.path.absolute()) if isinstance(target, TargetFile) else target


def read_target(target: Any, channel_names: tuple[str, ...] | None) -> tuple[Target, tuple[str, ...] | None]:
    """The windows of a target and the names of its channels if they are known, which must then be those given."""
    found = target
    if isinstance(target, TargetFile):
        found = target.read()
    elif callable(target):
        found = target()
    if not isinstance(found, Recordings):
        return Target(found), channel_names
    for doubt in found.doubts:
        warnings.warn(doubt, stacklevel=2)
    if channel_names is not None and found.channel_names != channel_names:
        got, advice = ", ".join(found.channel_names), "If the source has no names, give them in its order."
        raise invalid("target", expected=f"channels {', '.join(channel_names)}", got=got, advice=advice)
    return Target(found.X, found.y, where(found)), found.channel_names


def identity(target: Any) -> str | None:
    """Tell a target from others; None if that is not possible.

    A function is known by its code or name and by the arguments bound to it, not by what it reads.
    """
    if isinstance(target, TargetFile):
        return target.identity()
    try:
        return hashlib.sha256(cloudpickle.dumps(target)).hexdigest()
    except Exception:  # what does not pickle cannot travel either, and its task will say so
        return None
