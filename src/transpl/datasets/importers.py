"""Importing data sets that other projects have prepared: the files of AdaTime and of TransPL's authors.

AdaTime   `train_<id>.pt` and `test_<id>.pt`: a dict of `samples` and `labels` (n), written by `torch.save`. Samples
          are (n, channels, time), (n, time, channels) or, with one channel, (n, time). Channels are the axis that has
          `n_channels` entries, the first one if both have; without that number, the shorter axis.
TransPL   `USER<id>_trainX.pkl`, `USER<id>_trainY.csv` and the same with `test`; also `DOMAIN<id>_...`. X is a pickled
          array (n, time, channels); the csv gives the class (`y_true`) of each row of X (`GLOBAL_ID`).

Values are taken as they are, and nothing in the files is run. The data sets of the paper, and with `like` those under
another name, get the published number of channels and names by default; elsewhere classes are called "0", "1", ...
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile, check_choice, check_int, unreadable_file
from transpl.datasets.dataset import TEST, TRAIN, Dataset
from transpl.datasets.pairs import PUBLISHED, default_pairs, pairs_for
from transpl.datasets.pickles import read_pickle, read_torch
from transpl.datasets.recipes import hhar, ptb_beats, ucihar, wisdm
from transpl.datasets.recordings.tables import read_table

Names = tuple[str, ...]
PUBLISHED_NAMES: dict[str, tuple[Names, Names]] = {  # classes and channels, in the order of these files
    "ucihar": (ucihar.CLASSES, ucihar.CHANNELS),
    "wisdm": (wisdm.CLASSES, wisdm.CHANNELS),
    "hhar": (hhar.CLASSES, hhar.CHANNELS),
    "ptb": (ptb_beats.CLASSES, ptb_beats.LEADS),
}
_SPLITS = {"train": TRAIN, "test": TEST}
_LAYOUTS = {  # the files of each format, and how messages describe them
    "adatime": (re.compile(r"(?P<split>train|test)_(?P<id>\d{1,9})\.pt"), "train_<id>.pt and test_<id>.pt"),
    "transpl": (
        re.compile(r"(USER|DOMAIN)(?P<id>\d{2,9})_(?P<split>train|test)X\.pkl"),
        "USER<id>_trainX.pkl and USER<id>_testX.pkl",
    ),
}
_EXPORT_AGAIN = "Export it again."
_GIVE_CHANNELS = "Give n_channels (on the command line: --n-channels)"


class _Part(NamedTuple):
    """The windows of one file."""

    path: Path
    domain: int
    split: int
    X: NDArray[np.float32]  # (n, channels, time)
    y: NDArray[np.int64]


def import_files(
    folder: str | os.PathLike[str],
    name: str,
    format: str,
    *,
    like: str | None = None,
    n_channels: int | None = None,
    class_names: Sequence[str] | None = None,
    channel_names: Sequence[str] | None = None,
) -> Dataset:
    """Read a folder of AdaTime's files, which needs torch, or of those of TransPL's authors.

    Parameters
    ----------
    folder : path
    name : str
        Name of the data set. A published name gets the published pairs and names.
    format : {"adatime", "transpl"}
    like : {"ucihar", "wisdm", "hhar", "ptb"}, optional
        Take names from this set, and those of its pairs whose domains are there.
    n_channels : int, optional
        Number of channels; by default the published one. Without any, AdaTime's shorter axis is channels.
    class_names, channel_names : sequence of str, optional
    """
    check_choice("format", format, tuple(_LAYOUTS))
    if like is not None:
        check_choice("like", like, tuple(PUBLISHED_NAMES))
    if n_channels is not None:
        check_int("n_channels", n_channels, least=1)
    classes, channels = PUBLISHED_NAMES.get(like or name, (None, None))
    classes = classes if class_names is None else tuple(class_names)
    channels = channels if channel_names is None else tuple(channel_names)
    if n_channels is None and channels is not None:
        n_channels = len(channels)
    read = _read_adatime if format == "adatime" else _read_transpl
    parts = []
    for (domain, split), path in _files(Path(folder), *_LAYOUTS[format]).items():
        X, labels, labelled = read(path, n_channels)
        parts.append(_Part(path, domain, split, X, _check_labels(labelled, labels, len(X), classes)))
    _check_same_shape(parts)
    y, counts = np.concatenate([part.y for part in parts]), [len(part.y) for part in parts]
    if not len(y):
        raise unreadable_file(folder, problem="no windows in any file", advice=_EXPORT_AGAIN)
    domains = sorted({part.domain for part in parts if len(part.y)})
    if like is None:
        pairs = pairs_for(name, domains)
    else:
        pairs = tuple(pair for pair in PUBLISHED[like] if set(pair) <= set(domains)) or default_pairs(domains)
    return Dataset(
        name=name,
        X=np.concatenate([part.X for part in parts]),
        y=y,
        domain_ids=np.repeat([part.domain for part in parts], counts),
        split=np.repeat([part.split for part in parts], counts),
        class_names=tuple(str(k) for k in range(int(y.max()) + 1)) if classes is None else classes,
        channel_names=tuple(f"channel_{c}" for c in range(parts[0].X.shape[1])) if channels is None else channels,
        pairs=pairs,
    )


def _read_adatime(path: Path, n_channels: int | None) -> tuple[NDArray[np.float32], Any, Path]:
    """Return windows, their labels, and the file that has the labels."""
    content = read_torch(path)
    if not isinstance(content, dict) or not {"samples", "labels"} <= set(content):
        got = f"keys {', '.join(map(str, content))[:100]}" if isinstance(content, dict) else type(content).__name__
        problem = f"not a dict of samples and labels ({got})"
        raise unreadable_file(path, problem=problem, advice=_EXPORT_AGAIN)
    return _channels_first(path, _check_windows(path, content["samples"]), n_channels), content["labels"], path


def _read_transpl(path: Path, n_channels: int | None) -> tuple[NDArray[np.float32], Any, Path]:
    """Return windows, their labels, and the file that has the labels."""
    X = _check_windows(path, read_pickle(path))
    X = X[:, None] if X.ndim == 2 else X.swapaxes(1, 2)
    if n_channels not in (None, X.shape[1]):
        raise _other_channels(path, X.shape, n_channels)
    table = path.with_name(path.name.replace("X.pkl", "Y.csv"))
    return X, _labels_in_row_order(table, len(X)), table


def _files(folder: Path, pattern: re.Pattern[str], layout: str) -> dict[tuple[int, int], Path]:
    """Return the file of each (domain, split), sorted; each domain must have both splits."""
    found: dict[tuple[int, int], Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if match := pattern.fullmatch(path.name):
            key = int(match["id"]), _SPLITS[match["split"]]
            if key in found:
                problem = f"the same domain and split as {found[key].name}"
                raise unreadable_file(path, problem=problem, advice="Keep only one of them.")
            found[key] = path
    if not found:
        raise unreadable_file(folder, problem=f"no folder with {layout}", advice="Check the path.")
    for (domain, split), path in found.items():
        if (domain, TEST if split == TRAIN else TRAIN) not in found:
            partner = path.name.replace("train", "test") if split == TRAIN else path.name.replace("test", "train")
            problem = f"its partner {partner} is missing"
            raise unreadable_file(path, problem=problem, advice="Copy all files of the set.")
    return dict(sorted(found.items()))


def _check_same_shape(parts: list[_Part]) -> None:
    first = parts[0]
    for part in parts:
        if part.X.shape[1:] != first.X.shape[1:]:
            (channels, length), (others, other_length) = part.X.shape[1:], first.X.shape[1:]
            problem = f"{channels} channels of {length} steps, but {first.path.name} has {others} of {other_length}"
            advice = f"{_GIVE_CHANNELS}, or put only one data set there."
            raise unreadable_file(part.path, problem=problem, advice=advice)


def _check_windows(path: Path, values: Any) -> NDArray[np.float32]:
    """Return finite float32 with two or three axes; the order of the last two is still open."""
    shape = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
    if not isinstance(values, np.ndarray) or values.ndim not in (2, 3) or values.dtype.kind not in "fiu":
        problem = f"not an array of numbers with two or three axes ({shape})"
        raise unreadable_file(path, problem=problem, advice=_EXPORT_AGAIN)
    if 0 in values.shape[1:]:
        raise unreadable_file(path, problem=f"windows without entries ({shape})", advice=_EXPORT_AGAIN)
    with np.errstate(over="ignore", invalid="ignore"):
        X = np.asarray(values).astype(np.float32)
    if bad := int((~np.isfinite(X)).sum()):
        problem = f"{bad} entries are not finite numbers that fit float32"
        raise unreadable_file(path, problem=problem, advice="Cut out the gaps before the export.")
    return X


def _channels_first(path: Path, X: NDArray[np.float32], n_channels: int | None) -> NDArray[np.float32]:
    """Return AdaTime's samples as (n, channels, time)."""
    if X.ndim == 2:
        X = X[:, None]
    first, second = X.shape[1:]
    if n_channels is None and first == second:
        problem = f"channels and time cannot be told apart (shape {X.shape})"
        raise unreadable_file(path, problem=problem, advice=f"{_GIVE_CHANNELS}.")
    wanted = min(first, second) if n_channels is None else n_channels
    if wanted not in (first, second):
        raise _other_channels(path, X.shape, wanted)
    return X if first == wanted else X.swapaxes(1, 2)


