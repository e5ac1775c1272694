"""Prepared data sets: one npz per data set, written atomically and read without running anything in it.

Keys: `X` (n, channels, time), `y`, `domain`, `split` (0 train, 1 test), `class_names`, `channel_names`.
Optional: `pairs` (p, 2), in place of those in `transpl.datasets.pairs`, and `group` (n,), numbers or text: the
recording or patient of each window. Other keys are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

from transpl._utils.errors import InputError, UnreadableFile, invalid, unreadable_file
from transpl._utils.files import read_npz, replacing
from transpl.datasets.dataset import Dataset
from transpl.datasets.pairs import pairs_for

KEYS = ("X", "y", "domain", "split", "class_names", "channel_names")
_LAST_CHARACTER = 0x10FFFF  # of Unicode; 0xD800 to 0xDFFF are none
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def data_home() -> Path:
    """Return the folder of prepared data: $TRANSPL_DATA, or the platform's cache folder."""
    return Path(os.environ.get("TRANSPL_DATA") or platformdirs.user_cache_dir("transpl")).expanduser()


def prepared_path(name: str, home: Path | None = None) -> Path:
    """Return the npz of the prepared data set `name`; a name that could leave the folder is refused."""
    if not _NAME.fullmatch(name):
        expected = "letters, digits, _, - and . (not first)"
        raise invalid("name", expected=expected, got=repr(name), advice="Choose a plain name, not a path.")
    return (data_home() if home is None else home) / f"{name}.npz"


def load_prepared(path: str | os.PathLike[str], name: str | None = None) -> Dataset:
    """Read a prepared data set; `name` (default: the file's) decides which published pairs it gets."""
    path = Path(path)
    arrays = read_npz(path, (*KEYS, "pairs", "group"))
    if missing := [key for key in KEYS if key not in arrays]:
        problem = f"not a prepared data set: no {', '.join(missing)}"
        raise unreadable_file(path, problem=problem, advice="Write it with transpl.datasets.prepared.save_prepared.")
    name = path.stem if name is None else name
    groups = arrays.get("group")
    if groups is not None and groups.dtype.kind not in "iu":
        groups = np.unique(groups, return_inverse=True)[1]
    try:
        pairs = arrays["pairs"].tolist() if "pairs" in arrays else pairs_for(name, np.unique(arrays["domain"]).tolist())
        return Dataset(
            name=name,
            X=arrays["X"],
            y=arrays["y"],
            domain_ids=arrays["domain"],
            split=arrays["split"],
            class_names=as_names("class_names", arrays["class_names"]),
            channel_names=as_names("channel_names", arrays["channel_names"]),
            pairs=pairs,
            groups=groups,
        )
    except InputError as error:
        raise UnreadableFile(f"{path}: {error}") from None


def save_prepared(
    dataset: Dataset, path: str | os.PathLike[str], extras: Mapping[str, NDArray[Any]] | None = None
) -> None:
    """Write a data set atomically; `extras` are further arrays with one entry per window."""
    arrays: dict[str, Any] = {
        "X": dataset.X,
        "y": dataset.y,
        "domain": dataset.domain_ids,
        "split": dataset.split,
        "class_names": np.array(dataset.class_names),
        "channel_names": np.array(dataset.channel_names),
        "pairs": np.array(dataset.pairs, dtype=np.int64).reshape(-1, 2),
        **({} if dataset.groups is None else {"group": dataset.groups}),
    }
    further: dict[str, Any] = dict(extras or {})
    for key, array in further.items():
        if key in arrays:
            expected = f"other keys than {', '.join(sorted(arrays))}"
            raise invalid("extras", expected=expected, got=key, advice="Rename it.")
        if array.dtype.hasobject or array.ndim == 0 or len(array) != len(dataset):
            expected, got = f"numbers or text, {len(dataset)} entries", f"{array.dtype} of shape {array.shape}"
            raise invalid(f"extras[{key!r}]", expected=expected, got=got, advice="Give one each.")
    with replacing(path) as part, open(part, "wb") as stream:
        np.savez_compressed(stream, **arrays, **further)


def as_names(key: str, array: NDArray[Any]) -> tuple[str, ...]:
    """Return a one-dimensional array of text as a tuple."""
    if array.ndim != 1 or array.dtype.kind not in "US":
        got = f"{array.dtype} of shape {array.shape}"
        raise invalid(key, expected="a list of text", got=got, advice="Write the names as text.")
    return tuple(as_str(key, array).tolist())


def as_str(key: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return bytes as text, anything else as it is; text that could not be written as UTF-8 is refused."""
    advice = "Write it as text."
    if array.dtype.kind == "S":
        try:
            return np.char.decode(array, "utf-8")
        except UnicodeError:
            raise invalid(key, expected="text", got="bytes that are not UTF-8", advice=advice) from None
    if array.dtype.kind == "U" and array.dtype.itemsize:
        codes = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
        if ((codes > _LAST_CHARACTER) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any():
            raise invalid(key, expected="text", got="numbers that stand for no character", advice=advice)
    return array
