"""The card of a prepared data set: a JSON file beside the npz that says where it is from and what is in it.

The card holds the SHA-256 of the npz, so a card and an npz that do not belong together are noticed.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from transpl._utils.errors import InputError, UnreadableFile, invalid, unreadable_file
from transpl._utils.files import read_json, read_npy_header, read_npz, require_regular, third_party, write_json
from transpl._utils.hashing import hash_file
from transpl.datasets.dataset import TEST, TRAIN, check_class_indices, check_integers
from transpl.datasets.prepared import KEYS, as_names

FORMAT = "transpl-card-1"
SPLITS = {"train": TRAIN, "test": TEST}
_FIELDS: dict[str, type] = {
    **dict.fromkeys(("format", "name", "title", "homepage", "licence", "citation", "made_by", "transpl_version"), str),
    **dict.fromkeys(("npz_sha256", "rule", "normalise"), str),
    **dict.fromkeys(("origin", "notes", "channels", "classes"), list),
    **dict.fromkeys(("options", "domain_names", "counts"), dict),
    **dict.fromkeys(("windows", "length"), int),
}
_MAX_COUNT = 1 << 53
_AGAIN = "Prepare the data set again, or delete the card."


class Provenance(NamedTuple):
    """The part of a card that is not in the npz.

    Parameters
    ----------
    made_by : {"prepare", "import", "make"}
        The command: a public set, another project's files, or the user's own recordings.
    title, rule : str
    origin : sequence of mappings
        Name, SHA-256 and urls of each raw file.
    options : mapping
    notes : sequence of str
    normalise : str
    homepage, licence, citation : str
    default_rule : str
        The recipe's rule without options, if `rule` is another one. If it changes, the set is prepared again.
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
    """Describe a prepared file; its counts and hash are read from the file itself."""
    from transpl import __version__

    return {
        "format": FORMAT,
        "name": npz.stem,
        **provenance._asdict(),
        "origin": [dict(file) for file in provenance.origin],
        "options": dict(provenance.options),
        "notes": list(provenance.notes),
        "transpl_version": __version__,
        "npz_sha256": hash_file(npz),
        **contents(npz),
    }


def publish(staged: Path, npz: Path, provenance: Provenance) -> dict[str, Any]:
    """Move a finished npz into its place on the same disk, and write its card.

    No card ever lies beside an npz of other content, and a new npz appears with its card: whoever is killed in between
    can run the same command again.
    """
    card = make_card(staged, provenance)
    if not npz.exists():
        write_json(card_path(npz), card)
        os.replace(staged, npz)
        return card
    card_path(npz).unlink(missing_ok=True)
    os.replace(staged, npz)
    write_json(card_path(npz), card)
    return card


def read_card(npz: Path) -> dict[str, Any]:
    """Read the card of a prepared file; a damaged one, or one of another version, is refused."""
    path = card_path(npz)
    card = read_json(path)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise unreadable_file(path, problem=f"not a card ({FORMAT})", advice=_AGAIN)
    bad = [key for key, kind in _FIELDS.items() if not isinstance(card.get(key), kind)]
    bad = bad or [key for key in ("notes", "channels", "classes") if not _are_text(card[key])]
    if not bad:
        sound = {
            "origin": all(isinstance(file, dict) and _are_text(file.get("urls") or []) for file in card["origin"]),
            "domain_names": _are_text(list(card["domain_names"].values())),
            "counts": all(_are_counts(parts, card["classes"]) for parts in card["counts"].values()),
        }
        bad = [key for key, yes in sound.items() if not yes]
    if bad:
        raise unreadable_file(path, problem=f"a card without sound {', '.join(bad)}", advice=_AGAIN)
    return card


