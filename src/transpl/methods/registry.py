"""The methods by name. A file in this folder that registers a class is found; nothing else needs to know of it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from transpl._utils.errors import invalid, require_deep
from transpl.methods.settings import MethodSettings

if TYPE_CHECKING:
    from transpl.methods.base import Method
    from transpl.nn import Execution

FAMILIES = ("reference", "alignment", "pseudo-labels", "code classifier", "own")

_entries: dict[str, Entry] = {}
_Class = TypeVar("_Class", bound="type[Method]")


@dataclass(frozen=True)
class Entry:
    """A registered method: its name, what it is, what it needs, where it was published."""

    name: str
    method: type[Method]
    family: str
    needs: str
    reference: str

    @property
    def summary(self) -> str:
        """The first line of the class's docstring."""
        return inspect.cleandoc(self.method.__doc__ or "").partition("\n")[0]

    def settings(self, dataset: str = "", preset: str = "paper", **changes: Any) -> MethodSettings:
        """Settings for a data set; see `MethodSettings.for_dataset`."""
        return self.method.Settings.for_dataset(dataset, preset, **changes)


def register(name: str, *, family: str, needs: str, reference: str) -> Callable[[_Class], _Class]:
    """Make a method available under a name; a class decorator."""
    if family not in FAMILIES:
        raise invalid("family", expected=f"one of {FAMILIES}", got=repr(family), advice="Use 'own' for a new kind.")

    def add(method: _Class) -> _Class:
        known = _entries.get(name)
        if known is not None and known.method.__qualname__ != method.__qualname__:
            raise invalid("name", expected="a new name", got=repr(name), advice="Another method has it.")
        _entries[name] = Entry(name, method, family, needs, reference)
        return method

    return add


def names() -> tuple[str, ...]:
    """All registered names, by family, then in the order of the paper's tables."""
    return tuple(sorted(entries(), key=_rank))


def entries() -> dict[str, Entry]:
    """All registered methods by name."""
    _discover()
    return dict(_entries)


def entry(name: str) -> Entry:
    """One registered method; an unknown name is refused."""
    known = entries()
    if name not in known:
        raise invalid(
            "method", expected=f"one of {', '.join(names())}", got=repr(name), advice="See `transpl methods`."
        )
    return known[name]


def create(
    name: str,
    execution: Execution | None = None,
    *,
    dataset: str = "",
    preset: str = "paper",
    **changes: Any,
) -> Method:
    """Make a method by name, with the settings for a data set and your `changes`."""
    found = entry(name)
    return found.method(found.settings(dataset, preset, **changes), execution)


@cache
def _discover() -> None:
    require_deep("transpl.methods")
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")


# As in the paper's tables; a method that is not listed comes last, in the order of registration.
_REFERENCES = ("no-adapt", "target-only")
_ALIGNMENT = ("deepcoral", "mmda", "codats", "codats-ws", "sasa", "raincoat")
_LABELS = ("softmax", "ncp", "sp", "att", "shot", "t2pl", "code-cnn", "code-lstm", "code-gru", "transpl", "transpl-ws")
_OWN = ("transpl-markov", "transpl-plus", "transpl-plus-ws", "transpl-plus-groups")
_ORDER = _REFERENCES + _ALIGNMENT + _LABELS + _OWN


def _rank(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER) + list(_entries).index(name)
