"""What the recipes of public data sets share: the contract `Recipe`, finding raw files, and the train/test split.

AdaTime's split. Per domain, the test part gets ceil(share * n) windows, each class in proportion: a class's quota is
rounded down, and the windows left over go to the classes with the largest remainders, drawn at random among equal ones.
Windows are drawn at random within a class, and both parts are shuffled. With share 0.3 and seed 1 this reproduces the
published UCIHAR files row by row. The quota must be computed as draws * size / total, in this order, as scikit-learn
did up to 0.24; later releases round differently, which moves windows of four UCIHAR users.

A class with a single window in a domain goes to train: a class that is tested but never trained is always wrong. The
other classes fill up the test part. (AdaTime's rule does not cover this case; scikit-learn refuses it.)
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import InputError, check_fraction, check_int, invalid, unreadable_file
from transpl._utils.locks import process_state
from transpl.datasets.dataset import TEST, TRAIN, Dataset
from transpl.datasets.pairs import PUBLISHED

SHARE, SEED = 0.3, 1  # AdaTime's
Log = Callable[[str], None]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class RemoteFile:
    """A file that its host publishes.

    Parameters
    ----------
    name : str
        The file name on disk.
    urls : tuple of str
        Where to download it: the host first, then mirrors and older addresses.
    sha256 : str, optional
        The published hash. Without one, the hash of the first download is recorded and checked from then on.
    instead : tuple of RemoteFile
        Other files with the same content.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    instead: tuple[RemoteFile, ...] = ()

    @property
    def choices(self) -> tuple[RemoteFile, ...]:
        """This file and its alternatives, the preferred one first."""
        return (self, *self.instead)


class Built(NamedTuple):
    """What a recipe builds from the raw files."""

    dataset: Dataset
    extras: dict[str, NDArray[Any]]  # further arrays for the npz, one entry per window
    notes: tuple[str, ...]  # one sentence each: what was dropped or repaired, and how much
    scaled: str = "none"  # the rule by which `build` has scaled the values; they are not scaled again
    rule: str = ""  # `Recipe.rule` for the options used; empty: the same as `Recipe.rule`


@dataclass(frozen=True)
class Recipe:
    """How the raw files of a public data set become a prepared one; each file in `recipes/` defines one.

    Parameters
    ----------
    name, title, homepage, licence, citation : str
    files : tuple of RemoteFile
    layout : str
        Which unpacked files `build` expects, for users who already have them.
    rule : str
        How windows, labels, domains and splits are made.
    build : callable
        (folder with the unpacked files, log, **options) -> Built
    check : callable
        Dataset -> one sentence for every count that differs from the published one.
    options : mapping of str to str
        The options of `build`, with a line of help each.
    """

    name: str
    title: str
    homepage: str
    licence: str
    citation: str
    files: tuple[RemoteFile, ...]
    layout: str
    rule: str
    build: Callable[..., Built]
    check: Callable[[Dataset], list[str]]
    options: Mapping[str, str] = field(default_factory=dict)


def only_file(folder: Path, name: str) -> Path:
    """Return the one file called `name` in or below `folder`."""
    found = sorted(path for path in folder.rglob(name) if path.is_file())
    if not found:
        raise unreadable_file(folder, problem=f"no {name} in it", advice="Unpack the whole archive there.")
    if len(found) > 1:
        places = ", ".join(str(path.parent.relative_to(folder)) for path in found[:3])
        raise unreadable_file(folder, problem=f"{name} is in several places ({places})", advice="Keep only one copy.")
    return found[0]


