"""What a data set is here: windows of several domains, each with a train and a test part, and the pairs to adapt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid

TRAIN, TEST = 0, 1


class Domain(NamedTuple):
    """The windows of one domain, (n, channels, time) float32, and their class indices, (n,) int64."""

    X_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Windows with class, domain and split. It checks itself: a Dataset that exists is sound.

    X : (n, channels, time) float32, finite
    y : (n,) int64, index into `class_names`
    domain_ids : (n,) int64, which domain (user, device, patient group) each window is from
    split : (n,) int8, 0 train, 1 test
    pairs : the (source, target) domains to adapt between
    groups : (n,) int64, which recording or patient each window is from; None if it is not known
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
        X = _check_windows(self.X)
        for field, dtype in (("y", np.int64), ("domain_ids", np.int64), ("split", np.int8)):
            object.__setattr__(self, field, _check_integers(field, getattr(self, field), len(X)).astype(dtype))
        if self.groups is not None:
            object.__setattr__(self, "groups", _check_integers("groups", self.groups, len(X)).astype(np.int64))
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "class_names", tuple(str(name) for name in self.class_names))
        object.__setattr__(self, "channel_names", tuple(str(name) for name in self.channel_names))
        object.__setattr__(self, "pairs", _check_pairs(self.pairs, self.domains))
        self._check_names()

    def __len__(self) -> int:
        return len(self.X)

    @property
    def domains(self) -> tuple[int, ...]:
        """The ids of all domains, sorted."""
        return tuple(int(i) for i in np.unique(self.domain_ids))

    def domain(self, i: int) -> Domain:
        """Return copies of the train and test part of domain `i`."""
        train, test = self._parts(i)
        return Domain(self.X[train], self.y[train], self.X[test], self.y[test])

    def domain_groups(self, i: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | tuple[None, None]:
        """Return the groups of the windows in the train and test part of domain `i`; None if they are not known."""
        train, test = self._parts(i)
        return (None, None) if self.groups is None else (self.groups[train], self.groups[test])

    def _parts(self, i: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Masks (n,) of the train and test part of domain `i`."""
        if i not in self.domains:
            known = ", ".join(str(known) for known in self.domains)
            raise invalid("domain", expected=f"one of {known}", got=repr(i), advice=f"Choose a domain of {self.name}.")
        here = self.domain_ids == i
        return here & (self.split == TRAIN), here & (self.split == TEST)

    def _check_names(self) -> None:
        K, channels = len(self.class_names), len(self.channel_names)
        if channels != self.X.shape[1]:
            raise invalid(
                "channel_names", expected=f"{self.X.shape[1]} names", got=channels, advice="Name each channel."
            )
        if self.y.min() < 0 or self.y.max() >= K:
            raise invalid(
                "y",
                expected=f"class indices in 0..{K - 1}, one per entry of class_names",
                got=f"{self.y.min()}..{self.y.max()}",
                advice="Encode labels as 0..K-1 and name every class.",
            )
        if not set(np.unique(self.split)) <= {TRAIN, TEST}:
            values = [int(value) for value in np.unique(self.split)]
            raise invalid("split", expected="only 0 (train) and 1 (test)", got=values, advice="Recode it.")
        for field, names in (("class_names", self.class_names), ("channel_names", self.channel_names)):
            if len(set(names)) != len(names):
                raise invalid(field, expected="no name twice", got=names, advice="Give each its own name.")


def _check_windows(X: Any) -> NDArray[np.float32]:
    values = np.asarray(X)
    if values.ndim != 3 or 0 in values.shape or values.dtype.kind not in "fiu":
        raise invalid(
            "X",
            expected="numbers of shape (n, channels, time), none of them 0",
            got=f"{values.dtype} of shape {values.shape}",
            advice="Reshape your data.",
        )
    with np.errstate(over="ignore"):
        values = values.astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise invalid(
            "X", expected="finite numbers that fit float32", got=f"{bad} that are not", advice="Cut gaps out."
        )
    return values


def _check_integers(name: str, values: Any, n: int) -> NDArray[np.integer[Any]]:
    array = np.asarray(values)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise invalid(
            name,
            expected=f"{n} whole numbers, one per window of X",
            got=f"{array.dtype} of shape {array.shape}",
            advice="Give one entry per window.",
        )
    return array


def _check_pairs(pairs: Any, domains: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    array = np.asarray(pairs)
    if array.size == 0:
        return ()
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise invalid(
            "pairs", expected="(source, target) ids", got=f"shape {array.shape}", advice="Give two ids per pair."
        )
    unknown = sorted(set(array.ravel().tolist()) - set(domains))
    if unknown:
        raise invalid(
            "pairs",
            expected=f"domains among {', '.join(map(str, domains))}",
            got=f"also {', '.join(map(str, unknown))}",
            advice="Leave out the pairs whose domain is absent.",
        )
    return tuple((int(source), int(target)) for source, target in array)
