"""WISDM v1.1: thirty-six people with a phone in the front pocket, six activities.

Host      WISDM lab, Fordham University (Activity Prediction, not Actitracker and not UCI's set 507). Its text file has
          1,098,207 records `user,activity,timestamp,x,y,z;`: 20 Hz, acceleration with gravity in m/s², time in ns.
Domains   the people, 0 to 35: the host's 1 to 36 minus 1.
Classes   downstairs, jogging, sitting, standing, upstairs, walking: alphabetical, as in AdaTime's files. Many people
          did not sit or stand at all.
Channels  acc_x, acc_y, acc_z, as the host has them.

Records   end at a semicolon or at the end of a line; several may share a line, a comma may stand before the semicolon,
          and rows may be blank. A record counts if it has six fields, a known person and activity, and three
          coordinates that are numbers; all others are dropped, and the notes say how many and why.
Segments  a new one starts where person or activity changes, and where the clock goes back or jumps by more than 1 s
          (20 samples). People come in no order and do an activity several times; nothing is sorted by time.
          A timestamp of 0 (or one that is no number) says nothing: such a record continues the one before, and the
          next clock reading may be 50 ms later for each.
Windows   128 samples (6.4 s) without overlap, each inside one segment.
Split     per person 30 % test by AdaTime's rule (`transpl.datasets.recipe`). AdaTime has test = ceil(0.3 n) too, but
          its script and seed are not published, so the windows are like AdaTime's and not the same.
Scale     raw by default. `standardise="adatime"` does what AdaTime's files show: per person, every (channel, time
          step) gets mean 0 and standard deviation 1 over the train windows, and test is scaled alike. It is not scaled
          once more: the card's `normalise` says "adatime".
Extra     `wisdm_record`: the number of the record, among those that count, that is a window's first sample.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, unreadable_file
from transpl._utils.files import third_party
from transpl.datasets.dataset import TEST, TRAIN, Dataset
from transpl.datasets.recipe import Built, Log, Recipe, RemoteFile, dataset_of_people, only_file, windows_per_domain
from transpl.windows import cut, label_breaks

RAW_FILE = "WISDM_ar_v1.1_raw.txt"
LENGTH = 128
CLASSES = ("downstairs", "jogging", "sitting", "standing", "upstairs", "walking")
CHANNELS = ("acc_x", "acc_y", "acc_z")
PEOPLE = 36
RECORDS_PER_CLASS = (100_427, 342_177, 59_939, 48_395, 122_869, 424_400)  # the host's, with damaged ones
ADATIME_TEST_WINDOWS = {4: 66, 11: 76, 12: 87, 18: 106, 19: 132, 23: 60, 26: 82, 30: 103, 31: 83, 32: 69}
STANDARDISE = ("none", "adatime")

_MAX_STEP, _USUAL_STEP = 1_000_000_000, 50_000_000  # ns
_MAX_VALUE = 1e6  # m/s²
_MAX_TIME = 2**62  # ns; differences of such times fit int64
_CLASS_OF = {name.capitalize(): i for i, name in enumerate(CLASSES)}


class Records(NamedTuple):
    """The records that count, in the file's order, and how many others there are of each kind."""

    person: NDArray[np.int64]  # 0 to 35
    activity: NDArray[np.int64]  # index into CLASSES
    time: NDArray[np.int64]  # ns, 0 if unknown
    values: NDArray[np.float64]  # (n, 3)
    dropped: Counter[str]


def build(folder: Path, log: Log, *, standardise: str = "none") -> Built:
    """Read the raw text, cut it into windows and split each person's."""
    check_choice("standardise", standardise, STANDARDISE)
    path = only_file(folder, RAW_FILE)
    log("WISDM: reading the records")
    records = read_records(path)
    breaks = segment_breaks(records)
    windows, starts = cut(records.values.T, LENGTH, LENGTH, breaks=breaks, name=RAW_FILE)
    if len(starts) == 0:
        problem = f"no {LENGTH} records on end of one person and activity"
        raise unreadable_file(path, problem=problem, advice="Check that it is the whole file.")
    dataset, order = dataset_of_people(
        "wisdm", windows, records.activity[starts], records.person[starts], CLASSES, CHANNELS
    )
    if standardise == "adatime":
        dataset = standardised(dataset)
    notes = _notes(records, breaks, len(starts))
    return Built(dataset, {"wisdm_record": starts[order]}, notes, scaled=standardise, rule=rule_of(standardise))


def rule_of(standardise: str = "none") -> str:
    """Return how windows, labels, domains, split and scale are made."""
    scale = (
        "Values as the host has them."
        if standardise == "none"
        else "Per person, every channel and time step has mean 0 and standard deviation 1 over the train windows, and "
        "test is scaled alike."
    )
    return (
        "Windows of 128 samples without overlap, each inside one uninterrupted recording of one activity; domain = "
        "the host's user minus 1; per person 30 % of the windows test, stratified by class, seed 1. Like AdaTime's "
        f"windows, but not the same: its script and seed are not published. {scale}"
    )


