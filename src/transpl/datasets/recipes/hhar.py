"""HHAR: nine people with phones round the waist, six activities; the phones' accelerometers.

Host      UCI machine learning repository 344, CC BY 4.0. `Phones_accelerometer.csv` has 13 million rows of eight
          phones, two each of nexus4, s3, s3mini and samsungold, at about 200, 150, 100 and 50 Hz.
Domains   the people, a to i -> 0 to 8.
Classes   bike, sit, stairsdown, stairsup, stand, walk: alphabetical, as in AdaTime's files. Rows with gt `null` are
          dropped, and no window spans them. A row whose coordinate is missing or impossible counts as null.
Channels  acc_x, acc_y, acc_z in m/s², with gravity. Nothing is scaled.

Runs      the rows of one person and one phone, in the file's order, whatever other rows lie between them. A new run
          starts where gt changes and where the clock (Arrival_Time, ms) goes back or jumps by more than 1 s. Rows may
          share a millisecond: phones deliver in bursts. The second clock, Creation_Time, is the phone's own; its unit
          and start differ between phones, so it is not used.
Windows   128 samples, each inside one run.
Split     per person 30 % test by AdaTime's rule (`transpl.datasets.recipe`).
Extra     `device`: the phone of each window.

The csv is read in chunks, and only the rows of the chosen models are kept, 24 bytes each. Damage is reported with its
line number.

AdaTime published no script for its version ("one Samsung phone"), so these defaults are NOT established:
  models       ("s3",). AdaTime's files lie on the lattice of a coarse sensor, about 0.16 m/s² (people 0 and 2, by the
               norm at rest), and people walk at about 0.03 cycles per sample: more like 50 Hz than 150 Hz.
  device       None: both phones of a model.
  resample_hz  None. Supported by that lattice: interpolated values would not lie on one.
  overlap      0. Supported by AdaTime's files: no window there repeats a part of another (tried in eighths).
  seed         1, as for UCIHAR.
`check` compares with AdaTime's test sizes.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import (
    UnreadableFile,
    check_choice,
    check_fraction,
    check_positive,
    invalid,
    unreadable_file,
)
from transpl.datasets.dataset import TEST, Dataset
from transpl.datasets.recipe import Built, Log, Recipe, RemoteFile, dataset_of_people, only_file, windows_per_domain
from transpl.windows import cut, label_breaks

RAW_FILE = "Phones_accelerometer.csv"
LENGTH = 128
CHANNELS = ("acc_x", "acc_y", "acc_z")
MODELS = ("nexus4", "s3", "s3mini", "samsungold")
ADATIME_TEST_WINDOWS = (457, 536, 475, 457, 501, 517, 501, 479, 513)
_LONGEST_STEP = 1000  # ms
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


class _Windows(NamedTuple):
    """Windows of one person and phone; and how often its runs ended because of the clock."""

    person: int
    device: str
    X: NDArray[np.float32]
    activity: NDArray[np.int64]
    n_clock_back: int
    n_clock_gap: int


def build(
    folder: Path,
    log: Log,
    *,
    models: str | Sequence[str] = ("s3",),
    device: str | Sequence[str] | None = None,
    resample_hz: float | None = None,
    overlap: float = 0.0,
    rows_at_once: int = ROWS_AT_ONCE,
) -> Built:
    """Stream the csv, keep the chosen phones, cut their runs into windows and split each person's."""
    chosen = _names("models", models)
    for model in chosen:
        check_choice("models", model, MODELS)
    if resample_hz is not None:
        check_positive("resample_hz", resample_hz)
    check_fraction("overlap", overlap, zero=True)
    phones = None if device is None else _names("device", device)
    path = _raw_file(folder)
    samples = _keep_devices(read_samples(path, log, models=chosen, rows_at_once=rows_at_once), phones)
    step = max(1, round(LENGTH * (1 - overlap)))
    rule = rule_of(samples.devices if phones else chosen, resample_hz, step)
    return _built(path, samples, resample_hz, step)._replace(rule=rule)


