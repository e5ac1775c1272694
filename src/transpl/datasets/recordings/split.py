"""Splitting a user's windows into train and test so that no sample is on both sides.

by_group  whole recordings: in each domain, of the recordings with the same most frequent class, `test_share` are test
          (at least one of two or more; a single one trains). A recording with the only windows of a class of its domain
          trains too, unless the domain would then have no test recording
by_time   the last `test_share` of each class of each recording are test; windows across the border are left out

Without a rule, it is by_group if that gives every domain a test recording and every class of it one to train on,
otherwise by_time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, check_fraction, invalid
from transpl.datasets.dataset import TEST, TRAIN
from transpl.datasets.recordings.clocks import Ints

SPLITS = ("by_group", "by_time")
DROPPED = -1
_ADVICE = {
    "by_group": "Name more recordings (group_col, or more files), or choose split by_time.",
    "by_time": "Choose a shorter window or step, or longer recordings, or split by_group.",
}


class Placed(NamedTuple):
    """Where each window comes from, (n,) each, in the order of the recordings."""

    y: Ints
    domain: Ints
    recording: Ints
    first: Ints  # row of the file that holds the first sample
    last: Ints


class Names(NamedTuple):
    """The classes and domains that the numbers of `Placed` stand for."""

    classes: list[str]
    domains: dict[int, str]


def check_split(split: str | None, test_share: float) -> None:
    """Raise unless the rule is known or None, and the share lies between 0 and 1."""
    if split is not None:
        check_choice("split", split, SPLITS)
    check_fraction("test_share", test_share)


def choose_split(placed: Placed, names: Names, test_share: float, seed: int) -> tuple[str, str]:
    """Choose the rule, and say why in a sentence."""
    parts = split_windows(placed, "by_group", test_share, seed)
    for domain, name in names.domains.items():
        here = placed.domain == domain
        if not (here & (parts == TEST)).any():
            return "by_time", f"Split by_time was chosen: by recordings, domain {name!r} would have no test window."
        lost = _classes(placed, here) - _classes(placed, here & (parts == TRAIN))
        if lost:
            word = names.classes[min(lost)]
            return "by_time", f"Split by_time was chosen: by recordings, domain {name!r} could not train on {word!r}."
    return "by_group", "Split by_group was chosen: every domain has recordings enough to test on whole ones."


def missing_classes(placed: Placed, parts: NDArray[np.int8], names: Names) -> list[str]:
    """Return a sentence for every part of a domain that lacks a class."""
    sentences = []
    for domain, name in names.domains.items():
        here = placed.domain == domain
        present = _classes(placed, here)
        absent = {
            "": set(range(len(names.classes))) - present,
            "train ": present - _classes(placed, here & (parts == TRAIN)),
            "test ": present - _classes(placed, here & (parts == TEST)),
        }
        for word, lacking in absent.items():
            if lacking:
                classes = ", ".join(repr(names.classes[k]) for k in sorted(lacking))
                sentences.append(f"Domain {name!r} has no {word}window of class {classes}.")
    return sentences


def split_windows(placed: Placed, split: str, test_share: float, seed: int) -> NDArray[np.int8]:
    """Return TRAIN, TEST or DROPPED for each window."""
    parts = np.full(len(placed.y), TRAIN, np.int8)
    if split == "by_group":
        rng = np.random.default_rng(seed)
        for domain in np.unique(placed.domain):
            parts[np.isin(placed.recording, _choose_test_recordings(placed, domain, test_share, rng))] = TEST
    else:
        for rows in _by_recording_and_class(placed.recording, placed.y):
            parts[rows] = _split_by_time(placed, rows, test_share)
    return parts


def check_parts(placed: Placed, parts: NDArray[np.int8], domain_names: dict[int, str], split: str) -> None:
    """Raise unless every domain has train and test windows."""
    for domain, name in domain_names.items():
        for part, word in ((TRAIN, "train"), (TEST, "test")):
            if not ((placed.domain == domain) & (parts == part)).any():
                raise invalid(
                    "split",
                    expected=f"a train and a test window in every domain by {split!r}",
                    got=f"no {word} window in domain {name!r}",
                    advice=_ADVICE[split],
                )


def _classes(placed: Placed, rows: NDArray[np.bool_]) -> set[int]:
    return set(np.unique(placed.y[rows]).tolist())


def _choose_test_recordings(placed: Placed, domain: int, test_share: float, rng: np.random.Generator) -> Ints:
    rows = np.flatnonzero(placed.domain == domain)
    recordings, place = np.unique(placed.recording[rows], return_inverse=True)
    counts = np.zeros((len(recordings), placed.y.max() + 1), np.int64)
    np.add.at(counts, (place, placed.y[rows]), 1)
    main = counts.argmax(axis=1)
    has = counts > 0
    trains = np.ones(len(recordings), np.bool_)
    spare: list[int] = []
    for k in np.unique(main):
        same = rng.permutation(np.flatnonzero(main == k))
        n = min(max(1, round(test_share * len(same))), len(same) - 1)
        spare.extend(same.tolist() if n else [])
        _take_from_training(same, n, has, trains)
    if trains.all():
        _take_from_training(np.arange(len(recordings)), 1, has, trains)
    if trains.all() and spare:
        alone = has & (has.sum(axis=0) == 1)
        trains[min(spare, key=lambda i: int(alone[i].sum()))] = False
    return recordings[~trains]


def _take_from_training(candidates: Ints, n: int, has: NDArray[np.bool_], trains: NDArray[np.bool_]) -> None:
    """Take up to n recordings out of training, but none with the last training windows of a class."""
    left = has[trains].sum(axis=0)
    for i in candidates:
        if n and (left[has[i]] > 1).all():
            trains[i], n = False, n - 1
            left = left - has[i]


def _by_recording_and_class(recording: Ints, y: Ints) -> list[Ints]:
    """Return the windows of each (recording, class), in order."""
    order = np.lexsort((y, recording))
    edges = np.flatnonzero((np.diff(recording[order]) != 0) | (np.diff(y[order]) != 0)) + 1
    return np.split(order, edges)


def _split_by_time(placed: Placed, rows: Ints, test_share: float) -> NDArray[np.int8]:
    """Split the windows of one class of one recording at a row; all of them train if none is before it."""
    n_test = max(1, round(test_share * len(rows)))
    border = placed.first[rows[-n_test]]
    later = placed.first[rows] >= border
    earlier = placed.last[rows] < border
    if not earlier.any():
        return np.full(len(rows), TRAIN, np.int8)
    return np.where(later, TEST, np.where(earlier, TRAIN, DROPPED)).astype(np.int8)
