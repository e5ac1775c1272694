"""Windows that are already cut: an npz with `X` and, if the user has them, labels, domains, groups and names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid, unreadable_file
from transpl._utils.files import read_npz
from transpl.datasets.prepared import as_names, decoded
from transpl.datasets.recordings.cutting import Text
from transpl.datasets.recordings.tables import as_text
from transpl.windows import as_windows, name_channels

_LARGEST = 2**53  # up to here every whole number is a float64
Arrays = dict[str, NDArray[Any]]


class WindowArchive(NamedTuple):
    """Windows and what the file says of each, as text; None where it says nothing."""

    X: NDArray[np.float32]  # (n, channels, time)
    label: Text | None
    domain: Text | None
    group: Text | None
    channel_names: tuple[str, ...]
    named: bool  # whether the file names its channels
    unused: tuple[str, ...]  # channels that were not wanted


def read_windows(
    path: Path,
    label_key: str | None = None,
    domain_key: str | None = None,
    group_key: str | None = None,
    channels: Sequence[str] | None = None,
    *,
    optional: Collection[str] = (),
) -> WindowArchive:
    """Read an npz; a key that is not given is looked for under its usual name and may be absent.

    optional : of "label_col", "domain_col" and "group_col", those whose key may be absent too
    """
    arrays = read_npz(path)
    if "X" not in arrays:
        raise unreadable_file(path, problem="no X in it", advice="Save windows as X, (n, channels, time).")
    X = as_windows(arrays["X"], name=f"X of {path.name}").values
    present, named = _channel_names(arrays, X.shape[1], path), "channel_names" in arrays
    places = list(range(len(present))) if channels is None else _places(present, named, channels, path)
    given = {"label_col": label_key, "domain_col": domain_key, "group_col": group_key}
    keys = {argument: key for argument, key in given.items() if argument not in optional or key in arrays}
    label, domain, group = (
        _per_window(arrays, argument, keys.get(argument), usual, len(X), path)
        for argument, usual in (("label_col", "y"), ("domain_col", "domain"), ("group_col", "group"))
    )
    return WindowArchive(
        X if places == list(range(len(present))) else X[:, places],
        None if label is None else _as_labels(label, arrays, path),
        None if domain is None else as_text(domain),
        None if group is None else as_text(group),
        present if channels is None else tuple(channels),
        named,
        tuple(name for place, name in enumerate(present) if place not in places),
    )


def _per_window(arrays: Arrays, argument: str, key: str | None, usual: str, n: int, path: Path) -> NDArray[Any] | None:
    if key is None and usual not in arrays:
        return None
    name = usual if key is None else key
    if name not in arrays:
        raise invalid(
            argument, expected=f"a key of {path.name} ({', '.join(arrays)})", got=repr(name), advice="Check it."
        )
    values = arrays[name]
    if values.shape != (n,):
        expected = f"one entry per window ({n})"
        raise invalid(f"{name} of {path.name}", expected=expected, got=f"shape {values.shape}", advice="Save it anew.")
    return decoded(f"{name} of {path.name}", values)


def _as_labels(y: NDArray[Any], arrays: Arrays, path: Path) -> Text:
    """Return labels as text; integers are looked up in `class_names`, and -1 is a window without label."""
    y = _whole(y)
    if y.dtype.kind not in "iu":
        return as_text(y)
    if "class_names" not in arrays:
        return np.where(y == -1, "", y.astype(str))
    names = np.array([*as_names(f"class_names of {path.name}", arrays["class_names"]), ""])
    if y.min() < -1 or y.max() >= len(names) - 1:
        expected = f"indices in 0..{len(names) - 2}, or -1 for none"
        raise invalid(f"y of {path.name}", expected=expected, got=f"{y.min()}..{y.max()}", advice="Name every class.")
    return np.asarray(names[y], dtype=str)


def _whole(y: NDArray[Any]) -> NDArray[Any]:
    """Return floats that are whole numbers as integers, -1 where they are missing; anything else as it is."""
    if y.dtype.kind != "f":
        return y
    filled = np.where(np.isnan(y), -1, y)
    return filled.astype(np.int64) if (np.abs(filled) < _LARGEST).all() and (filled % 1 == 0).all() else y


def _channel_names(arrays: Arrays, n: int, path: Path) -> tuple[str, ...]:
    if "channel_names" not in arrays:
        return name_channels(None, n)
    names = as_names(f"channel_names of {path.name}", arrays["channel_names"])
    if len(names) != n:
        raise invalid(
            f"channel_names of {path.name}", expected=f"{n} names", got=len(names), advice="Name each channel."
        )
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        got, advice = f"{twice[0]!r} again", "Rename one of them."
        raise invalid(f"channel_names of {path.name}", expected="each name once", got=got, advice=advice)
    return names


def _places(present: tuple[str, ...], named: bool, channels: Sequence[str], path: Path) -> list[int]:
    """Return where the wanted channels are; without names in the file they are all there is, if they are as many."""
    if channels and len(set(channels)) == len(channels):
        if set(channels) <= set(present):
            return [present.index(name) for name in channels]
        if not named and len(channels) == len(present):
            return list(range(len(present)))
    expected = f"channels of {path.name} ({', '.join(present)}), each once"
    advice = "Name the channels that all files have (--channels)." if named else "Save their names as channel_names."
    raise invalid("channels", expected=expected, got=list(channels), advice=advice)