def _are_text(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_counts(parts: Any, classes: list[str]) -> bool:
    """Tell whether `parts` holds a whole number for every part and class of a domain."""
    return (
        isinstance(parts, dict)
        and set(parts) == set(SPLITS)
        and all(
            isinstance(per_class, dict)
            and set(per_class) == set(classes)
            and all(isinstance(n, int) and 0 <= n < _MAX_COUNT for n in per_class.values())
            for per_class in parts.values()
        )
    )


def check_card(npz: Path, card: Mapping[str, Any]) -> None:
    """Raise unless `card` was written for this npz."""
    if not npz.is_file():
        raise unreadable_file(npz, problem="no such file, though it has a card", advice=_AGAIN)
    found = hash_file(npz)
    if found != card["npz_sha256"]:
        problem = f"not the file its card was written for (SHA-256 {found[:12]}..., not {card['npz_sha256'][:12]}...)"
        raise unreadable_file(npz, problem=problem, advice=_AGAIN)


def card_or_contents(npz: Path) -> dict[str, Any]:
    """Return the checked card; without one, a card of what the file itself tells."""
    if card_path(npz).is_file():
        card = read_card(npz)
        check_card(npz, card)
        return card
    require_regular(npz)
    empty = {key: kind() for key, kind in _FIELDS.items()}
    notes = ["There is no card beside the file, so its origin is unknown."]
    return {**empty, "name": npz.stem, "notes": notes, "npz_sha256": hash_file(npz), **contents(npz)}


def refuse_second_scaling(npz: Path, rule: str) -> None:
    """Raise if the card says that the file is scaled already and `rule` would scale it again."""
    if rule == "none" or not card_path(npz).is_file():
        return
    before = read_card(npz)["normalise"]
    if before != "none":
        expected = f"'none', because {npz.name} was prepared with {before!r}"
        raise invalid("normalise", expected=expected, got=repr(rule), advice="Prepare it again without normalisation.")


def contents(npz: Path) -> dict[str, Any]:
    """Count what is in a prepared file without reading its windows."""
    arrays = read_npz(npz, (*KEYS[1:], "domain_names"))
    missing = [key for key in KEYS[1:] if key not in arrays]
    if missing:
        raise unreadable_file(npz, problem=f"not a prepared data set: no {', '.join(missing)}", advice=_AGAIN)
    length = _window_length(npz)
    try:
        classes, n = as_names("class_names", arrays["class_names"]), arrays["y"].size
        y, domain, split = (check_integers(key, arrays[key], n) for key in ("y", "domain", "split"))
        check_class_indices(y, len(classes))
        domains = np.unique(domain).tolist()
        names = as_names("domain_names", arrays["domain_names"]) if "domain_names" in arrays else ()
        if len(names) not in (0, len(domains)):
            expected = f"{len(domains)} names, one per domain"
            raise invalid("domain_names", expected=expected, got=len(names), advice=_AGAIN)
        counts: dict[str, dict[str, dict[str, int]]] = {str(d): {} for d in domains}
        for d in domains:
            for part, code in SPLITS.items():
                n = np.bincount(y[(domain == d) & (split == code)], minlength=len(classes)).tolist()
                counts[str(d)][part] = dict(zip(classes, n, strict=True))
        return {
            "windows": len(y),
            "length": length,
            "channels": list(as_names("channel_names", arrays["channel_names"])),
            "classes": list(classes),
            "domain_names": dict(zip(map(str, domains), names, strict=True)) if names else {},
            "counts": counts,
        }
    except InputError as error:
        raise UnreadableFile(f"{npz}: {error}") from None


def _window_length(npz: Path) -> int:
    """Read the number of time steps from the header of X."""
    with (
        third_party(npz, "no readable X in it", _AGAIN),
        zipfile.ZipFile(npz) as archive,
        archive.open("X.npy") as stream,
    ):
        shape, _ = read_npy_header(stream)
    if len(shape) != 3:
        raise unreadable_file(npz, problem=f"X has shape {shape}, not (n, channels, time)", advice=_AGAIN)
    return shape[-1]
