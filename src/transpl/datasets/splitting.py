"""Which windows train and which test: AdaTime's rule for windows, and one for whole patients or recordings.

AdaTime's rule  Per domain: test gets ceil(share x n) windows, each class in proportion. A class's quota is rounded
                down; the windows that are then still to be given go to the classes with the largest remainders, and
                among equal remainders to classes drawn by lot. Windows are drawn by lot inside a class, and both parts
                are shuffled at the end. With share 0.3 and seed 1 this gives the published UCIHAR files, row by row.
Arithmetic      A quota is draws * size / total, in this order, as scikit-learn had it up to 0.24. Later releases take
                size / total first, whose rounding makes other remainders equal and moves windows of four UCIHAR users.
Lone windows    A class with a single window cannot be on both sides. It goes to train: a class that is only tested is
                always wrong, one that is only trained does no harm. The other classes fill up the test part. (AdaTime's
                rule has no answer here; scikit-learn refuses.)
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_fraction, check_int, invalid
from transpl.datasets.base import TEST, TRAIN

SHARE, SEED = 0.3, 1  # AdaTime's
Rows = NDArray[np.int64]


class Parts(NamedTuple):
    """Row numbers of both parts; together they are all rows, each once."""

    train: Rows
    test: Rows


def stratified_test_rows(y: ArrayLike, share: float = SHARE, seed: int = SEED) -> Parts:
    """Split the rows of one domain by AdaTime's rule; both parts are in the order its files have."""
    labels = _one_axis("y", y)
    _check(share, seed)
    rows_of_class = _rows_per_value(labels)
    lone = [rows for rows in rows_of_class if len(rows) == 1]
    shared = [rows for rows in rows_of_class if len(rows) > 1]
    rng = np.random.RandomState(seed)  # the published order is this generator's
    in_train, in_test = _deal(shared, _test_size(len(labels), shared, share), rng)
    return Parts(rng.permutation(_joined(in_train + lone)), rng.permutation(_joined(in_test)))


def group_test_rows(groups: ArrayLike, y: ArrayLike, share: float = SHARE, seed: int = SEED) -> Parts:
    """Split by group (patient, recording): no group is on both sides; both parts keep the order of the rows.

    All rows of a group must have one label. Of the g groups of a label, share x g go to test, rounded to the nearest,
    but at least one on each side if there are two; a lone group goes to train.
    """
    labels, names = _one_axis("y", y), _one_axis("groups", groups)
    _check(share, seed)
    label_of_group, group_of_row = _labelled_groups(names, labels)
    rng = np.random.default_rng(seed)
    tested = [_some_groups(groups_of_label, share, rng) for groups_of_label in _rows_per_value(label_of_group)]
    is_test = np.isin(group_of_row, _joined(tested))
    return Parts(np.flatnonzero(~is_test), np.flatnonzero(is_test))


def split_each(
    domain: ArrayLike, y: ArrayLike, share: float = SHARE, seed: int = SEED
) -> tuple[Rows, NDArray[np.int8]]:
    """Split every domain by AdaTime's rule.

    Returns the rows in the order of the prepared file (domains ascending, in each the train part, then the test part)
    and for each row in this order which part it is in.
    """
    ids, labels = _one_axis("domain", domain), _one_axis("y", y)
    if len(ids) != len(labels):
        raise invalid("domain", expected=f"one entry per label ({len(labels)})", got=len(ids), advice="Check it.")
    order, split = [], []
    for rows in _rows_per_value(ids):
        train, test = stratified_test_rows(labels[rows], share, seed)
        order += [rows[train], rows[test]]
        split += [np.full(len(train), TRAIN, np.int8), np.full(len(test), TEST, np.int8)]
    return np.concatenate(order), np.concatenate(split)


def _test_size(n: int, shared: list[Rows], share: float) -> int:
    """ceil(share x n), but so few that train can have a window of each class that is on both sides."""
    spare = sum(len(rows) - 1 for rows in shared)
    return min(ceil(share * n), spare)


def _deal(rows_of_class: list[Rows], n_test: int, rng: np.random.RandomState) -> tuple[list[Rows], list[Rows]]:
    """Draw the windows of both parts, class by class."""
    if not rows_of_class:
        return [], []
    sizes = np.array([len(rows) for rows in rows_of_class])
    n_train = _quotas(sizes, int(sizes.sum()) - n_test, rng)
    _quotas(sizes - n_train, n_test, rng)  # always all that is left; AdaTime's generator draws lots for it nonetheless
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


def _some_groups(groups: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Draw the groups of one label that are tested."""
    nearest = floor(share * len(groups) + 0.5)
    n = min(max(nearest, 1), len(groups) - 1)
    return rng.permutation(groups)[:n]


def _labelled_groups(names: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], Rows]:
    """Return the label of each group, and the number of the group of each row."""
    if len(names) != len(labels):
        raise invalid("groups", expected=f"one entry per label ({len(labels)})", got=len(names), advice="Check it.")
    known, first, group_of_row = np.unique(names, return_index=True, return_inverse=True)
    label_of_group = labels[first]
    strange = np.flatnonzero(labels != label_of_group[group_of_row])
    if len(strange):
        row = int(strange[0])
        got = f"{str(known[group_of_row[row]])!r} with {label_of_group[group_of_row[row]]} and {labels[row]}"
        raise invalid("groups", expected="one label per group", got=got, advice="Split such a group by its label.")
    return label_of_group, group_of_row


def _rows_per_value(values: NDArray[Any]) -> list[Rows]:
    """The rows of each value, values ascending, rows in order."""
    _, sizes = np.unique(values, return_counts=True)
    return np.split(np.argsort(values, kind="stable"), np.cumsum(sizes)[:-1]) if len(values) else []


def _joined(parts: list[Rows]) -> Rows:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _one_axis(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0:
        raise invalid(name, expected="one entry per row", got=f"shape {array.shape}", advice="Pass a list of them.")
    return array


def _check(share: float, seed: int) -> None:
    check_fraction("share", share)
    check_int("seed", seed, least=0)
