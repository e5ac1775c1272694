"""Unpacking what others have packed: zip, tar and tar.gz, also inside one another, all of it or nothing.

An archive is input from outside. What it holds is written only below the folder, is counted while it is written
(what a header says of sizes is not believed), and only files and folders are made: no links, no devices.

A nested archive gives way to a folder of its name without the ending. If such a folder is there already, the archive
counts as unpacked and is left alone. Hidden files, and what macOS adds in `__MACOSX`, are no nested archives.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from transpl._utils.errors import InputError, UnreadableFile, invalid, unreadable_file
from transpl.datasets.members import AGAIN, ENDINGS, Member, members

MOST_BYTES = 64 << 30
MOST_FILES = 500_000
MOST_NESTED = 3
_CHUNK = 1 << 20
_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


class DamagedArchive(UnreadableFile):
    """The archive itself is at fault, not the disk or a limit."""


class _Limits:
    """What may still be written; shared by an archive and those inside it."""

    def __init__(self, most_bytes: int, most_files: int) -> None:
        self._most_bytes, self._most_files = most_bytes, most_files
        self._bytes = self._files = 0

    def take(self, shown: str, *, files: int = 0, size: int = 0) -> None:
        self._files += files
        self._bytes += size
        if self._files > self._most_files or self._bytes > self._most_bytes:
            problem = f"it unpacks to more than {self._most_bytes:,} bytes or {self._most_files:,} files"
            raise unreadable_file(
                shown, problem=problem, advice="Unpack it yourself, if you trust it, and give the folder."
            )


def unpack(archive: Path, folder: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> Path:
    """Unpack `archive`, and the archives in it, into the new folder `folder` and return that.

    The folder appears when all of it is there. An archive that is damaged, encrypted, too big or that reaches out of
    its folder is refused and leaves nothing.
    """
    if not Path(archive).is_file():
        raise unreadable_file(archive, problem="no such file", advice="Check the path.")
    if not os.access(archive, os.R_OK):
        raise unreadable_file(archive, problem="it may not be read", advice="Change its permissions.")
    limits = _Limits(most_bytes, most_files)
    with _new_folder(Path(folder)) as part:
        _unpack_into(part, Path(archive), str(archive), limits)
        _unpack_nested(part, str(archive), limits)
    return Path(folder)


def unpacked(source: Path, scratch: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> Path:
    """Return a folder with the files of `source`, an archive or a folder of unpacked files.

    A folder without archives is returned itself. Otherwise its files are linked (where that is not possible, copied)
    into `scratch` and the archives are unpacked there; the user's folder is only read.
    """
    source, room = Path(source), Path(scratch) / "unpacked"
    if not source.is_dir():
        return unpack(source, room, most_bytes=most_bytes, most_files=most_files)
    if not holds_archives(source):
        return source
    with _new_folder(room) as part:
        _mirror(source, part)
        _unpack_nested(part, str(source), _Limits(most_bytes, most_files))
    return room


def holds_archives(folder: Path) -> bool:
    """Say whether there is an archive in `folder` or below it that is not unpacked beside itself."""
    return bool(_nested(folder))


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`; it becomes `folder` only if the block succeeds."""
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise invalid("folder", expected="a new or empty folder", got=folder, advice="Delete it or choose another.")
        part.mkdir(parents=True)
        yield part
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        raise unreadable_file(folder, problem=problem, advice="Make room, or choose another folder.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _unpack_into(folder: Path, archive: Path, shown: str, limits: _Limits) -> None:
    try:
        with closing(members(archive, shown)) as found:
            for member in found:
                limits.take(shown, files=1)
                _write(member, _place(folder, member.name, shown), shown, limits)
    except InputError:
        raise
    except Exception as error:  # the readers raise many kinds for a damaged archive
        if isinstance(error, OSError) and error.errno in _THE_DISK:
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise _damaged(shown, f"damaged, or of an unknown kind ({reason})") from None
    if not any(folder.iterdir()):
        raise _damaged(shown, "nothing is in it")


def _damaged(shown: str, problem: str) -> DamagedArchive:
    return DamagedArchive(str(unreadable_file(shown, problem=problem, advice=AGAIN)))


def _write(member: Member, place: Path, shown: str, limits: _Limits) -> None:
    if member.is_folder:
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with member.open() as content, open(place, "wb") as file:
        while chunk := content.read(_CHUNK):
            limits.take(shown, size=len(chunk))
            file.write(chunk)


def _place(folder: Path, name: str, shown: str) -> Path:
    """Return where a member belongs; one that would lie elsewhere than in `folder` is refused."""
    pieces = [piece for piece in re.split(r"[/\\]", name) if piece not in ("", ".")]
    has_drive = any(piece[1:2] == ":" for piece in pieces)
    if name.startswith(("/", "\\")) or ".." in pieces or has_drive:
        problem = f"{name[:100]!r} in it would be written outside the folder"
        raise unreadable_file(shown, problem=problem, advice="Do not use this archive.")
    return folder.joinpath(*pieces)


def _unpack_nested(folder: Path, shown: str, limits: _Limits, depth: int = 1) -> None:
    """Put a folder in the place of each archive in `folder`, which is ours."""
    for archive in _nested(folder):
        inner = f"{shown}: {archive.relative_to(folder)}"
        if depth > MOST_NESTED:
            problem = f"archives in archives, more than {MOST_NESTED} deep"
            raise unreadable_file(inner, problem=problem, advice="Unpack it yourself and give the folder.")
        part = archive.with_name(f".{secrets.token_hex(4)}.part")
        part.mkdir()
        _unpack_into(part, archive, inner, limits)
        _unpack_nested(part, inner, limits, depth + 1)
        archive.unlink()
        part.rename(archive if (room := _room_of(archive)).exists() else room)


def _nested(folder: Path) -> list[Path]:
    """Return the archives in `folder` that no folder of their name stands beside."""
    return [
        path
        for path in _visible(folder)
        if path.name.lower().endswith(ENDINGS) and path.is_file() and not _room_of(path).is_dir()
    ]


def _room_of(archive: Path) -> Path:
    ending = next(ending for ending in sorted(ENDINGS, key=len, reverse=True) if archive.name.lower().endswith(ending))
    return archive.with_name(archive.name[: -len(ending)] or archive.name)


def _visible(folder: Path) -> list[Path]:
    found = ((path, path.relative_to(folder).parts) for path in folder.rglob("*"))
    return sorted(path for path, parts in found if not any(part.startswith((".", "__MACOSX")) for part in parts))


def _mirror(source: Path, folder: Path) -> None:
    """Link the files of `source` into `folder`."""
    for path in _visible(source):
        twin = folder / path.relative_to(source)
        if path.is_dir() and not path.is_symlink():
            twin.mkdir()
        elif path.exists():
            _link(path.absolute(), twin)


def _link(path: Path, twin: Path) -> None:
    try:
        os.symlink(path, twin)
    except OSError:  # Windows asks for a privilege
        shutil.copyfile(path, twin)
