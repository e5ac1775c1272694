"""The contract of witnesses, and the registry that finds them by name.

A witness is a cheap classifier. It turns windows into rows of numbers (`rows`), learns classes from labelled rows
(`learn`) and returns class probabilities of other rows (`answer`). It never sees a target label. A new witness is one
file in this folder with a class that `register` decorates.
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
from transpl._utils.layout import Layout

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray]
_Class = TypeVar("_Class", bound="type[Witness]")

# Witnesses that need a network, and so the extra `deep`, are defined with the methods.
_ON_NETWORKS = dict.fromkeys(("conv", "vq"), "transpl.methods.network_witnesses")
_registered: dict[str, type[Witness]] = {}


@dataclass
class ViewedWindows:
    """Windows of one domain in one view.

    Attributes
    ----------
    values : (n, D, T) float32 array
    lengths : (n,) int64 array
        The number of real time steps of each window.
    """

    values: NDArray[np.float32]
    lengths: NDArray[np.int64]
    _cache: dict[str, NDArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def features(self, key: str, extract: Callable[[NDArray], NDArray]) -> NDArray:
        """Apply `extract` to windows (n, D, T) of equal length; cached under `key`, so that witnesses can share it."""
        if key not in self._cache:
            self._cache[key] = _by_length(self.values, self.lengths, extract)
        return self._cache[key]


class Witness(ABC):
    """A cheap classifier of windows.

    Attributes
    ----------
    name : str
        The name in the registry.
    per_column : bool
        Whether the columns of its rows are standardised too, as the view standardises signals.
    layout : mapping
        What `arrays` returns, as `check_arrays` takes it; D channels, K classes.
    seed : int
        For everything it draws.
    """

    name: ClassVar[str]
    per_column: ClassVar[bool] = True
    layout: ClassVar[Layout] = {"*": ""}

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.n_classes = 0

    def prepare(self, source: ViewedWindows) -> None:  # noqa: B027  # most witnesses have nothing to prepare
        """Prepare what `rows` needs (kernels, a codebook), without labels."""

    @abstractmethod
    def rows(self, viewed: ViewedWindows) -> NDArray:
        """Turn windows into rows (n, ...) for `learn` and `answer`."""

    @abstractmethod
    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        """Learn classes 0..n_classes-1 from labelled rows; some classes may have none."""

    @abstractmethod
    def answer(self, rows: NDArray) -> Floats:
        """Return class probabilities (n, n_classes), all above 0."""

    def adapted_to(self, rows: NDArray) -> Self:
        """Return the witness adapted to unlabelled rows of the target; by default the witness itself."""
        return self

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return everything that was prepared and learnt, as plain arrays to save."""

    def check_columns(self, n: int) -> None:  # noqa: B027  # most witnesses say so by their layout
        """Raise a ValueError unless a restored witness can answer on rows of n columns."""

    @abstractmethod
    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        """Restore what `arrays` returned, which fits the layout; numbers that cannot be raise a ValueError."""


def register(witness: _Class) -> _Class:
    """Register a witness class under its name; a decorator."""
    known = _registered.get(witness.name)
    if known is not None and known.__qualname__ != witness.__qualname__:
        raise invalid("name", expected="a new name", got=repr(witness.name), advice="Another witness uses it.")
    _registered[witness.name] = witness
    return witness


def names() -> tuple[str, ...]:
    """Return the names of all witnesses; some need the extra `deep`."""
    _discover()
    return tuple(sorted({*_registered, *_ON_NETWORKS}))


def find(name: str) -> type[Witness]:
    """Return the witness class of this name; raises for unknown names and missing extras."""
    _discover()
    if name not in _registered and name in _ON_NETWORKS:
        try:
            importlib.import_module(_ON_NETWORKS[name])
        except ImportError as error:
            problem = f"{name} needs PyTorch, which is missing ({error})"
            raise InputError(f'witnesses: {problem}. Install it: pip install "transpl[deep]"') from None
    if name not in _registered:
        expected = f"names among {', '.join(names())}"
        raise invalid("witnesses", expected=expected, got=repr(name), advice="Check the spelling.")
    return _registered[name]


def _by_length(values: NDArray, lengths: NDArray[np.int64], extract: Callable[[NDArray], NDArray]) -> NDArray:
    """Apply `extract` to the windows of each length; rows are in the order of the windows."""
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
    """Spread probabilities (n, len(classes)) over all classes, (n, n_classes), none of them below `least`."""
    whole = np.full((len(p), n_classes), least)
    whole[:, classes] = np.maximum(p, least)
    return whole / whole.sum(axis=1, keepdims=True)


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")


def as_arrays(**values: Any) -> Arrays:
    """Convert values to contiguous arrays, as files hold them."""
    return {name: np.ascontiguousarray(value) for name, value in values.items()}
