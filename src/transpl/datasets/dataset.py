"""A data set: windows of several domains, each with a train and a test part, and the pairs to adapt between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, invalid
from transpl.windows import plain_array

TRAIN, TEST = 0, 1
RULES = ("none", "domain", "source_stats", "per_split")  # of normalised()
_CONSTANT = 1e-7  # a spread below this part of a channel's largest value is float32 rounding


class Domain(NamedTuple):
    """The windows of one domain, (n, channels, time) float32, and their class indices, (n,) int64."""

    X_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled windows of several domains. The fields are checked and converted when a Dataset is created.

    Parameters
    ----------
    name : str
    X : array (n, channels, time)
        Finite numbers; kept as float32.
    y : array (n,)
        Class of each window, an index into `class_names`.
    domain_ids : array (n,)
        Domain (user, device, patient group) of each window.
    split : array (n,)
        0 for train, 1 for test.
    class_names, channel_names : tuple of str
    pairs : tuple of (int, int)
        The (source, target) domains to adapt between.
    groups : array (n,), optional
        Recording or patient of each window, if known.

    Examples
    --------
    >>> from transpl import datasets
    >>> data = datasets.load("synthetic")
    >>> data.domains, data.pairs[0]
    ((0, 1, 2), (0, 1))
    >>> data.domain(1).X_train.shape
    (120, 3, 64)
    """

    name: str
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    domain_ids: NDArray[np.int64]
    split: NDArray[np.int8]
    class_names: tuple[str, ...]
    channel_names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        fields: dict[str, Any] = {"X": _check_windows(self.X)}
        for field, dtype in (("y", np.int64), ("domain_ids", np.int64), ("split", np.int8), ("groups", np.int64)):
            if getattr(self, field) is not None:
                fields[field] = check_integers(field, getattr(self, field), len(fields["X"]), dtype)
        for field in ("class_names", "channel_names"):
            fields[field] = tuple(str(name) for name in getattr(self, field))
        fields["pairs"] = _check_pairs(self.pairs, fields["domain_ids"])
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        self._check_names()

    def __len__(self) -> int:
        return len(self.X)

    @property
    def domains(self) -> tuple[int, ...]:
        """The ids of all domains, sorted."""
        return tuple(np.unique(self.domain_ids).tolist())

    def domain(self, i: int) -> Domain:
        """Return copies of the train and test part of domain `i`."""
        train, test = self._parts(i)
        return Domain(self.X[train], self.y[train], self.X[test], self.y[test])

    def domain_groups(self, i: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | tuple[None, None]:
        """Return the groups of the train and test windows of domain `i`; (None, None) if groups are unknown."""
        train, test = self._parts(i)
        return (None, None) if self.groups is None else (self.groups[train], self.groups[test])

    def _parts(self, i: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Masks (n,) of the train and test windows of domain `i`."""
        if i not in self.domains:
            known = ", ".join(map(str, self.domains))
            raise invalid("domain", expected=f"one of {known}", got=repr(i), advice=f"Choose a domain of {self.name}.")
        in_domain = self.domain_ids == i
        return in_domain & (self.split == TRAIN), in_domain & (self.split == TEST)

    def _check_names(self) -> None:
        K, channels = len(self.class_names), self.X.shape[1]
        if len(self.channel_names) != channels:
            got = len(self.channel_names)
            raise invalid("channel_names", expected=f"{channels} names", got=got, advice="Name each channel.")
        check_class_indices(self.y, K)
        if not set(values := np.unique(self.split).tolist()) <= {TRAIN, TEST}:
            raise invalid("split", expected="only 0 (train) and 1 (test)", got=values, advice="Recode it.")
        for field, names in (("class_names", self.class_names), ("channel_names", self.channel_names)):
            if len(set(names)) != len(names):
                raise invalid(field, expected="no name twice", got=names, advice="Give each its own name.")


def _check_windows(X: Any) -> NDArray[np.float32]:
    values = plain_array(X)
    if values.ndim != 3 or 0 in values.shape or values.dtype.kind not in "fiu":
        expected, got = (
            "numbers of shape (n, channels, time), none of them 0",
            f"{values.dtype} of shape {values.shape}",
        )
        raise invalid("X", expected=expected, got=got, advice="Reshape your data.")
    with np.errstate(over="ignore"):
        values = values.astype(np.float32, copy=False)
    if bad := int((~np.isfinite(values)).sum()):
        expected = "finite numbers that fit float32"
        raise invalid("X", expected=expected, got=f"{bad} that are not", advice="Cut out the gaps.")
    return values


def check_class_indices(y: NDArray[np.integer[Any]], K: int) -> None:
    """Raise unless every label is the index of one of K classes."""
    if len(y) and (y.min() < 0 or y.max() >= K):
        expected = f"class indices in 0..{K - 1}, one per entry of class_names"
        advice = "Encode labels as 0..K-1 and name every class."
        raise invalid("y", expected=expected, got=f"{y.min()}..{y.max()}", advice=advice)


def check_integers(name: str, values: Any, n: int, dtype: type[Any] = np.int64) -> NDArray[Any]:
    """Return n whole numbers as an array of `dtype`."""
    array = plain_array(values)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        expected, got = f"{n} whole numbers, one per window of X", f"{array.dtype} of shape {array.shape}"
        raise invalid(name, expected=expected, got=got, advice="Give one entry per window.")
    found = array.astype(dtype)
    if len(other := array[found != array]):
        limit = np.iinfo(dtype)
        raise invalid(name, expected=f"whole numbers in {limit.min}..{limit.max}", got=other[0], advice="Recode them.")
    return found


def _check_pairs(pairs: Any, domain_ids: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    array = np.asarray(pairs)
    if array.size == 0:
        return ()
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        got = f"shape {array.shape}"
        raise invalid("pairs", expected="(source, target) ids", got=got, advice="Give two ids per pair.")
    domains = np.unique(domain_ids).tolist()
    if unknown := sorted(set(array.ravel().tolist()) - set(domains)):
        expected, got = f"domains among {', '.join(map(str, domains))}", f"also {', '.join(map(str, unknown))}"
        raise invalid("pairs", expected=expected, got=got, advice="Leave out the pairs whose domain is absent.")
    return tuple((int(source), int(target)) for source, target in array)


def normalised(dataset: Dataset, rule: str = "none", source: int | None = None) -> Dataset:
    """Scale every channel to mean 0 and standard deviation 1 over (window, time).

    No rule looks at a label. A channel that does not vary is centred but not divided.

    Parameters
    ----------
    dataset : Dataset
    rule : {"none", "source_stats", "domain", "per_split"}
        Whose statistics are used:

        - "none": the values stay as they are (the paper).
        - "source_stats": the train part of `source`, for all domains. The shift in scale stays in the data.
        - "domain": each domain's own train part. Leaks nothing, because a method is given the target's
          train windows anyway.
        - "per_split": each part of each domain by itself (AdaTime). Leaks mean and spread of the test part.
    source : int, optional
        The source domain; required by "source_stats".

    Returns
    -------
    Dataset
        `dataset` itself for "none", otherwise a scaled copy.
    """
    check_choice("normalise", rule, RULES)
    if rule == "none":
        return dataset
    if rule == "source_stats":
        if source not in dataset.domains:
            advice = "Name the source domain, or choose domain."
            expected = f"one of {', '.join(map(str, dataset.domains))}"
            raise invalid("source", expected=expected, got=repr(source), advice=advice)
        return replace(dataset, X=_scaled(dataset.X, _statistics(dataset, source, TRAIN)))
    X = np.empty_like(dataset.X)
    for domain in dataset.domains:
        for split in (TRAIN, TEST):
            rows = (dataset.domain_ids == domain) & (dataset.split == split)
            if rows.any():
                X[rows] = _scaled(
                    dataset.X[rows], _statistics(dataset, domain, split if rule == "per_split" else TRAIN)
                )
    return replace(dataset, X=X)


def _statistics(dataset: Dataset, domain: int, split: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation per channel, (channels, 1), of one part of one domain."""
    X = dataset.X[(dataset.domain_ids == domain) & (dataset.split == split)]
    if len(X) == 0:
        expected = f"a domain of {dataset.name} with {'train' if split == TRAIN else 'test'} windows"
        raise invalid("normalise", expected=expected, got=f"none in domain {domain}", advice="Choose another rule.")
    mean = X.mean(axis=(0, 2), dtype=np.float64)
    std = X.std(axis=(0, 2), dtype=np.float64)
    std = np.where(std > _CONSTANT * np.abs(X).max(axis=(0, 2)), std, 1.0)
    return mean[:, None], std[:, None]


def _scaled(X: NDArray[np.float32], statistics: tuple[NDArray[np.float64], NDArray[np.float64]]) -> NDArray[np.float32]:
    mean, std = statistics
    return np.asarray((X - mean) / std, dtype=np.float32)
