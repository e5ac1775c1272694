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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import (
    UnreadableFile,
    check_choice,
    check_fraction,
    check_positive,
    invalid,
    unreadable_file,
)
from transpl._utils.files import third_party
from transpl._utils.locks import process_state
from transpl.datasets.dataset import TEST, Dataset
from transpl.datasets.recipe import Built, Log, Recipe, RemoteFile, dataset_of_people, only_file, windows_per_domain
from transpl.windows import cut, label_breaks

if TYPE_CHECKING:
    import pandas as pd

RAW_FILE = "Phones_accelerometer.csv"
LENGTH = 128
CLASSES = ("bike", "sit", "stairsdown", "stairsup", "stand", "walk")
CHANNELS = ("acc_x", "acc_y", "acc_z")
PEOPLE = tuple("abcdefghi")
MODELS = ("nexus4", "s3", "s3mini", "samsungold")
ADATIME_TEST_WINDOWS = (457, 536, 475, 457, 501, 517, 501, 479, 513)
NULL = len(CLASSES)  # the activity of rows without one
ROWS_AT_ONCE = 500_000

_MAX_STEP = 1000  # ms
_MAX_DEVICES = 1000  # the host has eight
_MAX_VALUE = 1e6  # m/s²
_NUMBERS = {"Arrival_Time": np.int64, "x": np.float32, "y": np.float32, "z": np.float32}
_WORDS = {"User": PEOPLE, "gt": (*CLASSES, "null")}
_COLUMNS = (*_NUMBERS, "Model", "Device", *_WORDS)
_MISSING = ("", "nan", "NaN")  # of a coordinate
_ADVICE = "Unpack the archive again."


class Samples(NamedTuple):
    """Rows of the chosen phones, in the file's order."""

    person: NDArray[np.int8]  # 0 to 8
    device: NDArray[np.integer[Any]]  # index into `devices`
    activity: NDArray[np.int8]  # index into CLASSES, or NULL
    time: NDArray[np.int64]  # ms
    values: NDArray[np.float32]  # (n, 3)
    devices: tuple[str, ...]


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
    """Read the csv, keep the chosen phones, cut their runs into windows and split each person's."""
    models = _names("models", models)
    for model in models:
        check_choice("models", model, MODELS)
    if resample_hz is not None:
        check_positive("resample_hz", resample_hz)
    check_fraction("overlap", overlap, zero=True)
    phones = None if device is None else _names("device", device)
    # The host's archive of phones lying still may hold a file of the same name.
    places = sorted(path for path in folder.rglob("Activity recognition exp") if path.is_dir())
    path = only_file(places[0] if places else folder, RAW_FILE)
    samples = read_samples(path, log, models=models, rows_at_once=rows_at_once)
    if phones is not None:
        samples = _of_devices(samples, phones)
    step = max(1, round(LENGTH * (1 - overlap)))

    X, activity, person, phone, n_back, n_gap = [], [], [], [], 0, 0
    stream = samples.person.astype(np.int16) * len(samples.devices) + samples.device
    for key in np.unique(stream):  # one person and phone
        rows = np.flatnonzero(stream == key)
        between = np.diff(samples.time[rows])
        back, gap = between < 0, between > _MAX_STEP
        n_back, n_gap = n_back + int(back.sum()), n_gap + int(gap.sum())
        breaks = label_breaks(samples.activity[rows])
        breaks[1:] |= back | gap
        for first, last in pairwise([0, *np.flatnonzero(breaks).tolist(), len(rows)]):
            run = rows[first:last]
            if samples.activity[run[0]] == NULL:
                continue
            values = samples.values[run].T
            if resample_hz is not None:
                values = _resampled(samples.time[run], values, resample_hz)
            X.append(cut(values, LENGTH, step, name=RAW_FILE).windows)
            activity += [samples.activity[run[0]]] * len(X[-1])
            person += [samples.person[run[0]]] * len(X[-1])
            phone += [samples.devices[samples.device[run[0]]]] * len(X[-1])
    if not person:
        problem = f"no {LENGTH} rows on end of one person, phone and activity"
        raise unreadable_file(path, problem=problem, advice="Check that it is the whole file.")

    dataset, order = dataset_of_people(
        "hhar", np.concatenate(X), np.array(activity, np.int64), np.array(person, np.int64), CLASSES, CHANNELS
    )
    dropped = int((samples.activity == NULL).sum())
    rate = "" if resample_hz is None else f", interpolated to {resample_hz:g} Hz"
    notes = (
        f"{len(samples.time):,} rows of {', '.join(samples.devices)}; "
        f"{dropped:,} of them are null or lack a reading and were dropped.",
        f"Runs were cut {n_back:,} times where the clock goes back and {n_gap:,} times where it jumps by "
        "more than 1 s.",
        f"{len(dataset):,} windows, one every {step} samples{rate}.",
    )
    rule = rule_of(models if phones is None else samples.devices, resample_hz, step)
    return Built(dataset, {"device": np.array(phone)[order]}, notes, rule=rule)


