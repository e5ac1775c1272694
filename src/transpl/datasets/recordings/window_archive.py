"""Windows that the user has cut already: arrays `X` and optionally labels, domains, groups and names in a file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import first_repeated, invalid, unreadable_file
from transpl._utils.files import npz_keys, read_npz
from transpl.datasets.prepared import as_names, as_str
from transpl.datasets.recordings.array_files import ARRAYS, read_arrays
from transpl.datasets.recordings.matlab_files import Arrays
from transpl.datasets.recordings.tables import NAME_CHANNELS, Text, as_text, has_suffix
from transpl.windows import TRANSPOSED, as_windows, name_channels

_KEYS = ("X", "y", "domain", "group", "class_names", "channel_names")
_PLAIN = "biufSU"  # numpy's kinds of numbers and text
_MAX_INT = 2**53  # up to here float64 holds every whole number


class WindowArchive(NamedTuple):
    """Windows and what the file says of each, as text; None where it says nothing."""

    X: NDArray[np.float32]  # (n, channels, time)
    label: Text | None
    domain: Text | None
    group: Text | None
    channel_names: tuple[str, ...]
    named: bool  # whether the file names its channels
    unused: tuple[str, ...]  # channels that were not asked for


def read_windows(
    path: Path,
    label_key: str | None = None,
    domain_key: str | None = None,
    group_key: str | None = None,
    channels: Sequence[str] | None = None,
    *,
    optional: Collection[str] = (),
) -> WindowArchive:
    """Read a file of windows: an npz, or another file of arrays.

    Parameters
    ----------
    path : Path
    label_key, domain_key, group_key : str, optional
        Names of arrays; by default "y", "domain" and "group", which may be absent.
    channels : sequence of str, optional
        The channels to return, in this order.
    optional : collection of {"label_col", "domain_col", "group_col"}
        Whose given key may be absent too.
    """
    keys = (label_key, domain_key, group_key)
    if has_suffix(path, ARRAYS):
        arrays = read_arrays(path)
    else:
        arrays = read_npz(path, {*_KEYS, *(key for key in keys if key is not None)})
    if "X" not in arrays:
        raise unreadable_file(path, problem="no X in it", advice="Save windows as X, (n, channels, time).")
    X = as_windows(arrays["X"], name=f"X of {path.name}").values
    present, named = _channel_names(arrays, X.shape[1], path), "channel_names" in arrays
    if channels is not None and not named and len(channels) == X.shape[2] != X.shape[1]:
        expected = f"{len(channels)} channels ({', '.join(channels)})"
        raise invalid(f"X of {path.name}", expected=expected, got=X.shape[1], advice=TRANSPOSED)
    chosen = list(range(len(present))) if channels is None else _channel_indices(present, named, channels, path)
    used, found = set(chosen), list[NDArray[Any] | None]()
    for argument, key, usual in (
        ("label_col", label_key, "y"),
        ("domain_col", domain_key, "domain"),
        ("group_col", group_key, "group"),
    ):
        given = None if argument in optional and key not in arrays else key
        found.append(_per_window(arrays, argument, given, usual, len(X), path))
    label, domain, group = found
    return WindowArchive(
        X if chosen == list(range(len(present))) else X[:, chosen],
        None if label is None else _labels_as_text(label, arrays, path),
        None if domain is None else as_text(domain),
        None if group is None else as_text(group),
        present if channels is None else tuple(channels),
        named,
        tuple(name for i, name in enumerate(present) if i not in used),
    )


def _per_window(arrays: Arrays, argument: str, key: str | None, usual: str, n: int, path: Path) -> NDArray[Any] | None:
    if key is None and usual not in arrays:
        return None
    name = usual if key is None else key
    if name not in arrays:
        expected = f"a key of {path.name} ({', '.join(arrays if has_suffix(path, ARRAYS) else npz_keys(path))})"
        raise invalid(argument, expected=expected, got=repr(name), advice="Check it.")
    values = arrays[name]
    if values.shape != (n,):
        expected, got = f"one entry per window ({n})", f"shape {values.shape}"
        raise invalid(f"{name} of {path.name}", expected=expected, got=got, advice="Save one entry per window.")
    if values.dtype.kind not in _PLAIN:
        advice = "Save a single number or word per window."
        raise invalid(f"{name} of {path.name}", expected="numbers or text", got=str(values.dtype), advice=advice)
    return as_str(f"{name} of {path.name}", values)


def _labels_as_text(y: NDArray[Any], arrays: Arrays, path: Path) -> Text:
    """Return labels as text; integers are looked up in `class_names`, and -1 or NaN is a window without label."""
    if y.dtype.kind == "f":
        filled = np.where(np.isnan(y), -1, y)
        if (np.abs(filled) < _MAX_INT).all() and (filled % 1 == 0).all():
            y = filled.astype(np.int64)
    if y.dtype.kind not in "iu":
        return as_text(y)
    if "class_names" not in arrays:
        return np.where(y == -1, "", y.astype(str))
    names = np.array([*as_names(f"class_names of {path.name}", arrays["class_names"]), ""])
    if y.min() < -1 or y.max() >= len(names) - 1:
        expected, got = f"indices in 0..{len(names) - 2}, or -1 for none", f"{y.min()}..{y.max()}"
        raise invalid(f"y of {path.name}", expected=expected, got=got, advice="Name every class.")
    return np.asarray(names[y], dtype=str)


def _channel_names(arrays: Arrays, n: int, path: Path) -> tuple[str, ...]:
    if "channel_names" not in arrays:
        return name_channels(None, n)
    argument = f"channel_names of {path.name}"
    names = as_names(argument, arrays["channel_names"])
    if len(names) != n:
        raise invalid(argument, expected=f"{n} names", got=len(names), advice="Name each channel.")
    if (twice := first_repeated(names)) is not None:
        raise invalid(argument, expected="each name once", got=f"{twice!r} again", advice="Rename one of them.")
    return names


def _channel_indices(present: tuple[str, ...], named: bool, channels: Sequence[str], path: Path) -> list[int]:
    """Return where the wanted channels are; a file without names may have as many channels as are wanted."""
    if channels and len(set(channels)) == len(channels):
        if set(channels) <= set(present):
            place = {name: i for i, name in enumerate(present)}
            return [place[name] for name in channels]
        if not named and len(channels) == len(present):
            return list(range(len(present)))
    expected = f"channels of {path.name} ({', '.join(present)}), each once"
    advice = NAME_CHANNELS if named else "Save their names as channel_names."
    raise invalid("channels", expected=expected, got=list(channels), advice=advice)
