"""A cache of trained sources: each is trained once and loaded by every later run that asks for the same one.

Training on the source takes longest, and many runs start from the same source: the methods of a benchmark, the targets
of a job, a job that is repeated with other settings of the adaptation. A cached source is a folder with its files and
the record `source.json`. The record is written last, so that files without one are leftovers of a run that was killed.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from transpl._utils.errors import InputError, UnreadableFile, unreadable_file
from transpl._utils.files import read_json, remove_leftovers, write_json
from transpl._utils.locks import file_lock

RECORD = "source.json"
Source = TypeVar("Source")


class OtherSource(InputError):
    """A folder holds no trained source, or one that was trained on something else."""


@dataclass(frozen=True)
class SourceCache(Generic[Source]):
    """A trained source in a folder.

    Parameters
    ----------
    folder
        of the files and the record
    identity
        plain values on which the trained source depends and which the record must repeat, as far as the name of the
        folder does not already stand for them; None if it depends on chance, so that it is never found again
    read
        (folder, record) -> trained source. Raises `OtherSource` if the record is not of these files, `UnreadableFile`
        if they are damaged
    write
        (trained source, folder) -> what the record says of the files, a digest for instance
    """

    folder: Path
    identity: Mapping[str, Any] | None
    read: Callable[[Path, dict[str, Any]], Source]
    write: Callable[[Source, Path], dict[str, Any]]

    def load(self) -> Source:
        """Read the source from the folder.

        Raises
        ------
        OtherSource
            if the folder does not hold this source; the message says why
        UnreadableFile
            if it does, but is damaged
        """
        path = self.folder / RECORD
        if not path.is_file():
            raise OtherSource("no source model with a record of its training (source.json)")
        record = read_json(path)
        if not isinstance(record, dict):
            raise unreadable_file(path, problem="not the record of a source model", advice="Train it again.")
        if self.identity is None:
            raise OtherSource("random_state is not a fixed number, so that no two source models are the same")
        if changed := sorted(set(_differences(record, self.identity))):
            raise OtherSource(f"its source model differs in {', '.join(changed)}")
        return self.read(self.folder, record)

    def find(self) -> Source | None:
        """Read the source if the folder holds it; None if not, or if it is damaged, which is warned of."""
        try:
            return self.load()
        except OtherSource:
            return None
        except UnreadableFile as problem:
            warnings.warn(f"{problem}", stacklevel=2)
            return None

    def save(self, source: Source) -> dict[str, Any]:
        """Write the source and its record; returns the record."""
        (self.folder / RECORD).unlink(missing_ok=True)
        return self.describe(self.write(source, self.folder))

    def describe(self, files: Mapping[str, Any]) -> dict[str, Any]:
        """Write the record of a source whose files are in the folder already; `files` as `write` returns it."""
        record = {**(self.identity or {}), **files}
        if self.identity is None:
            (self.folder / RECORD).unlink(missing_ok=True)
        else:
            write_json(self.folder / RECORD, record)
        return record

    def build(self, train: Callable[[], Source], lock: Path, checkpoints: Path | None = None) -> Source:
        """Find the source, or train and save it. Of several processes with one lock file, one trains, the others wait.

        The source is always read from the folder, so that the process that trained it continues with what all others
        get. `checkpoints`, a folder that training resumes from, is removed once the source is saved.
        """
        with file_lock(lock):
            remove_leftovers(self.folder)
            found = self.find()
            if found is None:
                found = self.read(self.folder, self.save(train()))
            if checkpoints is not None:
                shutil.rmtree(checkpoints, ignore_errors=True)
            return found


def _differences(found: Any, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Names of the values in `wanted`, at any depth, that `found` lacks or has otherwise."""
    for name, value in wanted.items():
        other = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(value, Mapping):
            yield from _differences(other, value)
        elif not isinstance(found, Mapping) or name not in found or other != value:
            yield name
