"""One hash for many things."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np


def digest_of(*parts: Any) -> str:
    """SHA-256 of arrays (type, shape and values; of objects what they look like) and of plain data."""
    digest = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
    return digest.hexdigest()


def _pieces(part: Any) -> Iterator[bytes]:
    if not isinstance(part, np.ndarray):
        yield json.dumps(part, sort_keys=True).encode()
        return
    yield f"{part.dtype.str}{part.shape}".encode()
    yield json.dumps(part.tolist(), default=repr).encode() if part.dtype.hasobject else part.tobytes()