def windows_per_domain(dataset: Dataset) -> dict[int, int]:
    """Return how many windows each domain has."""
    ids, counts = np.unique(dataset.domain_ids, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def import_extra(package: str, purpose: str, extra: str) -> Any:
    """Import a package that only some data sets need, without its warnings."""
    try:
        with process_state, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(package)
    except ImportError:
        problem = f"{purpose} needs {package}, which is not installed"
        raise InputError(f'{problem}. Install it with: pip install "transpl[{extra}]"') from None


def dataset_of_people(
    name: str,
    X: NDArray[np.float32],
    y: Rows,
    person: Rows,
    class_names: tuple[str, ...],
    channel_names: tuple[str, ...],
) -> tuple[Dataset, Rows]:
    """Make each person a domain, split by AdaTime's rule; also return which row of `X` each window is.

    Pairs of people without windows are left out; the recipe's `check` reports who is missing.
    """
    order, split = split_each(person, y)
    present = set(person.tolist())
    dataset = Dataset(
        name=name,
        X=X[order],
        y=y[order],
        domain_ids=person[order],
        split=split,
        class_names=class_names,
        channel_names=channel_names,
        pairs=tuple(pair for pair in PUBLISHED[name] if set(pair) <= present),
    )
    return dataset, order


class Parts(NamedTuple):
    """Row numbers of both parts; each row is in exactly one."""

    train: Rows
    test: Rows


def stratified_test_rows(y: ArrayLike, share: float = SHARE, seed: int = SEED) -> Parts:
    """Split the rows of one domain by AdaTime's rule; both parts are in the order of its files."""
    labels = _check_rows("y", y)
    _check_split(share, seed)
    rows_of_class = _rows_per_value(labels)
    single = [rows for rows in rows_of_class if len(rows) == 1]
    shared = [rows for rows in rows_of_class if len(rows) > 1]
    rng = np.random.RandomState(seed)  # the generator that gives the published order
    # Train keeps at least one window of each class that is in both parts.
    n_test = min(ceil(share * len(labels)), sum(len(rows) - 1 for rows in shared))
    in_train, in_test = _draw_parts(shared, n_test, rng) if shared else ([], [])
    return Parts(rng.permutation(_joined(in_train + single)), rng.permutation(_joined(in_test)))


def group_test_rows(groups: ArrayLike, y: ArrayLike, share: float = SHARE, seed: int = SEED) -> Parts:
    """Split by group (patient, recording) so that no group is in both parts; rows keep their order.

    All rows of a group must have one label. Of the g groups of a label, share * g are tested, rounded to the nearest,
    but at least one is in each part if there are two. A single group goes to train.
    """
    labels, names = _check_rows("y", y), _check_rows("groups", groups)
    _check_split(share, seed)
    label_of_group, group_of_row = _labels_of_groups(names, labels)
    rng = np.random.default_rng(seed)
    tested = []
    for groups_of_label in _rows_per_value(label_of_group):
        nearest = floor(share * len(groups_of_label) + 0.5)
        tested.append(rng.permutation(groups_of_label)[: min(max(nearest, 1), len(groups_of_label) - 1)])
    is_test = np.isin(group_of_row, _joined(tested))
    return Parts(np.flatnonzero(~is_test), np.flatnonzero(is_test))


def split_each(
    domain: ArrayLike, y: ArrayLike, share: float = SHARE, seed: int = SEED
) -> tuple[Rows, NDArray[np.int8]]:
    """Split every domain by AdaTime's rule.

    Returns
    -------
    order : array (n,)
        The rows in the order of the prepared file: domains ascending, in each the train part before the test part.
    split : array (n,)
        0 (train) or 1 (test) for each row in this order.
    """
    ids, labels = _check_rows("domain", domain), _check_rows("y", y)
    if len(ids) != len(labels):
        raise invalid("domain", expected=f"one entry per label ({len(labels)})", got=len(ids), advice="Check it.")
    order, split = [], []
    for rows in _rows_per_value(ids):
        train, test = stratified_test_rows(labels[rows], share, seed)
        order += [rows[train], rows[test]]
        split += [np.full(len(train), TRAIN, np.int8), np.full(len(test), TEST, np.int8)]
    return np.concatenate(order), np.concatenate(split)


def _draw_parts(rows_of_class: list[Rows], n_test: int, rng: np.random.RandomState) -> tuple[list[Rows], list[Rows]]:
    """Draw the windows of both parts, class by class."""
    sizes = np.array([len(rows) for rows in rows_of_class])
    n_train = _quotas(sizes, int(sizes.sum()) - n_test, rng)
    _quotas(sizes - n_train, n_test, rng)  # no effect on the quotas, but AdaTime's generator draws here too
    shuffled = [rows[rng.permutation(len(rows))] for rows in rows_of_class]
    train = [rows[:n] for rows, n in zip(shuffled, n_train, strict=True)]
    test = [rows[n:] for rows, n in zip(shuffled, n_train, strict=True)]
    return train, test


def _quotas(sizes: Rows, draws: int, rng: np.random.RandomState) -> Rows:
    """Share `draws` out in proportion to `sizes`: rounded down, the rest to the largest remainders."""
    exact = draws * sizes / max(int(sizes.sum()), 1)
    quota = np.floor(exact).astype(np.int64)
    remainder = exact - quota
    for value in np.unique(remainder)[::-1]:
        missing = draws - int(quota.sum())
        if missing <= 0:
            break
        tied = np.flatnonzero(remainder == value)
        quota[rng.choice(tied, size=min(missing, len(tied)), replace=False)] += 1
    return quota


def _labels_of_groups(names: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], Rows]:
    """Return the label of each group, and the number of the group of each row."""
    if len(names) != len(labels):
        raise invalid("groups", expected=f"one entry per label ({len(labels)})", got=len(names), advice="Check it.")
    known, first, group_of_row = np.unique(names, return_index=True, return_inverse=True)
    label_of_group = labels[first]
    mixed = np.flatnonzero(labels != label_of_group[group_of_row])
    if len(mixed):
        row = int(mixed[0])
        got = f"{str(known[group_of_row[row]])!r} with {label_of_group[group_of_row[row]]} and {labels[row]}"
        raise invalid("groups", expected="one label per group", got=got, advice="Split such a group by its label.")
    return label_of_group, group_of_row


def _rows_per_value(values: NDArray[Any]) -> list[Rows]:
    """The rows of each value, values ascending, rows in order."""
    _, sizes = np.unique(values, return_counts=True)
    return np.split(np.argsort(values, kind="stable"), np.cumsum(sizes)[:-1])


def _joined(parts: list[Rows]) -> Rows:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _check_rows(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0:
        raise invalid(name, expected="one entry per row", got=f"shape {array.shape}", advice="Pass a list of them.")
    return array


def _check_split(share: float, seed: int) -> None:
    check_fraction("share", share)
    check_int("seed", seed, least=0)