def rule_of(phones: Sequence[str] = ("s3",), resample_hz: float | None = None, step: int = LENGTH) -> str:
    """How windows, labels, domains and split come about."""
    rate = "each at its own rate" if resample_hz is None else f"interpolated linearly to {resample_hz:g} Hz"
    return (
        f"Windows of {LENGTH} samples, one every {step}, inside one uninterrupted run of one person, phone and "
        f"activity; phones: {', '.join(phones)}, {rate}; null dropped; domain = person a-i as 0-8; per person 30 % of "
        "the windows test, stratified by class, seed 1. Which phones, rate and overlap AdaTime used is not published: "
        "the defaults (both s3, no resampling, no overlap) are not established."
    )


def check(dataset: Dataset) -> list[str]:
    """Compare people, classes and AdaTime's test sizes with what is published: a sentence each."""
    found, classes = windows_per_domain(dataset), set(dataset.y.tolist())
    tested = np.bincount(dataset.domain_ids[dataset.split == TEST], minlength=len(PEOPLE)).tolist()
    complaints = {
        f"of {len(PEOPLE)} people published, these have no windows": [str(i) for i in range(9) if i not in found],
        f"of {len(CLASSES)} activities published, these have no windows": [
            name for k, name in enumerate(CLASSES) if k not in classes
        ],
        "test windows of a person (in brackets AdaTime's)": [
            f"{i}: {n} ({published})"
            for i, (n, published) in enumerate(zip(tested, ADATIME_TEST_WINDOWS, strict=True))
            if n != published
        ],
    }
    return [f"{what}: {', '.join(which)}." for what, which in complaints.items() if which]


def _built(path: Path, samples: Samples, resample_hz: float | None, step: int) -> Built:
    windows = [_cut_stream(samples, rows, resample_hz, step) for rows in _streams(samples)]
    sizes = [len(these.X) for these in windows]
    if sum(sizes) == 0:
        problem = f"no {LENGTH} rows on end of one person, phone and activity"
        raise unreadable_file(path, problem=problem, advice="Check that it is the whole file.")
    dataset, order = dataset_of_people(
        "hhar",
        np.concatenate([these.X for these in windows]),
        np.concatenate([these.activity for these in windows]),
        np.repeat([these.person for these in windows], sizes),
        CLASSES,
        CHANNELS,
    )
    device = np.repeat([these.device for these in windows], sizes)
    return Built(dataset, {"device": device[order]}, _notes(samples, windows, resample_hz, step))


def _notes(samples: Samples, windows: list[_Windows], resample_hz: float | None, step: int) -> tuple[str, ...]:
    dropped = int((samples.activity == NULL).sum())
    back, gap = sum(these.n_clock_back for these in windows), sum(these.n_clock_gap for these in windows)
    rate = "" if resample_hz is None else f", interpolated to {resample_hz:g} Hz"
    return (
        f"{len(samples.time):,} rows of {', '.join(samples.devices)}; "
        f"{dropped:,} of them are null or lack a reading and were dropped.",
        f"Runs were cut {back:,} times where the clock goes back and {gap:,} times where it jumps by more than 1 s.",
        f"{sum(len(these.X) for these in windows):,} windows, one every {step} samples{rate}.",
    )


def _streams(samples: Samples) -> Iterator[NDArray[np.int64]]:
    """The rows of each person and phone, in the file's order."""
    key = samples.person.astype(np.int16) * len(samples.devices) + samples.device
    for value in np.unique(key):
        yield np.flatnonzero(key == value)


def _cut_stream(samples: Samples, rows: NDArray[np.int64], resample_hz: float | None, step: int) -> _Windows:
    """Cut the runs of one person and phone."""
    time, activity, values = samples.time[rows], samples.activity[rows], samples.values[rows]
    between = np.diff(time)
    back, gap = between < 0, between > _LONGEST_STEP
    breaks = label_breaks(activity)
    breaks[1:] |= back | gap
    X, labels = [np.empty((0, len(CHANNELS), LENGTH), np.float32)], [np.empty(0, np.int64)]
    for first, last in _runs(breaks):
        if activity[first] == NULL:
            continue
        run = values[first:last].T
        if resample_hz is not None:
            run = _resampled(time[first:last], run, resample_hz)
        X.append(cut(run, LENGTH, step, name=RAW_FILE).windows)
        labels.append(np.full(len(X[-1]), activity[first], np.int64))
    return _Windows(
        person=int(samples.person[rows[0]]),
        device=samples.devices[samples.device[rows[0]]],
        X=np.concatenate(X),
        activity=np.concatenate(labels),
        n_clock_back=int(back.sum()),
        n_clock_gap=int(gap.sum()),
    )


