"""Which files are meant, and what their targets are called."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from transpl._utils.errors import invalid


def is_pattern(path: Path) -> bool:
    """True for a pattern such as homes/*.npz that is not itself a file."""
    return glob.has_magic(str(path)) and not path.exists()


def expanded(paths: Iterable[Path]) -> list[Path]:
    """The files that are meant, each once: patterns are replaced by what they match, in the order of the names."""
    found: dict[Path, Path] = {}
    for path in paths:
        for file in _matches(path) if is_pattern(path) else [path]:
            found.setdefault(_absolute(file), file)
    return list(found.values())


def named(paths: Sequence[Path], taken: Collection[str] = ()) -> dict[str, Path]:
    """Name files after themselves, after their folders too where that is needed to tell them apart.

    taken : names that are not to be used
    """
    longest = max((len(_absolute(path).parts) for path in paths), default=1)
    for parts in range(1, longest + 1):
        for ending in (_without_suffix, lambda path: path.name):
            names = [_name(path, parts, ending) for path in paths]
            if max(Counter([*names, *taken]).values(), default=1) == 1:
                return dict(zip(names, paths, strict=True))
    raise invalid(
        "targets", expected="files of different names", got=[str(path) for path in paths], advice="Rename one."
    )


def _matches(pattern: Path) -> list[Path]:
    files = sorted(path for path in map(Path, glob.glob(str(pattern), recursive=True)) if not path.is_dir())
    if not files:
        raise invalid("target", expected="files", got=f"{pattern}, which matches none", advice="Check the pattern.")
    return files


def _name(path: Path, parts: int, ending: Callable[[Path], str]) -> str:
    """The file's name after those of its last `parts` - 1 folders."""
    folders = _absolute(path).parts[1:-1]
    return "-".join([*folders[len(folders) - min(parts - 1, len(folders)) :], ending(path)]).lstrip(".")


def _without_suffix(path: Path) -> str:
    return Path(path.stem).stem if path.suffix == ".gz" else path.stem


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # links keep their names
