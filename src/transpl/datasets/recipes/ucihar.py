"""UCI HAR: thirty people with a phone at the waist, six activities, prepared as AdaTime and TransPL have it.

Host      UCI machine learning repository 240, CC BY 4.0. 10,299 windows of 128 samples (2.56 s at 50 Hz), cut by the
          host with 50 % overlap and filtered: 7,352 in its train part, 2,947 in its test part.
Domains   the people, 1 to 30 as the host numbers them.
Classes   walking, walking_upstairs, walking_downstairs, sitting, standing, laying: the host's 1 to 6 minus 1.
Channels  body_acc x y z (g, gravity removed), body_gyro x y z (rad/s), total_acc x y z (g). Nothing is scaled.

Split     the host's parts hold different people, so they are pooled (train file, then test file) and each person is
          split by AdaTime's rule (`transpl.datasets.recipe`): 30 % test, seed 1. Windows, split and order are then
          AdaTime's, bit for bit, for all thirty people.
Leak      windows overlap by half, so samples of one window can be in train and test of the same person. Every result
          published on this split has that leak; the target's test windows are never trained on.
Extra     `uci_row`: the row in the host's order, 0 to 10,298, train file first.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile, unreadable_file
from transpl._utils.files import third_party
from transpl._utils.locks import process_state
from transpl.datasets.dataset import Dataset
from transpl.datasets.recipe import Built, Log, Recipe, RemoteFile, dataset_of_people, only_file, windows_per_domain

LENGTH = 128
CLASSES = ("walking", "walking_upstairs", "walking_downstairs", "sitting", "standing", "laying")
CHANNELS = tuple(f"{signal}_{axis}" for signal in ("body_acc", "body_gyro", "total_acc") for axis in "xyz")
PEOPLE = 30
# fmt: off
WINDOWS_PER_PERSON = (
    347, 302, 341, 317, 302, 325, 308, 281, 288, 294, 316, 320, 327, 323, 328,
    366, 368, 364, 360, 354, 408, 321, 372, 381, 409, 392, 376, 382, 344, 383,
)
# fmt: on
_MAX = float(np.finfo(np.float32).max)
_ADVICE = "Unpack the archive again."


def build(folder: Path, log: Log) -> Built:
    """Read the text files of the host's two parts and split each person's windows."""
    X, labels, people = [], [], []
    for part in ("train", "test"):
        log(f"UCI HAR: reading the host's {part} part")
        label_file = only_file(folder, f"y_{part}.txt")
        labels.append(_read_integers(label_file, highest=len(CLASSES)))
        n = len(labels[-1])
        people_file = only_file(folder, f"subject_{part}.txt")
        people.append(_read_integers(people_file, highest=PEOPLE))
        _check_lines(people_file, len(people[-1]), label_file, n)
        X.append(np.empty((n, len(CHANNELS), LENGTH), np.float32))
        for c, channel in enumerate(CHANNELS):
            path = only_file(folder, f"{channel}_{part}.txt")
            values = _read_numbers(path, per_line=LENGTH)
            _check_lines(path, len(values), label_file, n)
            X[-1][:, c] = values
    dataset, order = dataset_of_people(
        "ucihar", np.concatenate(X), np.concatenate(labels) - 1, np.concatenate(people), CLASSES, CHANNELS
    )
    return Built(dataset, {"uci_row": order}, ())


def check(dataset: Dataset) -> list[str]:
    """Compare the number of windows, in all and per person, with the published ones."""
    found = windows_per_domain(dataset)
    differences = [
        f"Person {i}: {found.get(i, 0)} windows, published are {n}."
        for i, n in enumerate(WINDOWS_PER_PERSON, start=1)
        if found.get(i, 0) != n
    ]
    if len(dataset) != sum(WINDOWS_PER_PERSON):
        differences.append(f"{len(dataset):,} windows, published are {sum(WINDOWS_PER_PERSON):,}.")
    return differences


def _check_lines(path: Path, n: int, label_file: Path, n_labels: int) -> None:
    if n != n_labels:
        raise unreadable_file(path, problem=f"{n} lines, but {label_file.name} has {n_labels}", advice=_ADVICE)


def _read_integers(path: Path, *, highest: int) -> NDArray[np.int64]:
    """Read one whole number from 1 to `highest` per line."""
    values = _read_numbers(path, per_line=1)[:, 0]
    bad = np.flatnonzero((values != np.floor(values)) | (values < 1) | (values > highest))
    if len(bad):
        number, line = _lines(path)[bad[0]]
        problem = f"line {number}: expected a whole number from 1 to {highest}, got {line.strip()!r}"
        raise unreadable_file(path, problem=problem, advice=_ADVICE)
    return values.astype(np.int64)


def _read_numbers(path: Path, *, per_line: int) -> NDArray[np.float64]:
    """Read `per_line` finite numbers from each line, (lines, per_line)."""
    with third_party(path, "not a table of numbers", _ADVICE), process_state, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty file is handled below
        try:
            values = np.loadtxt(path, comments=None, ndmin=2, encoding="latin1")
        except (ValueError, IndexError):
            raise _damage(path, per_line) from None
    if values.size == 0:
        raise unreadable_file(path, problem="the file is empty", advice=_ADVICE)
    if values.shape[1] != per_line or not (np.abs(values) <= _MAX).all():
        raise _damage(path, per_line)
    return values


def _damage(path: Path, per_line: int) -> UnreadableFile:
    """Build the error about the first line that is not `per_line` finite numbers."""
    for number, line in _lines(path):
        words = line.split()
        if len(words) != per_line:
            problem = f"line {number}: expected {per_line} numbers, got {len(words)}"
            return unreadable_file(path, problem=problem, advice=_ADVICE)
        for word in words:
            try:
                sound = abs(float(word)) <= _MAX
            except ValueError:
                sound = False
            if not sound:
                problem = f"line {number}: expected numbers, got {word[:40]!r}"
                return unreadable_file(path, problem=problem, advice=_ADVICE)
    return unreadable_file(path, problem="not a table of numbers", advice=_ADVICE)


def _lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines that are not blank, with their numbers from 1."""
    lines = path.read_text(encoding="latin1").split("\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


RECIPE = Recipe(
    name="ucihar",
    title="UCI HAR: human activity recognition using smartphones (30 people, phone at the waist)",
    homepage="https://archive.ics.uci.edu/dataset/240/human+activity+recognition+using+smartphones",
    licence="CC BY 4.0",
    citation=(
        "Anguita, Ghio, Oneto, Parra, Reyes-Ortiz: A public domain dataset for human activity recognition using "
        "smartphones. ESANN 2013. doi:10.24432/C54S4K"
    ),
    files=(
        RemoteFile(
            name="human+activity+recognition+using+smartphones.zip",
            urls=("https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip",),
            sha256="c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
            instead=(  # the host's older address sends the archive inside the other one
                RemoteFile(
                    name="UCI HAR Dataset.zip",
                    urls=("https://archive.ics.uci.edu/ml/machine-learning-databases/00240/UCI%20HAR%20Dataset.zip",),
                    sha256="2045e435c955214b38145fb5fa00776c72814f01b203fec405152dac7d5bfeb0",
                ),
            ),
        ),
    ),
    layout=(
        "UCI HAR Dataset/{train,test}/ with y_{part}.txt, subject_{part}.txt and the nine files "
        "Inertial Signals/{body_acc,body_gyro,total_acc}_{x,y,z}_{part}.txt"
    ),
    rule=(
        "The host's windows of 128 samples, its train and test part pooled; domain = person 1-30; per person 30 % of "
        "the windows test, stratified by class, seed 1: the windows, split and order of AdaTime and TransPL. "
        "Raw units. Windows overlap by half, so train and test of a person share samples."
    ),
    build=build,
    check=check,
)
