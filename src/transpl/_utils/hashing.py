"""Hashes of files, bytes and values. Digests that are stored on disk must not change with a version."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 20


def hash_bytes(pieces: Iterable[str | bytes | memoryview]) -> str:
    """Return the SHA-256 of all pieces, one after the other; text as UTF-8."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode() if isinstance(piece, str) else piece)
    return digest.hexdigest()


def hash_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's content."""
    with open(path, "rb") as stream:
        return hash_bytes(iter(lambda: stream.read(_CHUNK), b""))


def hash_json(value: Any) -> str:
    """Return the SHA-256 of plain values, the same on every machine and for every order of keys."""
    return hash_bytes([json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)])


def hash_values(*values: Any) -> str:
    """Return the SHA-256 of arrays (type, shape and content; objects by their repr) and plain values."""
    return hash_bytes(part for piece in _pieces(values) for part in (len(piece).to_bytes(8, "little"), piece))


def hash_pickle(value: Any) -> str:
    """Return the SHA-256 of anything that cloudpickle can pickle."""
    return hash_bytes([cloudpickle.dumps(value)])


def hash_window(values: NDArray[np.float32]) -> bytes:
    """Return 16 bytes that stand for a window."""
    return hashlib.blake2b(values.astype("<f4").tobytes(), digest_size=16).digest()


def _pieces(values: Iterable[Any]) -> Iterator[bytes]:
    for value in values:
        if not isinstance(value, np.ndarray):
            yield json.dumps(value, sort_keys=True).encode()
            continue
        yield f"{value.dtype.str}{value.shape}".encode()
        yield json.dumps(value.tolist(), default=repr).encode() if value.dtype.hasobject else value.tobytes()
