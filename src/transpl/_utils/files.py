"""Writing so that nothing is lost: a temporary name first, then one rename."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transpl._utils.errors import OUT_OF_SPACE, UnreadableFile, unreadable_file

_CHUNK = 1 << 20
_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}\.part(\.[^.]+)?")  # the names that `replacing` gives
_MOST_LINKS = 40  # in a chain, as Linux has it
_DAMAGE = (  # what numpy, zipfile and zlib raise on files that are damaged or not npz
    TypeError,
    AttributeError,
    ValueError,
    KeyError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes `path`'s place only if the block succeeds.

    A link stays, and what it points to is replaced. A device or a pipe is written to, once the block has succeeded.
    """
    if is_stream(Path(path)):
        with naming(path), _temporary(Path(tempfile.gettempdir()), Path(path).name) as part:
            yield part
            _pour(part, Path(path))
        return
    final = Path(os.path.realpath(path))
    final.parent.mkdir(parents=True, exist_ok=True)
    with naming(final), _temporary(final.parent, final.name) as part:
        yield part
        _flush_to_disk(part)
        _give_default_permissions(part)
        os.replace(part, final)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an error of the disk say which file it was about: a failed write does not know, or knows a temporary name."""
    try:
        yield
    except OSError as error:
        full = error.filename is None and error.errno in OUT_OF_SPACE
        if full or _TEMPORARY.fullmatch(os.path.basename(str(error.filename))):
            error.filename = os.fspath(path)
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of writers that were killed; only where nobody else can be writing."""
    for part in folder.glob(".*.part*"):
        if _TEMPORARY.fullmatch(part.name):
            part.unlink(missing_ok=True)


def is_stream(path: Path) -> bool:
    """True for what can be written to, but not be replaced: a terminal, /dev/null, a pipe, /dev/stdout."""
    return _own_descriptor(path) is not None or (path.exists() and not path.is_file() and not path.is_dir())


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` atomically, as UTF-8."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as readable JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON; a missing or damaged file gets a one-line error."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise unreadable_file(path, problem="no such file", advice="Check the path.") from None
    except (ValueError, OSError, RecursionError) as error:
        raise unreadable_file(path, problem=f"not readable as JSON ({error})", advice="Write it anew.") from None


def read_npz(path: str | os.PathLike[str], keys: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return those of `keys` (default: all) that an npz has; a file that is absent, damaged or pickled is refused."""
    try:
        with open(path, "rb") as stream:  # numpy leaves a damaged file open if it opens it itself
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise unreadable_file(path, problem="a single array, not an npz", advice="Write it with numpy.savez.")
            return {key: _member(archive, key, path) for key in archive.files if keys is None or key in keys}
    except UnreadableFile:
        raise
    except FileNotFoundError:
        raise unreadable_file(path, problem="no such file", advice="Check the path.") from None
    except _DAMAGE as error:
        raise unreadable_file(path, problem=_npz_problem(error), advice="Write it anew with numpy.savez.") from None


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


def map_npy(path: str | os.PathLike[str]) -> np.memmap:
    """Return the array of a .npy file as a read-only memory map; a file that is absent or half-written is refused."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise unreadable_file(path, problem="no such file", advice="Check the path.") from None
    except _DAMAGE:
        raise unreadable_file(
            path, problem="not a .npy file, or damaged", advice="Write it anew with numpy.save."
        ) from None
    if not isinstance(array, np.memmap):
        array.close()
        raise unreadable_file(path, problem="several arrays, not one", advice="Write the windows with numpy.save.")
    return array


def new_npy(path: str | os.PathLike[str], shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Make a .npy file of zeros; it takes room on the disk only as rows are written to it."""
    with naming(path):
        np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def write_rows(path: str | os.PathLike[str], first: int, rows: NDArray[Any]) -> None:
    """Put rows into an existing .npy file from row `first` on; they are on the disk when this returns."""
    table = map_npy(path)
    # Not through the map: a full disk then raises OSError instead of killing us.
    with naming(path), open(path, "rb+") as stream:
        stream.seek(table.offset + first * table[:1].nbytes)
        stream.write(np.ascontiguousarray(rows, table.dtype).tobytes())
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _temporary(folder: Path, name: str) -> Iterator[Path]:
    """An empty file that is gone afterwards, unless it was given another name."""
    descriptor, made = tempfile.mkstemp(prefix=f".{name}.", suffix=f".part{Path(name).suffix}", dir=folder)
    os.close(descriptor)
    part = Path(made)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def _own_descriptor(path: Path) -> int | None:
    """Which open file of this process a path such as /dev/stdout or /dev/fd/3 means."""
    homes = {os.path.realpath(home) for home in ("/proc/self/fd", "/dev/fd")}
    for _ in range(_MOST_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) in homes:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _pour(part: Path, stream: Path) -> None:
    descriptor = _own_descriptor(stream)
    if descriptor is None:
        target = os.open(stream, os.O_WRONLY)
    else:  # not by its name: a log that the shell appends to would be emptied
        sys.stdout.flush()  # what was said before comes before
        target = os.dup(descriptor)
    with part.open("rb") as source, os.fdopen(target, "wb") as sink:
        shutil.copyfileobj(source, sink, _CHUNK)


def _flush_to_disk(path: Path) -> None:
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


def _give_default_permissions(path: Path) -> None:
    # mkstemp makes files private; a result should be as readable as any file the user creates.
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _npz_problem(error: BaseException) -> str:
    reason = " ".join(str(error).split())
    if "pickle" in reason:  # numpy's guess at what it does not know
        return "not an npz; pickled objects could run code and are not read"
    return f"not an npz, or damaged ({reason})"
