"""From windows of several people to a data set: each person is a domain and is split by AdaTime's rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transpl.datasets.base import Dataset
from transpl.datasets.pairs import PUBLISHED, Pairs
from transpl.datasets.splitting import split_each


def dataset_of_people(
    name: str,
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    person: NDArray[np.int64],
    class_names: tuple[str, ...],
    channel_names: tuple[str, ...],
) -> tuple[Dataset, NDArray[np.int64]]:
    """Return the data set (people ascending, each train part first), and which window of `X` each of its rows is."""
    order, split = split_each(person, y)
    dataset = Dataset(
        name=name,
        X=X[order],
        y=y[order],
        domain_ids=person[order],
        split=split,
        class_names=class_names,
        channel_names=channel_names,
        pairs=_published_pairs_among(name, set(np.unique(person).tolist())),
    )
    return dataset, order


def _published_pairs_among(name: str, people: set[int]) -> Pairs:
    """The pairs whose people have windows; a recipe's `check` tells the user if somebody is missing."""
    return tuple(pair for pair in PUBLISHED[name] if set(pair) <= people)