def _runs(breaks: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = [0, *np.flatnonzero(breaks).tolist(), len(breaks)]
    return list(pairwise(edges))


def _resampled(time: NDArray[np.int64], run: NDArray[np.float32], hz: float) -> NDArray[np.float32]:
    """Interpolate a (channels, time) run linearly to `hz`; samples of one millisecond count as their mean."""
    moments, first, together = np.unique(time, return_index=True, return_counts=True)
    means = np.add.reduceat(run, first, axis=1, dtype=np.float64) / together
    grid = np.arange(moments[0], moments[-1] + 0.5, 1000 / hz)
    return np.stack([np.interp(grid, moments, channel) for channel in means]).astype(np.float32)


def _keep_devices(samples: Samples, chosen: Sequence[str] | None) -> Samples:
    if chosen is None:
        return samples
    for name in chosen:
        check_choice("device", name, samples.devices)
    kept = np.isin(samples.device, [samples.devices.index(name) for name in chosen])
    rank = np.array([sorted(chosen).index(name) if name in chosen else -1 for name in samples.devices], np.int16)
    return Samples(
        samples.person[kept],
        rank[samples.device[kept]],
        samples.activity[kept],
        samples.time[kept],
        samples.values[kept],
        tuple(sorted(chosen)),
    )


def _names(argument: str, names: object) -> tuple[str, ...]:
    """Take names as a list or as one text with commas."""
    listed = names.split(",") if isinstance(names, str) else names
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise invalid(argument, expected="names with commas between, or a list", got=repr(names), advice="Name phones.")
    plain = tuple(dict.fromkeys(name.strip() for name in listed))
    if not plain:
        raise invalid(argument, expected="at least one name", got="none", advice="Name one.")
    return plain


def _raw_file(folder: Path) -> Path:
    """The csv of the activities; the host's archive of phones lying still may hold one of the same name."""
    activity_folders = sorted(path for path in folder.rglob("Activity recognition exp") if path.is_dir())
    return only_file(activity_folders[0] if activity_folders else folder, RAW_FILE)


def read_samples(path: Path, log: Log, *, models: Sequence[str], rows_at_once: int = ROWS_AT_ONCE) -> Samples:
    """Stream the csv and keep the rows of `models`, 24 bytes each; the result does not depend on `rows_at_once`."""
    log("HHAR: reading the rows (13 million in the host's file)")
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
    """Log what is wrong with a row, if anything is."""
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


RECIPE = Recipe(
    name="hhar",
    title="HHAR: heterogeneity activity recognition (9 people, phones round the waist)",
    homepage="https://archive.ics.uci.edu/dataset/344/heterogeneity+activity+recognition",
    licence="CC BY 4.0",
    citation=(
        "Stisen, Blunck, Bhattacharya, Prentow, Kjaergaard, Dey, Sonne, Jensen: Smart devices are different: assessing "
        "and mitigating mobile sensing heterogeneities for activity recognition. SenSys 2015. doi:10.24432/C5689X"
    ),
    files=(
        RemoteFile(
            name="heterogeneity+activity+recognition.zip",
            urls=("https://archive.ics.uci.edu/static/public/344/heterogeneity+activity+recognition.zip",),
            instead=(  # the host's older address sends the archive inside the other one
                RemoteFile(
                    name="Activity recognition exp.zip",
                    urls=(
                        "https://archive.ics.uci.edu/ml/machine-learning-databases/00344/Activity%20recognition%20exp.zip",
                    ),
                    sha256="d4c0c53b195b523859bf71f5a349d164c7a604a321ff6b0972fbed6e03b46582",
                ),
            ),
        ),
    ),
    layout=f"Activity recognition exp/{RAW_FILE}",
    rule=rule_of(),
    build=build,
    check=check,
    options={
        "models": "phones to use, of nexus4, s3, s3mini, samsungold, with commas between (default: s3)",
        "device": "single phones to use, e.g. s3_1 (default: all phones of the models)",
        "resample_hz": "interpolate every run linearly to this rate (default: keep the phone's own)",
        "overlap": "share of a window that the next one repeats, from 0 to below 1 (default: 0)",
    },
)