def rule_of(phones: Sequence[str] = ("s3",), resample_hz: float | None = None, step: int = LENGTH) -> str:
    """Return how windows, labels, domains and split are made."""
    rate = "each at its own rate" if resample_hz is None else f"interpolated linearly to {resample_hz:g} Hz"
    return (
        f"Windows of {LENGTH} samples, one every {step}, inside one uninterrupted run of one person, phone and "
        f"activity; phones: {', '.join(phones)}, {rate}; null dropped; domain = person a-i as 0-8; per person 30 % of "
        "the windows test, stratified by class, seed 1. Which phones, rate and overlap AdaTime used is not published: "
        "the defaults (both s3, no resampling, no overlap) are not established."
    )


def check(dataset: Dataset) -> list[str]:
    """Compare people, classes and test sizes with the published ones."""
    found, classes = windows_per_domain(dataset), set(dataset.y.tolist())
    tested = np.bincount(dataset.domain_ids[dataset.split == TEST], minlength=len(PEOPLE)).tolist()
    differences = {
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
    return [f"{what}: {', '.join(which)}." for what, which in differences.items() if which]


def _names(argument: str, names: object) -> tuple[str, ...]:
    """Read names from a list or from one text with commas."""
    listed = names.split(",") if isinstance(names, str) else names
    if not isinstance(listed, list | tuple) or not all(isinstance(name, str) for name in listed):
        raise invalid(argument, expected="names with commas between, or a list", got=repr(names), advice="Name phones.")
    if not listed:
        raise invalid(argument, expected="at least one name", got="none", advice="Name one.")
    return tuple(dict.fromkeys(name.strip() for name in listed))


def _of_devices(samples: Samples, chosen: Sequence[str]) -> Samples:
    """Keep the rows of single phones."""
    for name in chosen:
        check_choice("device", name, samples.devices)
    devices = tuple(sorted(chosen))
    kept = np.isin(samples.device, [samples.devices.index(name) for name in devices])
    new_index = np.array([devices.index(name) if name in devices else -1 for name in samples.devices], np.int16)
    return Samples(
        samples.person[kept],
        new_index[samples.device[kept]],
        samples.activity[kept],
        samples.time[kept],
        samples.values[kept],
        devices,
    )


def _resampled(time: NDArray[np.int64], run: NDArray[np.float32], hz: float) -> NDArray[np.float32]:
    """Interpolate a (channels, time) run linearly to `hz`; samples of one millisecond count as their mean."""
    moments, first, together = np.unique(time, return_index=True, return_counts=True)
    means = np.add.reduceat(run, first, axis=1, dtype=np.float64) / together
    grid = np.arange(moments[0], moments[-1] + 0.5, 1000 / hz)
    return np.stack([np.interp(grid, moments, channel) for channel in means]).astype(np.float32)


def read_samples(path: Path, log: Log, *, models: Sequence[str], rows_at_once: int = ROWS_AT_ONCE) -> Samples:
    """Read the rows of `models` from the csv; the result does not depend on `rows_at_once`."""
    log("HHAR: reading the rows (13 million in the host's file)")
    people, devices, activities, times, readings = [], [], [], [], []
    names: dict[str, None] = {}
    for chunk in _chunks(path, rows_at_once):
        rows = chunk[chunk["Model"].isin(models)]
        values = rows[["x", "y", "z"]].to_numpy(np.float32)
        sound = (np.abs(values) <= _MAX_VALUE).all(axis=1)  # False for NaN
        people.append(rows["User"].cat.codes.to_numpy())
        activities.append(np.where(sound, rows["gt"].cat.codes.to_numpy(), np.int8(NULL)))
        devices.append(rows["Device"].cat.remove_unused_categories())
        times.append(rows["Arrival_Time"].to_numpy())
        readings.append(values)
        names.update(dict.fromkeys(rows["Device"].unique()))
        if len(names) > _MAX_DEVICES:
            problem = f"more than {_MAX_DEVICES} devices, the last {list(names)[-1][:40]!r}"
            raise unreadable_file(path, problem=problem, advice=_ADVICE)
    if not names:
        expected, got = f"a phone in {path.name}", ", ".join(models)
        raise invalid("models", expected=expected, got=got, advice="Choose another model.")
    import pandas as pd  # loads slowly, and a list of data sets loads this module

    device = pd.api.types.union_categoricals(devices, sort_categories=True)
    return Samples(
        np.concatenate(people),
        device.codes,
        np.concatenate(activities),
        np.concatenate(times),
        np.concatenate(readings),
        tuple(device.categories),
    )


def _chunks(path: Path, rows_at_once: int) -> Iterator[pd.DataFrame]:
    """Yield the columns that are used, some rows at a time; the first damaged line is an error."""
    import pandas as pd

    with third_party(path, "cannot be read", "Check its permissions."), open(path, encoding="latin1") as stream:
        header = stream.readline().rstrip("\n").split(",")
    if missing := [column for column in _COLUMNS if header.count(column) != 1]:
        problem = f"line 1: expected column names, each once, but not so {', '.join(missing)}"
        raise unreadable_file(path, problem=problem, advice=_ADVICE)
    options: dict[str, Any] = {
        "usecols": _COLUMNS,
        "dtype": {
            **_NUMBERS,
            **dict.fromkeys(("Model", "Device"), "category"),
            **{column: pd.CategoricalDtype(list(known)) for column, known in _WORDS.items()},
        },
        "index_col": False,
        "keep_default_na": False,  # "null" is a word of gt
        "na_values": dict.fromkeys("xyz", _MISSING),
        "quoting": csv.QUOTE_NONE,
        "encoding": "latin1",
    }
    n_sound = 0
    with _pandas(path, n_sound):
        chunks = pd.read_csv(path, chunksize=rows_at_once, **options)
    with chunks:
        while True:
            with _pandas(path, n_sound):
                chunk = next(chunks, None)
            if chunk is None:
                return
            if chunk[[*_WORDS]].isna().any(axis=None):
                raise _damage(path, n_sound, "an unknown person or activity")
            yield chunk
            n_sound += len(chunk)


@contextmanager
def _pandas(path: Path, n_sound: int) -> Iterator[None]:
    """Turn an error of pandas, after `n_sound` rows, into one that names the damaged line."""
    import pandas as pd

    with (
        third_party(path, "not readable as csv", _ADVICE),
        process_state,
        warnings.catch_warnings(action="error", category=pd.errors.ParserWarning),
    ):
        try:
            yield
        except (ValueError, OverflowError, pd.errors.ParserWarning) as error:
            raise _damage(path, n_sound, str(error)) from None


def _damage(path: Path, n_sound: int, reason: str) -> UnreadableFile:
    """Build the error about the first damaged line after `n_sound` rows."""
    with open(path, encoding="latin1") as stream:
        header = stream.readline().rstrip("\n").split(",")
        lines = ((number, line.rstrip("\n")) for number, line in enumerate(stream, start=2) if line.strip())
        for number, line in islice(lines, n_sound, None):
            if problem := _problem_of(line, header):
                return unreadable_file(path, problem=f"line {number}: {problem}", advice=_ADVICE)
    return unreadable_file(path, problem=f"not readable as csv ({reason})", advice=_ADVICE)


def _problem_of(line: str, header: list[str]) -> str | None:
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
    for column, known in _WORDS.items():
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
