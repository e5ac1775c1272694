"""Writing so that nothing is lost: a temporary name first, then one rename."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transpl.errors import NotReadable, unreadable

_CHUNK = 1 << 20
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
    """Yield a temporary path beside `path`; it takes `path`'s place only if the block succeeds."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=f".part{final.suffix}", dir=final.parent)
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
        _flush_to_disk(part)
        _give_default_permissions(part)
        os.replace(part, final)
    finally:
        part.unlink(missing_ok=True)


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
        raise unreadable(path, problem="no such file", advice="Check the path.") from None
    except (ValueError, OSError, RecursionError) as error:
        raise unreadable(path, problem=f"not readable as JSON ({error})", advice="Write it anew.") from None


def read_npz(path: str | os.PathLike[str], keys: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Return those of `keys` (default: all) that an npz has; a file that is absent, damaged or pickled is refused."""
    try:
        with open(path, "rb") as stream:  # numpy leaves a damaged file open if it opens it itself
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise unreadable(path, problem="a single array, not an npz", advice="Write it with numpy.savez.")
            return {key: _member(archive, key, path) for key in archive.files if keys is None or key in keys}
    except NotReadable:
        raise
    except FileNotFoundError:
        raise unreadable(path, problem="no such file", advice="Check the path.") from None
    except _DAMAGE as error:
        raise unreadable(path, problem=_npz_problem(error), advice="Write it anew with numpy.savez.") from None


def _member(archive: Any, key: str, path: str | os.PathLike[str]) -> NDArray[Any]:
    try:
        array: NDArray[Any] = archive[key]
        return array
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        problem = f"{key} contains pickled objects, which could run code and are not read"
        advice = "Save text as such (.astype(str)), numbers, and windows of one length."
        raise unreadable(path, problem=problem, advice=advice) from None


def map_npy(path: str | os.PathLike[str]) -> np.memmap:
    """Return the array of a .npy file as a read-only memory map; a file that is absent or half-written is refused."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise unreadable(path, problem="no such file", advice="Check the path.") from None
    except _DAMAGE:
        raise unreadable(path, problem="not a .npy file, or damaged", advice="Write it anew with numpy.save.") from None
    if not isinstance(array, np.memmap):
        array.close()
        raise unreadable(path, problem="several arrays, not one", advice="Write the windows with numpy.save.")
    return array


def new_npy(path: str | os.PathLike[str], shape: tuple[int, ...], dtype: DTypeLike) -> None:
    """Make a .npy file of zeros; it takes room on the disk only as rows are written to it."""
    np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def write_rows(path: str | os.PathLike[str], first: int, rows: NDArray[Any]) -> None:
    """Put rows into an existing .npy file from row `first` on; they are on the disk when this returns."""
    table = map_npy(path)
    with open(path, "rb+") as stream:  # not through the map: a full disk then raises OSError instead of killing us
        stream.seek(table.offset + first * table[:1].nbytes)
        stream.write(np.ascontiguousarray(rows, table.dtype).tobytes())
        stream.flush()
        os.fsync(stream.fileno())


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


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
