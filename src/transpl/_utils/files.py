"""Reading and writing files: written under a temporary name, then renamed, so that a crash loses nothing."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transpl._utils.errors import OUT_OF_SPACE, InputError, first_repeated, unreadable_file

_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}\.part(\.[^.]+)?")  # names given by `replacing`
_MAX_LINKS = 40  # in a chain, as in Linux
_NPY = b"\x93NUMPY"
_EXPANSION = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}  # bytes that a byte can stand for; numpy uses no other
_MAX_AXES = 32  # numpy's limit before version 2


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place only if the block succeeds.

    A link stays, and its target is replaced. A device or pipe is written to after the block has succeeded.
    """
    if is_stream(Path(path)):
        with naming(path), _temporary(Path(tempfile.gettempdir()), Path(path).name, mode=0o600) as part:
            yield part
            _copy_to_stream(part, Path(path))
        return
    final = Path(os.path.realpath(path))
    final.parent.mkdir(parents=True, exist_ok=True)
    with naming(final), _temporary(final.parent, final.name) as part:
        yield part
        with open(part, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(part, final)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put `path` into errors of the disk that name no file, or only our temporary one."""
    try:
        yield
    except OSError as error:
        full = error.filename is None and error.errno in OUT_OF_SPACE
        if full or _TEMPORARY.fullmatch(os.path.basename(str(error.filename))):
            error.filename = os.fspath(path)
        raise


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove temporary files that killed processes left of files whose names begin with `name`.

    Call it only where no other process can be writing. What cannot be removed stays.
    """
    for part in folder.glob(f".{name}*.part*"):
        if _TEMPORARY.fullmatch(part.name):
            with suppress(OSError):
                part.unlink()


def is_stream(path: Path) -> bool:
    """Tell whether a path can be written to but not replaced: a terminal, a pipe, /dev/null, /dev/stdout."""
    return _own_descriptor(path) is not None or (path.exists() and not path.is_file() and not path.is_dir())


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` atomically, as UTF-8."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as readable JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def third_party(path: str | os.PathLike[str], problem: str, advice: str) -> Iterator[None]:
    """Turn any exception that a library raises on a file into a one-line error.

    Wrap only the library's call, so that our own bugs stay visible. The file must be a regular one.

    Parameters
    ----------
    path : path
    problem : str
        What the file is then said to be; the library's words follow in brackets.
    advice : str
    """
    require_regular(path)
    try:
        yield
    except (InputError, ImportError):  # an absent library is not the file's fault
        raise
    except MemoryError:
        found = "it needs more memory than there is"
        raise unreadable_file(path, problem=found, advice="Check the file, or make it smaller.") from None
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
            problem, reason = "cannot be read", error.strerror.lower()
        else:
            reason = " ".join(str(error).split()) or type(error).__name__
        raise unreadable_file(path, problem=f"{problem} ({reason})", advice=advice) from None


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise unless there is a regular file: a pipe or a device may keep its reader waiting, and is read only once."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        if isinstance(error, PermissionError):
            raise unreadable_file(path, problem="it may not be read", advice="Check its permissions.") from None
        raise unreadable_file(path, problem="no such file", advice="Check the path.") from None
    if stat.S_ISDIR(mode):
        raise unreadable_file(path, problem="a folder, not a file", advice="Name a file in it.")
    if not stat.S_ISREG(mode):
        problem = "a pipe or a device, not a file"
        raise unreadable_file(path, problem=problem, advice="Write it to a file first, and name that file.")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON; raise a one-line error if the file is missing or damaged."""
    with third_party(path, "not readable as JSON", "Write it again."):
        text = Path(path).read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_finite_number, parse_float=_finite_number, parse_int=_whole_number)


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def _whole_number(text: str) -> int:
    _finite_number(text)  # a double holds no more
    return int(text)


def read_npz(path: str | os.PathLike[str], keys: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz, or those of `keys` that it has; raise if it is missing, damaged or pickled.

    Nothing else in the file is unpacked.
    """
    with _npz_error(path), open(path, "rb") as stream:  # an archive left open would keep the file open
        if stream.read(len(_NPY)) == _NPY:
            raise unreadable_file(path, problem="a single array, not an npz", advice="Write it with numpy.savez.")
        with zipfile.ZipFile(stream) as archive:
            if twice := first_repeated(archive.namelist()):
                raise ValueError(f"{twice} twice")
            members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            wanted = [key for key in members if keys is None or key in keys]
            return {key: _read_member(archive, key, members[key], path) for key in wanted}


def npz_keys(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the arrays in an npz."""
    with _npz_error(path), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def map_npy(path: str | os.PathLike[str]) -> np.memmap:
    """Map the array of a .npy file into memory, read-only; raise if it is missing or half-written."""
    with third_party(path, "not a .npy file, or damaged", "Write it again with numpy.save."):
        with open(path, "rb") as stream:
            if zipfile.is_zipfile(stream):
                problem = "several arrays, not one"
                raise unreadable_file(path, problem=problem, advice="Write the windows with numpy.save.")
            stream.seek(0)
            shape, dtype = read_npy_header(stream)
            held = os.stat(path).st_size - stream.tell()
        if dtype.itemsize == 0 or prod(shape) * dtype.itemsize > held:  # numpy may divide by zero, which is the end
            raise ValueError(f"{held} bytes, not those of {dtype} of shape {shape}")
        array: np.memmap = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the header of a .npy file up to the first byte of the array; return shape and type, which may be wrong."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):  # 3.0 has fields with names that are not ASCII
        raise ValueError(f"a .npy of version {'.'.join(map(str, version))}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if len(shape) > _MAX_AXES or any(size < 0 for size in shape):
        raise ValueError(f"an array of shape {shape}")
    return shape, dtype


def new_npy(path: str | os.PathLike[str], shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Create a .npy file of zeros that takes disk space only as rows are written."""
    with naming(path):
        np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def write_rows(path: str | os.PathLike[str], first: int, rows: NDArray[Any]) -> None:
    """Write rows into an existing .npy file from row `first` on, and flush them to the disk."""
    table = map_npy(path)
    # Not through the map: there, a full disk would kill the process instead of raising OSError.
    with naming(path), open(path, "rb+") as stream:
        stream.seek(table.offset + first * table[:1].nbytes)
        stream.write(np.ascontiguousarray(rows, table.dtype).tobytes())
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _temporary(folder: Path, name: str, mode: int = 0o666) -> Iterator[Path]:
    """Yield an empty file, and remove it afterwards unless it has been renamed."""
    # Not tempfile.mkstemp: its files are private, and the umask cannot be read without changing it for all threads.
    part = folder / f".{name}.{secrets.token_hex(4)}.part{Path(name).suffix}"
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _own_descriptor(path: Path) -> int | None:
    """Return the open file of this process that a path such as /dev/stdout or /dev/fd/3 stands for."""
    homes = {os.path.realpath(home) for home in ("/proc/self/fd", "/dev/fd")}
    for _ in range(_MAX_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) in homes:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _copy_to_stream(part: Path, stream: Path) -> None:
    descriptor = _own_descriptor(stream)
    if descriptor is None:
        target = os.open(stream, os.O_WRONLY)
    else:  # opening it by name would empty a log that the shell appends to
        sys.stdout.flush()  # earlier output comes first
        target = os.dup(descriptor)
    with part.open("rb") as source, os.fdopen(target, "wb") as sink:
        shutil.copyfileobj(source, sink)


def _npz_error(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    return third_party(path, "not an npz, or damaged", "Write it again with numpy.savez.")


def _read_member(archive: zipfile.ZipFile, key: str, member: zipfile.ZipInfo, path: Any) -> NDArray[Any]:
    """Read an array of an npz; raise before any memory is taken if its bytes cannot be those of its shape."""
    if member.compress_type not in _EXPANSION:
        raise ValueError(f"{key} is compressed as numpy never does")
    stored = min(member.compress_size, os.stat(path).st_size)
    if member.file_size > _EXPANSION[member.compress_type] * stored:
        raise ValueError(f"{key} cannot hold {member.file_size} bytes")
    with archive.open(member) as stream:
        shape, dtype = read_npy_header(stream)
        held = member.file_size - stream.tell()
    if dtype.hasobject:
        problem = f"{key} contains pickled objects, which could run code and are not read"
        advice = "Save text as such (.astype(str)), numbers, and windows of one length."
        raise unreadable_file(path, problem=problem, advice=advice)
    if prod(shape) * dtype.itemsize != held:
        raise ValueError(f"{key} holds {held} bytes, not those of shape {shape}")
    with archive.open(member) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array
