"""What a public data set must say of itself to be prepared from its raw files: one `Recipe` per file of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import unreadable_file
from transpl.datasets.base import Dataset

Say = Callable[[str], None]


@dataclass(frozen=True)
class RemoteFile:
    """A file that its host publishes.

    name : what it is called on disk
    urls : where to get it, the host's first, then mirrors and older addresses
    sha256 : None if nobody has published it; then the hash of the first download is recorded
    instead : files of other bytes with the same content, which will do as well
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    instead: tuple[RemoteFile, ...] = ()

    @property
    def choices(self) -> tuple[RemoteFile, ...]:
        """Return this file and those that will do as well, the preferred one first."""
        return (self, *self.instead)


class Built(NamedTuple):
    """What raw files become."""

    dataset: Dataset
    extras: dict[str, NDArray[Any]]  # further arrays for the npz, one entry per window
    notes: tuple[str, ...]  # what was dropped or repaired, and how much: one sentence each
    scaled: str = "none"  # by which rule `build` itself has scaled the values; they are not scaled again
    rule: str = ""  # what `Recipe.rule` says, true of the options used; empty: as it stands there


@dataclass(frozen=True)
class Recipe:
    """How raw files become a prepared data set.

    layout : which files there must be, for people who have them already
    rule : how windows, labels, domains and splits come about
    build : (folder with the unpacked files, say, **options) -> Built
    check : returns one sentence for every count that is not the published one
    options : what `build` takes beside the folder, with a line of help each
    """

    name: str
    title: str
    homepage: str
    licence: str
    citation: str
    files: tuple[RemoteFile, ...]
    layout: str
    rule: str
    build: Callable[..., Built]
    check: Callable[[Dataset], list[str]]
    options: Mapping[str, str] = field(default_factory=dict)


def windows_per_domain(dataset: Dataset) -> dict[int, int]:
    """How many windows each domain has."""
    ids, counts = np.unique(dataset.domain_ids, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def only_file(folder: Path, name: str) -> Path:
    """Return the one file called `name` in `folder` or below it; a missing or ambiguous one is refused."""
    found = sorted(path for path in folder.rglob(name) if path.is_file())
    if not found:
        raise unreadable_file(folder, problem=f"no {name} in it", advice="Unpack the whole archive there.")
    if len(found) > 1:
        places = ", ".join(str(path.parent.relative_to(folder)) or "." for path in found[:3])
        raise unreadable_file(folder, problem=f"{name} is in several places ({places})", advice="Keep only one copy.")
    return found[0]
