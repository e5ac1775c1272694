"""The state of an unfinished training on disk, under the name of the exact job it belongs to."""

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
    """One file, named after its job: another job in the same folder never reads it."""

    def __init__(self, folder: Path, phase: str, fingerprint: str) -> None:
        self.path = folder / f"{phase}-{fingerprint[:16]}.ckpt"
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
            if (state["format"], state["fingerprint"]) != (_FORMAT, self.fingerprint):
                raise ValueError("another job")
        except Exception as error:  # torch.load raises many kinds for a damaged file
            problem = f"damaged checkpoint ({type(error).__name__})"
            raise unreadable(self.path, problem=problem, advice="Delete it to start anew.") from None
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
