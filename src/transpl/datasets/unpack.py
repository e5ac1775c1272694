"""Unpacking downloaded archives: zip, tar and tar.gz, also inside one another, all of it or nothing.

Archives are untrusted input. Files are written only below the target folder, links and devices are not created, and
size and number of files are limited. `zipfile` and `tarfile` do the reading, but overlook damage that loses files:
`tarfile` takes a damaged header for the end of the archive, `zipfile` skips the entries behind a wrong length in its
directory, and `gzip` compares its checksum only at the very end. Here all of that is an error.

A nested archive is replaced by a folder of its name without the ending. If that folder exists already, the archive
counts as unpacked and is left alone. Hidden files and macOS's `__MACOSX` are not searched for archives.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import secrets
import shutil
import struct
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from transpl._utils.errors import InputError, UnreadableFile, invalid, unreadable_file
from transpl._utils.files import require_regular

MAX_BYTES = 64 << 30
MAX_FILES = 500_000
MAX_DEPTH = 3  # of archives in archives
MAX_PADDING = 64 << 20  # behind the end of a tar
_ENDINGS = (".tar.gz", ".zip", ".tar", ".tgz")
_IGNORED = (".", "__MACOSX")  # what the names of ignored files and folders start with
_ZIP, _GZIP = b"PK", b"\x1f\x8b"
_LONG_NAMES = (b"x", b"g", b"X", b"L", b"K")  # tar entries that hold the name of the next one, which is kept in memory
_MAX_NAME = 1 << 20
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_UNPACK_YOURSELF = "Unpack it yourself, if you trust it, and give the folder."


class DamagedArchive(UnreadableFile):
    """The archive itself is damaged; neither the disk nor a limit is the problem."""


@dataclass
class _Budget:
    """How much may still be written; an archive shares it with those inside it."""

    bytes: int
    files: int

    def spend(self, shown: str, size: int) -> None:
        self.bytes, self.files = self.bytes - size, self.files - 1
        if self.bytes < 0 or self.files < 0:
            limit = "bytes" if self.bytes < 0 else "files"
            problem = f"it unpacks to more {limit} than allowed"
            raise unreadable_file(shown, problem=problem, advice=_UNPACK_YOURSELF)


def unpacked(source: Path, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> Path:
    """Unpack `source` into the new folder `folder`, which appears once everything is there.

    `source` is an archive, or a folder that contains archives besides plain files. Such a folder is only read: its
    plain files are linked (copied where links are not possible) into `folder`.
    """
    source, folder, shown = Path(source), Path(folder), str(source)
    if not source.is_dir():
        require_regular(source)
    if not os.access(source, os.R_OK):
        raise unreadable_file(source, problem="it may not be read", advice="Change its permissions.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise invalid("folder", expected="a new or empty folder", got=folder, advice="Delete it or choose another.")
    budget = _Budget(max_bytes, max_files)
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        part.mkdir(parents=True)
        if source.is_dir():
            _link_files(source, part)
        else:
            _extract(source, part, shown, budget)
        _extract_nested(part, shown, budget)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        raise unreadable_file(folder, problem=problem, advice="Make room, or choose another folder.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def holds_archives(folder: Path) -> bool:
    """Tell whether `folder` contains an archive that is not unpacked beside itself."""
    return bool(_nested_archives(folder))


def is_archive_as_named(path: Path, name: str) -> bool:
    """Tell whether the file looks like the kind of archive that `name` ends in; other endings are always right."""
    ending = name.lower()
    with open(path, "rb") as stream:
        start = stream.read(2)
    if ending.endswith(".zip"):
        return start == _ZIP and zipfile.is_zipfile(path)
    if ending.endswith((".gz", ".tgz")):
        return start == _GZIP
    return not ending.endswith(".tar") or tarfile.is_tarfile(path)


def _extract(archive: Path, folder: Path, shown: str, budget: _Budget) -> None:
    """Extract one archive, whose kind its first bytes tell; messages call it `shown`."""
    try:
        with open(archive, "rb") as stream:
            start = stream.read(2)
            stream.seek(0)
            if start == _ZIP:
                _extract_zip(stream, folder, shown, budget)
            elif start == _GZIP:
                with gzip.GzipFile(fileobj=stream) as content:
                    _extract_tar(content, folder, shown, budget)
            else:
                _extract_tar(stream, folder, shown, budget)
    except InputError:
        raise
    except Exception as error:  # damage makes the readers raise all kinds of errors
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            raise
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise _damaged(shown, f"damaged, or of an unknown kind ({reason})") from None
    if not any(folder.iterdir()):
        raise _damaged(shown, "nothing is in it")


def _extract_zip(stream: IO[bytes], folder: Path, shown: str, budget: _Budget) -> None:
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        stream.seek(max(0, stream.seek(0, io.SEEK_END) - 22 - 0xFFFF))  # the last record and its comment
        tail = stream.read()
        (announced,) = struct.unpack_from("<H", tail, tail.rfind(b"PK\x05\x06") + 10)
        if announced not in (len(entries) % 0x10000, 0xFFFF):  # 0xFFFF: too many for this field
            raise zipfile.BadZipFile(f"{len(entries)} entries of {announced}")
        if entries and min(entry.header_offset for entry in entries) > 0:
            raise zipfile.BadZipFile("it does not begin with its first entry")
        for entry in entries:
            if entry.flag_bits & 1:
                raise unreadable_file(shown, problem="it is encrypted", advice=_UNPACK_YOURSELF)
            entry.filename = _name_inside(entry.filename, shown)
            budget.spend(shown, entry.file_size)  # zipfile never reads more than this
            archive.extract(entry, folder)  # makes files and folders only


def _extract_tar(stream: Any, folder: Path, shown: str, budget: _Budget) -> None:
    with tarfile.open(fileobj=stream, mode="r:", tarinfo=_StrictHeader) as archive:
        for entry in archive:
            if not (entry.isdir() or entry.isreg()):
                problem = f"{entry.name[:100]!r} in it is a link or a device, not a file"
                raise unreadable_file(shown, problem=problem, advice=_UNPACK_YOURSELF)
            entry.name = _name_inside(entry.name, shown)
            budget.spend(shown, entry.size)
            archive.extract(entry, folder, filter=_plain_file)
        padding = 0
        while chunk := stream.read(1 << 20):  # to the end, so that gzip compares its checksum
            padding += len(chunk)
            if padding > MAX_PADDING:
                raise tarfile.ReadError("it goes on long after its end")


def _plain_file(entry: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """tarfile's own filter for data, without the permissions: files are as readable as any other new file."""
    return tarfile.data_filter(entry, folder).replace(mode=None, deep=False)  # type: ignore[arg-type]


