"""Several files of recordings read as one: the recordings of one person, or several people to learn from."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid
from transpl._utils.wording import counted
from transpl.datasets.recordings.reading import Recordings
from transpl.datasets.recordings.remarks import list_channels, shorten
from transpl.datasets.recordings.table_stream import find_tables
from transpl.datasets.recordings.tables import Text


def is_pattern(path: Path) -> bool:
    """True for a pattern such as homes/*.npz that is not itself a file."""
    return glob.has_magic(str(path)) and not path.exists()


def expand_patterns(paths: Iterable[Path], argument: str = "target") -> list[Path]:
    """Replace patterns by the files they match, in the order of the names; every file occurs once."""
    found: dict[str, Path] = {}
    for path in paths:
        files = [path]
        if is_pattern(path):
            files = sorted(match for match in map(Path, glob.glob(str(path), recursive=True)) if not match.is_dir())
            if not files:
                got = f"{path}, which matches none"
                raise invalid(argument, expected="files", got=got, advice="Check the pattern.")
        for file in files:
            found.setdefault(os.path.abspath(file), file)  # links keep their names
    return list(found.values())


def files_of(path: Path) -> list[Path]:
    """Return the tables in a folder, which are recordings of one person; a file stands for itself."""
    return find_tables(path) if path.is_dir() else [path]


def read_several(paths: Sequence[Path], read: Callable[..., Recordings], **reading: Any) -> Recordings:
    """Read files with `read`, and join their windows.

    The first file decides channels, window and step of all. Every file is a recording of its own, so that `group`
    names the file.
    """
    first = read(paths[0], **reading)
    if len(paths) == 1:
        return first
    reading |= {"window": first.X.shape[2]}
    reading |= {"channels": list(first.channel_names)} if first.named else {}
    reading |= {} if first.step is None else {"step": first.step}
    if reading.get("rate") is None and first.interval is not None:
        reading |= {"interval": first.interval}
    return _join(paths, [first, *(read(path, **reading) for path in paths[1:])])


def _join(paths: Sequence[Path], parts: list[Recordings]) -> Recordings:
    lengths = {part.X.shape[2] for part in parts}
    if len(lengths) > 1:
        expected, got = "windows of one length in all files", f"{', '.join(map(str, sorted(lengths)))} samples"
        raise invalid(paths[0].name, expected=expected, got=got, advice="Cut them alike, or choose fewer files.")
    names = _names(paths)
    group = [
        np.array([name if part.group is None else f"{name}/{each}" for each in _rows(part)])
        for name, part in zip(names, parts, strict=True)
    ]
    total = sum(len(part) for part in parts)
    return replace(
        parts[0],
        X=np.concatenate([part.X for part in parts]),
        y=_joined_text(parts, "y"),
        domain=_joined_text(parts, "domain"),
        group=np.concatenate(group),
        description=(
            f"{counted(len(parts), 'file')} ({shorten(names)}): {counted(total, 'window')} of {lengths.pop()}, "
            f"{list_channels(parts[0].channel_names)}"
        ),
        warnings=tuple(line for part in parts for line in part.warnings),
        start=_joined(parts, "start"),
        end=_joined(parts, "end"),
        time=_joined(parts, "time"),
        time_end=_joined(parts, "time_end"),
        account=None,
    )


def _rows(part: Recordings) -> Iterable[Any]:
    return range(len(part)) if part.group is None else part.group.tolist()


def _joined_text(parts: list[Recordings], name: str) -> Text | None:
    """Join a column; "" for the windows of files that lack it."""
    columns = [getattr(part, name) for part in parts]
    if all(column is None for column in columns):
        return None
    filled = [np.full(len(part), "") if column is None else column for part, column in zip(parts, columns, strict=True)]
    return np.concatenate(filled)


def _joined(parts: list[Recordings], name: str) -> NDArray[Any] | None:
    columns = [getattr(part, name) for part in parts]
    return None if any(column is None for column in columns) else np.concatenate(columns)


def _names(paths: Sequence[Path]) -> list[str]:
    """Name files after themselves, with the folder where two would share a name."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
