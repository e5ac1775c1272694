"""The state of an unfinished training on disk, under the name of the exact job it belongs to."""

from __future__ import annotations

import hashlib
import io
import logging
from pathlib import Path
from typing import Any

import torch

from transpl import __version__
from transpl._utils.errors import unreadable_file
from transpl._utils.files import replacing
from transpl.nn.rows import Rows

_FORMAT = "transpl-checkpoint-3"

_log = logging.getLogger(__name__)


class Checkpoint:
    """One file, named after its job: another job in the same folder never reads it.

    Another version of this package or of torch may compute otherwise: what it began is not gone on with.
    """

    def __init__(self, folder: Path, phase: str, fingerprint: str) -> None:
        self.path = folder / f"{phase}-{fingerprint[:16]}.ckpt"
        self.fingerprint = fingerprint

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file by this state."""
        buffer = io.BytesIO()  # torch does not say that a disk is full, but that it is at another position
        torch.save({"format": _FORMAT, "versions": versions(), "fingerprint": self.fingerprint, **state}, buffer)
        with replacing(self.path) as part:
            part.write_bytes(buffer.getbuffer())

    def load(self) -> dict[str, Any] | None:
        """Return the stored state, or None if there is no file, or one that another version wrote."""
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
            ours = (state["format"], state.get("versions")) == (_FORMAT, versions())
            if state["fingerprint"] != self.fingerprint:
                raise ValueError("another job")
        except Exception as error:  # torch.load raises many kinds for a damaged file
            problem = f"damaged checkpoint ({type(error).__name__})"
            raise unreadable_file(self.path, problem=problem, advice="Delete it to start anew.") from None
        if not ours:
            _log.warning("%s: written by another version of transpl or torch; training begins anew.", self.path)
            return None
        return dict(state)


def versions() -> dict[str, str]:
    """Of what decides how a training goes on."""
    return {"transpl": __version__, "torch": str(torch.__version__)}


def fingerprint(*parts: object, rows: list[Rows]) -> str:
    """Return a digest of settings (by their repr) and of every value of the data."""
    digest = hashlib.sha256(repr(parts).encode())
    for group in rows:
        for name in sorted(group):
            tensor = group[name].contiguous()
            digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
            digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