def check(dataset: Dataset) -> list[str]:
    """Compare people, windows per class and AdaTime's ten known test sizes with the published ones."""
    found = windows_per_domain(dataset)
    tested = np.bincount(dataset.domain_ids[dataset.split == TEST], minlength=PEOPLE).tolist()
    per_class = np.bincount(dataset.y, minlength=len(CLASSES)).tolist()
    limits = [records // LENGTH for records in RECORDS_PER_CLASS]
    differences = {
        f"of {PEOPLE} people published, these have no windows": [str(i) for i in range(PEOPLE) if i not in found],
        "windows (in brackets what the host's records make at most)": [
            f"{name} {n:,} ({limit:,})"
            for name, n, limit in zip(CLASSES, per_class, limits, strict=True)
            if not 0.9 * limit <= n <= limit
        ],
        "test windows of a person (in brackets AdaTime's)": [
            f"{i}: {tested[i]} ({n})" for i, n in ADATIME_TEST_WINDOWS.items() if tested[i] != n
        ],
    }
    return [f"{what}: {', '.join(which)}." for what, which in differences.items() if which]


def read_records(path: Path) -> Records:
    """Read the raw text; every record either counts or is counted as dropped."""
    numbers, values, dropped = array("q"), array("d"), Counter[str]()
    for text in _record_texts(path):
        record = _parse(text)
        if isinstance(record, str):
            dropped[record] += 1
        else:
            numbers.extend(record[:3])
            values.extend(record[3:])
    person, activity, time = np.array(numbers, np.int64).reshape(-1, 3).T
    return Records(person, activity, time, np.array(values, np.float64).reshape(-1, 3), dropped)


def _record_texts(path: Path) -> Iterator[str]:
    """Yield every record that is not blank, without its semicolon."""
    with third_party(path, "cannot be read", "Check its permissions."):
        stream = open(path, encoding="latin1")  # noqa: SIM115  # decodes any byte; damage shows in the fields
    with stream:
        for line in stream:
            yield from (text for text in line.split(";") if text.strip())


def _parse(text: str) -> tuple[int, int, int, float, float, float] | str:
    """Return person, activity, time, x, y, z; or why the record does not count."""
    fields = text.split(",")
    if len(fields) == 7 and not fields[6].strip():
        fields.pop()
    if len(fields) != 6:
        return "without six fields"
    person = _whole_number(fields[0])
    if not 1 <= person <= PEOPLE:
        return f"without a person from 1 to {PEOPLE}"
    activity = _CLASS_OF.get(fields[1].strip().capitalize())
    if activity is None:
        return "without a known activity"
    try:
        x, y, z = map(float, fields[3:])
    except ValueError:
        x = y = z = np.nan
    if not (abs(x) <= _MAX_VALUE and abs(y) <= _MAX_VALUE and abs(z) <= _MAX_VALUE):  # also false for NaN
        return "without three coordinates"
    time = _whole_number(fields[2])
    return person - 1, activity, time if 0 < time < _MAX_TIME else 0, x, y, z


def _whole_number(text: str) -> int:
    """Return a whole number, or 0 for any other text."""
    try:
        return int(text)
    except ValueError:
        return 0


def segment_breaks(records: Records) -> NDArray[np.bool_]:
    """Mark the records that start a new segment."""
    breaks = label_breaks(records.person) | label_breaks(records.activity)
    segment = np.cumsum(breaks)
    # Compare each clock reading with the last one before it in the same segment.
    known = np.flatnonzero(records.time > 0)
    step = np.diff(records.time[known])
    unknown_between = np.diff(known) - 1
    odd = (step < 0) | (step > _MAX_STEP + unknown_between * _USUAL_STEP)
    breaks[known[1:]] |= odd & (segment[known[1:]] == segment[known[:-1]])
    return breaks


def standardised(dataset: Dataset) -> Dataset:
    """Give every (channel, time step) of each person mean 0 and standard deviation 1 over the train windows."""
    X = dataset.X.astype(np.float64)
    for i in dataset.domains:
        rows = dataset.domain_ids == i
        train = X[rows & (dataset.split == TRAIN)]
        spread = train.std(axis=0)
        X[rows] = (X[rows] - train.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return replace(dataset, X=X.astype(np.float32))


def _notes(records: Records, breaks: NDArray[np.bool_], n_windows: int) -> tuple[str, ...]:
    n = len(records.time)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(records.dropped.items())) or "none"
    per_class = np.bincount(records.activity, minlength=len(CLASSES)).tolist()
    differing = ", ".join(
        f"{name} {found:,} ({published:,})"
        for name, found, published in zip(CLASSES, per_class, RECORDS_PER_CLASS, strict=True)
        if found != published
    )
    return (
        f"{n:,} records count; dropped: {kinds}.",
        f"Records of an activity that differ from the host's count: {differing or 'none'}.",
        f"{int((records.time == 0).sum()):,} records have no timestamp and continue the record before.",
        f"{int(breaks.sum()) + 1:,} segments; {n - n_windows * LENGTH:,} records at their ends fill no window.",
    )


RECIPE = Recipe(
    name="wisdm",
    title="WISDM v1.1 activity prediction (36 people, phone in the front pocket)",
    homepage="https://www.cis.fordham.edu/wisdm/dataset.php",
    licence="terms of the WISDM lab: readme.txt in the archive, which must be passed on with the data",
    citation=(
        "Kwapisz, Weiss, Moore: Activity recognition using cell phone accelerometers. "
        "SIGKDD Explorations 12(2), 2010, 74-82"
    ),
    files=(
        RemoteFile(
            name="WISDM_ar_latest.tar.gz",
            urls=("https://www.cis.fordham.edu/wisdm/includes/datasets/latest/WISDM_ar_latest.tar.gz",),
        ),
    ),
    layout=f"WISDM_ar_v1.1/{RAW_FILE}",
    rule=rule_of(),
    build=build,
    check=check,
    options={
        "standardise": "'none' (raw, the default), or 'adatime': each person by the mean and spread of its train "
        "windows, per channel and time step"
    },
)
