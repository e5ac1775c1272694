"""Reading and writing files: written under a temporary name, then renamed, so that a crash loses nothing."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transpl._utils.errors import OUT_OF_SPACE, UnreadableFile, unreadable_file

_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}\.part(\.[^.]+)?")  # names given by `replacing`
_MAX_LINKS = 40  # in a chain, as in Linux


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


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of killed processes; only where no other process can be writing."""
    for part in folder.glob(".*.part*"):
        if _TEMPORARY.fullmatch(part.name):
            part.unlink(missing_ok=True)


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


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON; raise a one-line error if the file is missing or damaged."""
    try:
        return json.loads(
            Path(path).read_text(encoding="utf-8"), parse_constant=_finite_number, parse_float=_finite_number
        )
    except FileNotFoundError:
        raise _missing(path) from None
    except (ValueError, OSError, RecursionError) as error:
        raise unreadable_file(path, problem=f"not readable as JSON ({error})", advice="Write it again.") from None


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number


def read_npz(path: str | os.PathLike[str], keys: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz, or those of `keys` that it has; raise if it is missing, damaged or pickled."""
    try:
        with open(path, "rb") as stream:  # numpy leaves a damaged file open if it opens it itself
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise unreadable_file(path, problem="a single array, not an npz", advice="Write it with numpy.savez.")
            return {key: _member(archive, key, path) for key in archive.files if keys is None or key in keys}
    except UnreadableFile:
        raise
    except FileNotFoundError:
        raise _missing(path) from None
    except Exception as error:  # numpy, zipfile and zlib raise many kinds on damaged files
        reason = " ".join(str(error).split())
        problem = f"not an npz, or damaged ({reason})"
        if "pickle" in reason:  # what numpy takes an unknown file for
            problem = "not an npz; pickled objects could run code and are not read"
        raise unreadable_file(path, problem=problem, advice="Write it again with numpy.savez.") from None


def map_npy(path: str | os.PathLike[str]) -> np.memmap:
    """Map the array of a .npy file into memory, read-only; raise if it is missing or half-written."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise _missing(path) from None
    except Exception:
        problem = "not a .npy file, or damaged"
        raise unreadable_file(path, problem=problem, advice="Write it again with numpy.save.") from None
    if not isinstance(array, np.memmap):
        array.close()
        raise unreadable_file(path, problem="several arrays, not one", advice="Write the windows with numpy.save.")
    return array


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


def _missing(path: str | os.PathLike[str]) -> UnreadableFile:
    return unreadable_file(path, problem="no such file", advice="Check the path.")


def _member(archive: Any, key: str, path: str | os.PathLike[str]) -> NDArray[Any]:
    try:
        array: NDArray[Any] = archive[key]
        return array
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        problem = f"{key} contains pickled objects, which could run code and are not read"
        advice = "Save text as such (.astype(str)), numbers, and windows of one length."
        raise unreadable_file(path, problem=problem, advice=advice) from None
