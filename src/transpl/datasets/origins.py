"""What raw files are: their name, SHA-256 and addresses, as a card lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transpl._utils.files import sha256
from transpl.datasets.recipe import RemoteFile


def archive_origin(path: Path, published: Sequence[RemoteFile] = ()) -> dict[str, Any]:
    """Describe one file; if it is a published one, by name or by hash, with its addresses."""
    found = sha256(path)
    choices = [choice for file in published for choice in file.choices]
    by_hash = [choice for choice in choices if choice.sha256 == found]
    by_name = [choice for choice in choices if choice.sha256 is None and choice.name == path.name]
    file = next(iter(by_hash + by_name), None)
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
    """Say whether the files of a card are the published ones or their alternatives, as far as hashes are known."""
    hashes = {str(file.get("name")): file.get("sha256") for file in origin}
    return len(hashes) == len(published) and all(
        any(choice.name in hashes and choice.sha256 in (None, hashes[choice.name]) for choice in file.choices)
        for file in published
    )
