"""A fitted model as a folder: `model.json` and one safetensors file. Nothing in it can be executed.

The arrays are stored under a name that contains their hash, and `model.json` is replaced last, so that the folder
holds one complete model at every moment, the old or the new.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from safetensors.numpy import save as serialize

from transpl import __version__
from transpl._utils.errors import InputError, MissingExtra, UnreadableFile, invalid, unreadable_file
from transpl._utils.files import read_json, replacing, write_json
from transpl._utils.hashing import hash_file, hash_json
from transpl._utils.locks import writing
from transpl.methods.explainable import ExplainableMethod

FORMAT = "transpl-model"
FORMAT_VERSION = 1
_LONGEST_REASON = 400  # characters
_LONGEST_LABEL = 10_000
_END_OF_ANOTHER_SAVE = 60.0  # seconds
# Parameters that older versions had beside "variant"; None in their models of the paper's method.
_RETIRED = (
    *("vote", "calibrate", "classifier_evidence", "aligned_copies"),
    *("refine_rounds", "refine_share", "temper", "learning"),
)


# What the estimator saves of itself in model.json, as `check_facts` takes it; the method checks its own facts.
SAVED = {
    "variant": str,
    "params": dict,
    "classes": {"dtype": str, "values": ([str], [bool], [int], [float])},
    "n_features_in": int,
    "feature_names_in": [str],
    "channels": int,
}


class SavedModel(NamedTuple):
    """The content of a folder.

    about : plain data: the variant, what `write_model` was given, and the facts of the method
    path : of model.json
    """

    about: dict[str, Any]
    arrays: dict[str, NDArray]
    path: Path


def saved_classes(dtype: str, values: list[Any], n: int) -> NDArray:
    """The labels of n classes."""
    kind = np.dtype(dtype)
    if kind.kind not in "biufUO" or kind.itemsize > _LONGEST_LABEL * 4:
        raise invalid("classes", expected="text or numbers", got=dtype, advice="Save the model again.")
    found = np.array(values, dtype=kind)
    if found.tolist() != values or len(set(values)) != n or len(values) != n:
        raise invalid("classes", expected=f"{n} different labels", got=len(values), advice="Save the model again.")
    return found


def write_model(folder: str | os.PathLike[str], about: dict[str, Any], method: ExplainableMethod) -> None:
    """Write what a method has learnt and `about` (plain data: parameters, classes) to `folder`."""
    home = Path(folder)
    with writing(home, wait=_END_OF_ANOTHER_SAVE):
        _save(home, about, method)


def _save(home: Path, about: dict[str, Any], method: ExplainableMethod) -> None:
    name, digest = _write_arrays(home, method.arrays())
    card: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "transpl_version": __version__,
        "variant": method.variant,
        "weights": {"file": name, "sha256": digest},
        **method.facts(),
        **about,
    }
    write_json(home / "model.json", {**card, "digest": hash_json(card)})
    _remove_older_arrays(home, keep=name)


def read_model(folder: str | os.PathLike[str]) -> SavedModel:
    """Read a folder that `write_model` wrote; one that was changed or truncated, or is not a model, is refused."""
    home = Path(folder)
    card_path = home / "model.json"
    with refusing_what_does_not_fit(card_path):
        card = _read_card(card_path)
        path = home / str(card["weights"]["file"])
        if path.parent != home or not path.is_file():
            raise unreadable_file(path, problem="the weights file is missing", advice="Copy the whole model folder.")
        if hash_file(path) != card["weights"]["sha256"]:
            raise unreadable_file(
                path, problem="damaged or changed since it was saved", advice="Copy or save the model again."
            )
        return SavedModel(card, load_file(path), card_path)


@contextmanager
def refusing_what_does_not_fit(path: Path) -> Iterator[None]:
    """Refuse a saved model in one line, whatever the block raises: a digest does not prove who wrote it."""
    try:
        yield
    except (UnreadableFile, MissingExtra, OSError):
        raise
    except Exception as error:
        reason = f"{error}".rstrip(".") if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        problem = f"describes no model of this version ({reason[:_LONGEST_REASON]})"
        raise unreadable_file(path, problem=problem, advice="Save the model again.") from error


def _write_arrays(home: Path, arrays: dict[str, NDArray]) -> tuple[str, str]:
    in_order = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with replacing(home / "weights.safetensors") as part:
        part.write_bytes(serialize(in_order))  # save_file would raise an error of its own if the disk is full
        digest = hash_file(part)
    name = f"weights-{digest[:16]}.safetensors"
    os.replace(home / "weights.safetensors", home / name)
    return name, digest


def _remove_older_arrays(home: Path, keep: str) -> None:
    for path in home.glob("weights-*.safetensors"):
        if path.name != keep:
            path.unlink()


def _read_card(path: Path) -> dict[str, Any]:
    card = read_json(path)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise unreadable_file(path, problem="not a TransPL model", advice="Point at a folder written by TransPL.save.")
    if card.get("format_version") != FORMAT_VERSION:
        problem = f"model format {card.get('format_version')}, this version reads {FORMAT_VERSION}"
        raise unreadable_file(path, problem=problem, advice="Upgrade transpl, or save the model again.")
    digest = card.pop("digest", None)
    if digest != hash_json(card):
        raise unreadable_file(path, problem="changed since it was saved", advice="Restore it, or save the model again.")
    return card if "variant" in card else _convert_old_card(card, path)


def _convert_old_card(card: dict[str, Any], path: Path) -> dict[str, Any]:
    """Convert the card of an older version, if it is of the paper's method, to the current form."""
    params = card["params"]
    beyond = [name for name in _RETIRED if params.get(name) is not None]
    if params.get("variant", "paper") != "paper" or beyond:
        problem = "a model of a variant that only an older version had"
        raise unreadable_file(path, problem=problem, advice="Fit it again.")
    kept = {name: value for name, value in params.items() if name not in _RETIRED}
    return {**card, "variant": "paper", "params": kept}
