"""What raw files are: their name, SHA-256 and addresses, as a card lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transpl.datasets.recipe import RemoteFile
from transpl.files import sha256


def archive_origin(path: Path, published: Sequence[RemoteFile] = ()) -> dict[str, Any]:
    """Describe one file; if it is a published one, by name or by hash, with its addresses."""
    found = sha256(path)
    file = next(
        (file for file in published if file.sha256 == found or (not file.sha256 and file.name == path.name)), None
    )
    return {
        "name": path.name if file is None else file.name,
        "sha256": found,
        "urls": [] if file is None else list(file.urls),
    }


def folder_origin(folder: Path) -> dict[str, Any]:
    """Describe a folder by one hash over the names and contents of all files in it."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{sha256(path)}  {path.relative_to(folder).as_posix()}\n".encode())
    return {"name": f"{folder.resolve().name}/", "sha256": digest.hexdigest(), "urls": []}


def is_published(origin: Sequence[Mapping[str, Any]], published: Sequence[RemoteFile]) -> bool:
    """Say whether the files of a card are the published ones, as far as their hashes are known."""
    hashes = {str(file.get("name")): file.get("sha256") for file in origin}
    return set(hashes) == {file.name for file in published} and all(
        file.sha256 in (None, hashes[file.name]) for file in published
    )
