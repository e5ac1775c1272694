"""What a witness is, and the registry that finds one by its name.

A witness is a cheap classifier with a point of view of its own. It turns windows into rows of numbers (`rows`),
learns classes from labelled rows (`learn`) and gives class probabilities of other rows (`answer`). It never sees a
target label. A new witness is one file in this folder, with a class that `register` decorates.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, invalid

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray]
_Class = TypeVar("_Class", bound="type[Witness]")

# Witnesses on a network live with the networks, in the extra `deep`; this is where to find them.
_ON_NETWORKS = {"conv": "transpl.methods.conv_witness", "vq": "transpl.methods.vq_witness"}
_registered: dict[str, type[Witness]] = {}


@dataclass
class Sight:
    """Windows (n, D, T) of one domain as one view shows them; rows that several witnesses share are made once."""

    values: NDArray[np.float32]
    lengths: NDArray[np.int64]
    _made: dict[str, NDArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def once(self, key: str, extract: Callable[[NDArray], NDArray]) -> NDArray:
        """The rows that `extract` makes of windows (n, D, T); windows of one length are handed over together."""
        if key not in self._made:
            self._made[key] = by_length(self.values, self.lengths, extract)
        return self._made[key]


class Witness(ABC):
    """A cheap classifier of windows.

    name : by which it is registered
    per_column : whether the view's standardisation also holds for the columns of its rows
    """

    name: ClassVar[str]
    per_column: ClassVar[bool] = True

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.n_classes = 0

    def prepare(self, source: Sight) -> None:  # noqa: B027  # most witnesses have nothing to prepare
        """Fix what rows are made with (kernels, a codebook); uses no label."""

    @abstractmethod
    def rows(self, sight: Sight) -> NDArray:
        """Windows as rows (n, ...), which `learn` and `answer` take."""

    @abstractmethod
    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        """Learn classes 0..n_classes-1 from labelled rows; some classes may have none."""

    @abstractmethod
    def answer(self, rows: NDArray) -> Floats:
        """Class probabilities (n, n_classes), all above 0."""

    def adapted_to(self, rows: NDArray) -> Self:
        """The witness as it answers once it has seen unlabelled rows of the target; most answer alike, and are it."""
        return self

    @abstractmethod
    def arrays(self) -> Arrays:
        """What was prepared and learnt, as plain arrays to save."""

    @abstractmethod
    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        """Take up what `arrays` gave."""


def register(witness: _Class) -> _Class:
    """Make a witness available under its name; a class decorator."""
    known = _registered.get(witness.name)
    if known is not None and known.__qualname__ != witness.__qualname__:
        raise invalid("name", expected="a new name", got=repr(witness.name), advice="Another witness has it.")
    _registered[witness.name] = witness
    return witness


def names() -> tuple[str, ...]:
    """All witnesses by name; those on a network need the extra `deep`."""
    _discover()
    return tuple(sorted({*_registered, *_ON_NETWORKS}))


def find(name: str) -> type[Witness]:
    """The witness of a name; an unknown one is refused, a missing extra is named."""
    _discover()
    if name not in _registered and name in _ON_NETWORKS:
        try:
            importlib.import_module(_ON_NETWORKS[name])
        except ImportError as error:
            raise InputError(
                f'witnesses: {name} needs PyTorch, which is missing ({error}). Install it: pip install "transpl[deep]"'
            ) from None
    if name not in _registered:
        raise invalid(
            "witnesses", expected=f"names among {', '.join(names())}", got=repr(name), advice="Check spelling."
        )
    return _registered[name]


def by_length(values: NDArray, lengths: NDArray[np.int64], extract: Callable[[NDArray], NDArray]) -> NDArray:
    """Apply `extract` to windows of one length at a time; rows come in the windows' order."""
    found: NDArray | None = None
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        part = extract(values[rows, :, :length])
        if found is None:
            found = np.empty((len(values), *part.shape[1:]), part.dtype)
        found[rows] = part
    assert found is not None
    return found


def with_all_classes(p: NDArray, classes: NDArray[np.int64], n_classes: int, least: float = 1e-6) -> Floats:
    """Probabilities (n, n_classes) of those (n, len(classes)) that a classifier knows; none is below `least`."""
    whole = np.full((len(p), n_classes), least)
    whole[:, classes] = np.maximum(p, least)
    return whole / whole.sum(axis=1, keepdims=True)


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")


def as_arrays(**values: Any) -> Arrays:
    """Values as the contiguous arrays that a file holds."""
    return {name: np.ascontiguousarray(value) for name, value in values.items()}
