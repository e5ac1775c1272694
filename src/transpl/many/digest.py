"""One hash for many things."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np


def digest_of(*parts: Any) -> str:
    """SHA-256 of arrays (type, shape and values; also arrays of text or of arrays) and of plain data."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.hasobject:
            digest.update(digest_of("objects", *part.tolist()).encode())
        elif isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(part.tobytes())
        else:
            digest.update(json.dumps(part, sort_keys=True).encode())
    return digest.hexdigest()