class _StrictHeader(tarfile.TarInfo):
    """A tar header that reports damage instead of ending the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE == buf.count(0):
                raise  # the regular end
            raise tarfile.ReadError(f"{error} where a member or the end should be") from None
        if header.size < 0 or (header.type in _LONG_NAMES and header.size > _MAX_NAME):
            raise tarfile.ReadError(f"a member of {header.size} bytes")
        return header


def _name_inside(name: str, shown: str) -> str:
    """Return a member's name with forward slashes; one that points out of the folder is refused."""
    plain = name.replace("\\", "/")
    parts = plain.split("/")
    if plain.startswith("/") or ".." in parts or any(part[1:2] == ":" for part in parts):
        problem = f"{name[:100]!r} in it would be written outside the folder"
        raise unreadable_file(shown, problem=problem, advice="Do not use this archive.")
    return plain


def _damaged(shown: str, problem: str) -> DamagedArchive:
    return DamagedArchive(str(unreadable_file(shown, problem=problem, advice="Download it again.")))


def _extract_nested(folder: Path, shown: str, budget: _Budget, depth: int = 1) -> None:
    """Replace each archive in `folder` by a folder with its content."""
    for archive in _nested_archives(folder):
        inner = f"{shown}: {archive.relative_to(folder)}"
        if depth > MAX_DEPTH:
            problem = f"archives in archives, more than {MAX_DEPTH} deep"
            raise unreadable_file(inner, problem=problem, advice=_UNPACK_YOURSELF)
        part = archive.with_name(f".{secrets.token_hex(4)}.part")
        part.mkdir()
        _extract(archive, part, inner, budget)
        _extract_nested(part, inner, budget, depth + 1)
        archive.unlink()
        place = _folder_for(archive)
        part.rename(archive if place.exists() else place)


def _nested_archives(folder: Path) -> list[Path]:
    return [
        path
        for path in _visible(folder)
        if path.name.lower().endswith(_ENDINGS) and path.is_file() and not _folder_for(path).is_dir()
    ]


def _visible(folder: Path) -> list[Path]:
    found = ((path, path.relative_to(folder).parts) for path in folder.rglob("*"))
    return sorted(path for path, parts in found if not any(part.startswith(_IGNORED) for part in parts))


def _folder_for(archive: Path) -> Path:
    ending = next(ending for ending in _ENDINGS if archive.name.lower().endswith(ending))
    return archive.with_name(archive.name[: -len(ending)] or archive.name)


def _link_files(source: Path, folder: Path) -> None:
    """Link the files below `source` into new folders below `folder`, which are writable even if `source` is not."""
    for path in _visible(source):
        twin = folder / path.relative_to(source)
        if path.is_dir() and not path.is_symlink():
            twin.mkdir()
        elif path.exists():
            try:
                os.symlink(path.absolute(), twin)
            except OSError:  # Windows asks for a privilege
                shutil.copyfile(path, twin)
