"""The state of an unfinished training on disk, tied to the exact job it belongs to."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch

from transpl.errors import unreadable
from transpl.files import replacing
from transpl.training.rows import Rows

_FORMAT = "transpl-checkpoint-1"


class Checkpoint:
    """One file; `load` returns nothing if there is none, and refuses a file of another job."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self.fingerprint = fingerprint

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file by this state."""
        with replacing(self.path) as part:
            torch.save({"format": _FORMAT, "fingerprint": self.fingerprint, **state}, part)

    def load(self) -> dict[str, Any] | None:
        """Return the stored state, or None if there is no file."""
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
            belongs = state["format"] == _FORMAT and state["fingerprint"] == self.fingerprint
        except Exception as error:  # torch.load raises many kinds for a damaged file
            problem = f"damaged checkpoint ({type(error).__name__})"
            raise unreadable(self.path, problem=problem, advice="Delete it to start anew.") from None
        if not belongs:
            problem = "a checkpoint of other data or settings"
            raise unreadable(self.path, problem=problem, advice="Delete it, or choose another checkpoint_dir.")
        return dict(state)


def fingerprint(*parts: object, rows: list[Rows]) -> str:
    """Return a digest of settings (by their repr) and of every value of the data."""
    digest = hashlib.sha256(repr(parts).encode())
    for group in rows:
        for name in sorted(group):
            tensor = group[name].contiguous()
            digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
