"""Reading HHAR's `Phones_accelerometer.csv`, 13 million rows, some at a time; damage is named by its line.

Only the rows of the chosen models are kept, 24 bytes each, and only those columns that make windows. A row that lacks
a coordinate, or has an impossible one, counts as `null`: nothing is known of that moment. Everything else that is not
as the host writes it is refused.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile, invalid, unreadable_file
from transpl.datasets.recipe import Say

CLASSES = ("bike", "sit", "stairsdown", "stairsup", "stand", "walk")
NULL = len(CLASSES)
PEOPLE = tuple("abcdefghi")

_NUMBERS = {"Arrival_Time": np.int64, "x": np.float32, "y": np.float32, "z": np.float32}
_WORDS = ("User", "Model", "Device", "gt")
_ACTIVITIES = (*CLASSES, "null")
_MISSING = ("", "nan", "NaN")  # of a coordinate
_MOST_DEVICES = 1000  # the host has eight; far more are damage
_LARGEST = 1e6  # m/s²; a coordinate beyond it is damage
ROWS_AT_ONCE = 500_000
_ADVICE = "Unpack the archive again."


class Samples(NamedTuple):
    """Rows of the chosen phones, in the file's order."""

    person: NDArray[np.int8]  # 0 to 8
    device: NDArray[np.int16]  # index into `devices`
    activity: NDArray[np.int8]  # index into CLASSES, or the next number for null
    time: NDArray[np.int64]  # ms
    values: NDArray[np.float32]  # (n, 3)
    devices: tuple[str, ...]


def read_samples(path: Path, say: Say, *, models: Sequence[str], rows_at_once: int = ROWS_AT_ONCE) -> Samples:
    """Stream the csv and keep the rows of `models`, 24 bytes each; the result does not depend on `rows_at_once`."""
    say("HHAR: reading the rows (13 million in the host's file)")
    columns: list[list[NDArray[Any]]] = [[] for _ in range(5)]
    codes: dict[str, int] = {}
    for chunk in _chunks(path, rows_at_once):
        for column, part in zip(columns, _columns(chunk[chunk["Model"].isin(models)], codes), strict=True):
            column.append(part)
        if len(codes) > _MOST_DEVICES:
            problem = f"more than {_MOST_DEVICES} devices, the last {list(codes)[-1][:40]!r}"
            raise unreadable_file(path, problem=problem, advice=_ADVICE)
    if not codes:
        raise invalid(
            "models", expected=f"a phone in {path.name}", got=", ".join(models), advice="Choose another model."
        )
    # One column at a time, so that not all rows are in memory twice.
    person, device, activity, time, values = (np.concatenate(columns.pop(0)) for _ in range(5))
    alphabetical = tuple(sorted(codes))
    rank = np.array([alphabetical.index(name) for name in codes], np.int16)
    return Samples(person, rank[device], activity, time, values, alphabetical)


def _columns(chunk: pd.DataFrame, codes: dict[str, int]) -> tuple[NDArray[Any], ...]:
    """Person, device, activity, time and values of some rows; new devices are added to `codes`."""
    values = chunk[["x", "y", "z"]].to_numpy(np.float32)
    activity = _coded(chunk["gt"], {name: i for i, name in enumerate(_ACTIVITIES)})
    activity[~(np.abs(values) <= _LARGEST).all(axis=1)] = NULL  # no reading, no label; also for NaN
    for name in chunk["Device"].unique():
        codes.setdefault(name, len(codes))
    person = _coded(chunk["User"], {name: i for i, name in enumerate(PEOPLE)})
    device, time = _coded(chunk["Device"], codes), chunk["Arrival_Time"].to_numpy()
    return person.astype(np.int8), device, activity.astype(np.int8), time, values


