"""What an archive holds, one member after the other: zip, tar and tar.gz, told apart by content and not by name.

The readers of the standard library forgive more than a data set can bear: a tar whose header is damaged ends there
without a word, entries of a zip get lost behind a wrong length, and a gzip's checksum is compared only by who reads to
the very end. Here all of that is an error.
"""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from transpl._utils.errors import unreadable_file

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
AGAIN = "Download it again."
_ZIP, _GZIP = b"PK", b"\x1f\x8b"
_ENCRYPTED = 0x1
_LONGEST_END = 22 + 0xFFFF  # the record at the end of a zip, with its comment
_LONG_NAMES = (b"x", b"g", b"X", b"L", b"K")  # tar entries that hold the name of the next one; read as a whole
_LONGEST_NAME = 1 << 20
_MOST_PADDING = 64 << 20
_CHUNK = 1 << 20


class Member(NamedTuple):
    """A file or folder in an archive. Its name is as written there and may be anything."""

    name: str
    is_folder: bool
    open: Callable[[], IO[bytes]]


def is_archive_as_named(path: Path, name: str) -> bool:
    """Say whether the file looks like the kind of archive that `name` ends in, if it ends in one."""
    ending = name.lower()
    with open(path, "rb") as stream:
        start = stream.read(2)
    if ending.endswith(".zip"):
        return start == _ZIP and zipfile.is_zipfile(path)
    if ending.endswith((".gz", ".tgz")):
        return start == _GZIP
    return not ending.endswith(".tar") or tarfile.is_tarfile(path)


def members(archive: Path, shown: str) -> Generator[Member]:
    """Yield what is in `archive`, which messages call `shown`; each must be read before the next.

    Only what members may not be is refused here. A damaged archive raises whatever its reader raises.
    """
    with open(archive, "rb") as stream:
        start = stream.read(2)
        stream.seek(0)
        if start == _ZIP:
            yield from _zip_members(stream, shown)
        elif start == _GZIP:
            with gzip.GzipFile(fileobj=stream) as content:
                yield from _tar_members(content, shown)
        else:
            yield from _tar_members(stream, shown)


def _zip_members(stream: IO[bytes], shown: str) -> Iterator[Member]:
    with zipfile.ZipFile(stream) as archive:
        for info in _directory(archive, stream):
            if info.flag_bits & _ENCRYPTED:
                raise unreadable_file(
                    shown, problem="it is encrypted", advice="Unpack it yourself and give the folder."
                )
            kind = stat.S_IFMT(info.external_attr >> 16)  # 0 where no Unix has written it
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _neither_file_nor_folder(shown, info.filename)
            yield Member(info.filename, info.is_dir(), partial(archive.open, info))


def _directory(archive: zipfile.ZipFile, stream: IO[bytes]) -> list[zipfile.ZipInfo]:
    """Return what the zip holds; entries that got lost, or bytes before the first, are damage."""
    found = archive.infolist()
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size - _LONGEST_END))
    tail = stream.read()
    (announced,) = struct.unpack_from("<H", tail, tail.rfind(b"PK\x05\x06") + 10)
    if announced not in (len(found) % 0x10000, 0xFFFF):  # the latter means "see elsewhere"
        raise zipfile.BadZipFile(f"{len(found)} entries of {announced}")
    if found and min(info.header_offset for info in found) > 0:
        raise zipfile.BadZipFile("it does not begin with its first entry")
    return found


def _tar_members(stream: Any, shown: str) -> Iterator[Member]:
    with closing(_open_tar(stream)) as archive:
        for info in archive:
            if not (info.isdir() or info.isreg()):
                raise _neither_file_nor_folder(shown, info.name)
            yield Member(info.name, info.isdir(), partial(_content, archive, info))
        _read_to_the_end(stream)


def _open_tar(stream: Any) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=stream, mode="r:", tarinfo=_StrictHeader)
    except tarfile.TarError:
        raise tarfile.ReadError(f"not a whole {', '.join(ENDINGS)}") from None


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(info)
    if content is None or info.size < 0:
        raise tarfile.ReadError(f"no content for {info.name!r}")
    return content


def _read_to_the_end(stream: Any) -> None:
    """Have the checksum compared, which comes after the padding."""
    left = _MOST_PADDING
    while chunk := stream.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise tarfile.ReadError("it goes on long after its end")


class _StrictHeader(tarfile.TarInfo):
    """A tar header for which damage is damage, and not the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if len(buf) == tarfile.BLOCKSIZE == buf.count(0):
            return super().frombuf(buf, encoding, errors)  # the end; it raises what tarfile expects then
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error} where a member or the end should be") from None
        if header.size < 0 or (header.type in _LONG_NAMES and header.size > _LONGEST_NAME):
            raise tarfile.ReadError(f"a member of {header.size} bytes")
        return header


def _neither_file_nor_folder(shown: str, name: str) -> Exception:
    problem = f"{name[:100]!r} in it is a link or a device, not a file"
    return unreadable_file(shown, problem=problem, advice="Unpack it yourself, if you trust it, and give the folder.")