def _other_channels(path: Path, shape: tuple[int, ...], wanted: int | None) -> UnreadableFile:
    problem = f"no axis of {wanted} channels (shape {shape})"
    advice = "Check n_channels and like (--n-channels, --like), or the name if it is a published one."
    return unreadable_file(path, problem=problem, advice=advice)


def _labels_in_row_order(table: Path, n: int) -> NDArray[np.float64]:
    """Return the labels in the order of X's rows; each row must have exactly one."""
    frame = read_table(table)
    missing = [column for column in ("GLOBAL_ID", "y_true") if column not in frame.columns]
    if missing:
        raise unreadable_file(table, problem=f"no column {' and '.join(missing)}", advice=_EXPORT_AGAIN)
    numbers = frame[["GLOBAL_ID", "y_true"]].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    rows, labels = numbers.T
    if not np.array_equal(np.sort(rows), np.arange(n)):
        problem = f"GLOBAL_ID does not name each of the {n} rows of X once ({len(rows)} entries)"
        raise unreadable_file(table, problem=problem, advice="Take X and Y from the same export.")
    return labels[np.argsort(rows)]


def _check_labels(path: Path, labels: Any, n: int, classes: Names | None) -> NDArray[np.int64]:
    """Return class indices, which may have been written as floats, as a column or as a list."""
    is_list = isinstance(labels, list) and all(type(label) in (int, float) for label in labels)
    y = np.asarray(labels) if isinstance(labels, np.ndarray) or is_list else np.empty(0, object)
    if y.shape not in ((n,), (n, 1)) or y.dtype.kind not in "fiu":
        problem = f"labels are {y.dtype} of shape {y.shape}, not one number for each of {n} windows"
        raise unreadable_file(path, problem=problem, advice=_EXPORT_AGAIN)
    y, limit = y.reshape(n), (1 << 20) if classes is None else len(classes)
    sound = (y >= 0) & (y < limit) & (np.floor(y) == y)
    if not sound.all():
        problem = f"the label {y[~sound][0]} is not a class index in 0..{limit - 1}"
        raise unreadable_file(path, problem=problem, advice="Encode labels as 0..K-1 and name every class.")
    return y.astype(np.int64)