def _coded(words: pd.Series[Any], codes: dict[str, int]) -> NDArray[np.int16]:
    """Replace the words of a categorical column by their codes."""
    code_of_category = np.array([codes.get(word, -1) for word in words.cat.categories])
    return code_of_category.astype(np.int16)[words.cat.codes.to_numpy()]


def _chunks(path: Path, rows_at_once: int) -> Iterator[pd.DataFrame]:
    """The columns that are used, some rows at a time; damage is refused."""
    _check_header(path)
    options: dict[str, Any] = {
        "usecols": [*_NUMBERS, *_WORDS],
        "dtype": {**_NUMBERS, **dict.fromkeys(_WORDS, "category")},
        "index_col": False,
        "keep_default_na": False,  # "null" is a word of gt
        "na_values": dict.fromkeys("xyz", _MISSING),
        "quoting": csv.QUOTE_NONE,
        "encoding": "latin1",
    }
    at = 0
    with _naming_damage(path, at):
        chunks = pd.read_csv(path, chunksize=rows_at_once, **options)
    with chunks:
        while (chunk := _next(chunks, path, at)) is not None:
            yield chunk
            at += len(chunk)


def _next(chunks: Iterator[pd.DataFrame], path: Path, at: int) -> pd.DataFrame | None:
    """Read on; `at` rows have been read."""
    with _naming_damage(path, at):
        chunk = next(chunks, None)
    if chunk is not None and not (_all_in(chunk["User"], PEOPLE) and _all_in(chunk["gt"], _ACTIVITIES)):
        raise _damage(path, at, "an unknown person or activity")
    return chunk


@contextmanager
def _naming_damage(path: Path, at: int) -> Iterator[None]:
    """Turn what pandas raises into a complaint that names the line; `at` rows are known to be sound."""
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            yield
    except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
        raise _damage(path, at, str(error)) from None


def _all_in(words: pd.Series[Any], known: Sequence[str]) -> bool:
    return set(words.cat.categories) <= set(known)


def _check_header(path: Path) -> None:
    try:
        with open(path, encoding="latin1") as stream:
            header = stream.readline().rstrip("\n").split(",")
    except OSError as error:
        raise unreadable_file(path, problem=f"cannot be read ({error})", advice="Check its permissions.") from None
    missing = [column for column in (*_NUMBERS, *_WORDS) if header.count(column) != 1]
    if missing:
        problem = f"line 1: expected column names, each once, but not so {', '.join(missing)}"
        raise unreadable_file(path, problem=problem, advice=_ADVICE)


def _damage(path: Path, n_sound: int, reason: str) -> UnreadableFile:
    """Find the first damaged line after `n_sound` rows, and build the complaint about it."""
    with open(path, encoding="latin1") as stream:
        header = stream.readline().rstrip("\n").split(",")
        lines = ((number, line.rstrip("\n")) for number, line in enumerate(stream, start=2) if line.strip())
        for number, line in islice(lines, n_sound, None):
            if complaint := _complaint(line, header):
                return unreadable_file(path, problem=f"line {number}: {complaint}", advice=_ADVICE)
    return unreadable_file(path, problem=f"not readable as csv ({reason})", advice=_ADVICE)


def _complaint(line: str, header: list[str]) -> str | None:
    """Say what is wrong with a row, if anything is."""
    fields = line.split(",")
    if len(fields) != len(header):
        return f"expected {len(header)} fields, got {len(fields)}"
    row = dict(zip(header, fields, strict=True))
    for column, dtype in _NUMBERS.items():
        if column in "xyz" and row[column] in _MISSING:
            continue
        try:
            np.array(row[column]).astype(dtype)
        except (ValueError, OverflowError):
            kind = "whole number" if dtype is np.int64 else "number"
            return f"expected a {kind} for {column}, got {row[column][:40]!r}"
    for column, known in (("User", PEOPLE), ("gt", _ACTIVITIES)):
        if row[column] not in known:
            return f"expected one of {', '.join(known)} for {column}, got {row[column][:40]!r}"
    return None
