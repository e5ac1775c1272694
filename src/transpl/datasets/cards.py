"""The card of a prepared data set: a JSON beside the npz that says where it is from, how it was made and what is in it.

It holds the SHA-256 of the npz, so it can be told whether the two belong together.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from transpl._utils.errors import InputError, UnreadableFile, invalid, unreadable_file
from transpl._utils.files import read_json, read_npz, sha256, write_json
from transpl.datasets.base import TEST, TRAIN
from transpl.datasets.prepared import KEYS, as_names

FORMAT = "transpl-card-1"
SPLITS = {"train": TRAIN, "test": TEST}
_FIELDS = {
    "format": str,
    "name": str,
    "title": str,
    "homepage": str,
    "licence": str,
    "citation": str,
    "made_by": str,
    "transpl_version": str,
    "npz_sha256": str,
    "origin": list,
    "rule": str,
    "options": dict,
    "normalise": str,
    "notes": list,
    "windows": int,
    "length": int,
    "channels": list,
    "classes": list,
    "domain_names": dict,
    "counts": dict,
}
_AGAIN = "Prepare the data set again, or delete the card."


class Provenance(NamedTuple):
    """What a card says that is not in the npz.

    made_by : "prepare" (a public set), "import" (another project's files) or "make" (a user's own recordings)
    origin : for each raw file its name, SHA-256 and urls
    default_rule : the recipe's rule without options, if `rule` is another; if it changes, the set is made again
    """

    made_by: str
    title: str
    rule: str
    origin: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any]
    notes: Sequence[str] = ()
    normalise: str = "none"
    homepage: str = ""
    licence: str = "unknown"
    citation: str = ""
    default_rule: str = ""


def card_path(npz: Path) -> Path:
    """Return where the card of a prepared file is."""
    return npz.with_name(f"{npz.stem}.json")


def make_card(npz: Path, provenance: Provenance) -> dict[str, Any]:
    """Describe a prepared file; counts and hash are taken from the file itself."""
    from transpl import __version__

    return {
        "format": FORMAT,
        "name": npz.stem,
        **provenance._asdict(),
        "origin": [dict(file) for file in provenance.origin],
        "options": dict(provenance.options),
        "notes": list(provenance.notes),
        "transpl_version": __version__,
        "npz_sha256": sha256(npz),
        **contents(npz),
    }


def publish(staged: Path, npz: Path, provenance: Provenance) -> dict[str, Any]:
    """Move a finished npz of the same name and disk to its place, and write its card.

    The old card goes first and the new one comes last: at no moment does a card lie beside an npz of another content.
    """
    card = make_card(staged, provenance)
    card_path(npz).unlink(missing_ok=True)
    os.replace(staged, npz)
    write_json(card_path(npz), card)
    return card


def read_card(npz: Path) -> dict[str, Any]:
    """Read the card of a prepared file; one that is damaged or of another version is refused."""
    path = card_path(npz)
    card = read_json(path)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise unreadable_file(path, problem=f"not a card ({FORMAT})", advice=_AGAIN)
    bad = [key for key, kind in _FIELDS.items() if not isinstance(card.get(key), kind)]
    if bad:
        raise unreadable_file(path, problem=f"a card without sound {', '.join(bad)}", advice=_AGAIN)
    _check_counts(path, card)
    return card


def check_card(npz: Path, card: Mapping[str, Any]) -> None:
    """Raise unless `card` was written for this very npz."""
    if not npz.is_file():
        raise unreadable_file(npz, problem="no such file, though it has a card", advice=_AGAIN)
    found = sha256(npz)
    if found != card["npz_sha256"]:
        problem = f"not the file its card was written for (SHA-256 {found[:12]}..., not {card['npz_sha256'][:12]}...)"
        raise unreadable_file(npz, problem=problem, advice=_AGAIN)


def card_or_contents(npz: Path) -> dict[str, Any]:
    """Return the checked card, or, of a file that has none, what the file itself tells."""
    if card_path(npz).is_file():
        card = read_card(npz)
        check_card(npz, card)
        return card
    empty: dict[str, Any] = {key: kind() for key, kind in _FIELDS.items()}
    notes = ["No card beside the file: where it is from is not known."]
    return {**empty, "name": npz.stem, "notes": notes, "npz_sha256": sha256(npz), **contents(npz)}


def refuse_second_scaling(npz: Path, rule: str) -> None:
    """Raise if the card says that the file is scaled already and `rule` would scale it again."""
    if rule == "none" or not card_path(npz).is_file():
        return
    before = read_card(npz)["normalise"]
    if before != "none":
        expected = f"'none', because {npz.name} was prepared with {before!r}"
        raise invalid("normalise", expected=expected, got=repr(rule), advice="Prepare it again without normalisation.")


def contents(npz: Path) -> dict[str, Any]:
    """Count what is in a prepared file, without reading its windows."""
    arrays = read_npz(npz, (*KEYS[1:], "domain_names"))
    missing = [key for key in KEYS[1:] if key not in arrays]
    if missing:
        raise unreadable_file(npz, problem=f"not a prepared data set: no {', '.join(missing)}", advice=_AGAIN)
    try:
        return _contents(arrays, _length(npz))
    except (InputError, ValueError, IndexError) as error:
        raise UnreadableFile(f"{npz}: {error}") from None


def _contents(arrays: Mapping[str, Any], length: int) -> dict[str, Any]:
    classes = as_names("class_names", arrays["class_names"])
    y, domain, split = arrays["y"], arrays["domain"], arrays["split"]
    domains = np.unique(domain).tolist()
    return {
        "windows": len(y),
        "length": length,
        "channels": list(as_names("channel_names", arrays["channel_names"])),
        "classes": list(classes),
        "domain_names": _domain_names(arrays, domains),
        "counts": {
            str(d): {part: _per_class(y[(domain == d) & (split == code)], classes) for part, code in SPLITS.items()}
            for d in domains
        },
    }


def _per_class(y: Any, classes: tuple[str, ...]) -> dict[str, int]:
    return dict(zip(classes, np.bincount(y, minlength=len(classes)).tolist(), strict=True))


def _domain_names(arrays: Mapping[str, Any], domains: list[int]) -> dict[str, str]:
    if "domain_names" not in arrays:
        return {}
    names = as_names("domain_names", arrays["domain_names"])
    return dict(zip(map(str, domains), names, strict=True))


def _length(npz: Path) -> int:
    """Return the number of time steps from the header of X."""
    try:
        with zipfile.ZipFile(npz) as archive, archive.open("X.npy") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape = read(stream)[0]
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise unreadable_file(npz, problem=f"no readable X in it ({error})", advice=_AGAIN) from None
    return int(shape[-1])


def _check_counts(path: Path, card: Mapping[str, Any]) -> None:
    """Raise unless counts are whole numbers for every domain, part and class, so that others can rely on them."""
    wanted = set(card["classes"])
    for parts in card["counts"].values():
        sound = isinstance(parts, dict) and set(parts) == set(SPLITS)
        for per_class in parts.values() if sound else ():
            sound &= isinstance(per_class, dict) and set(per_class) == wanted
            sound = sound and all(isinstance(n, int) for n in per_class.values())
        if not sound:
            raise unreadable_file(path, problem="a card without sound counts", advice=_AGAIN)
