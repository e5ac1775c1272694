"""The methods by name. A file in this folder that registers a class is found; nothing else needs to know about it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from transpl._utils.errors import invalid, require_deep
from transpl.methods.method_settings import PAPER, MethodSettings, settings_table

if TYPE_CHECKING:
    from transpl.methods.contract import Method
    from transpl.nn import Execution

SKLEARN = "sklearn:"  # before the path of an estimator, see `transpl.methods.estimators`
FAMILIES = ("reference", "shallow", "alignment", "pseudo-labels", "code classifier", "own")
_ORDER = (  # as in the paper's tables, with our references first; other methods follow in the order of registration
    *(
        "no-adapt",
        "target-only",
        "features-linear",
        "features-trees",
        "deepcoral",
        "mmda",
        "codats",
        "codats-ws",
        "sasa",
        "raincoat",
    ),
    *("softmax", "ncp", "sp", "att", "shot", "t2pl", "code-cnn", "code-lstm", "code-gru", "transpl", "transpl-ws"),
    *("transpl-markov", "transpl-plus", "transpl-plus-ws", "transpl-plus-groups"),
)

_entries: dict[str, Entry] = {}
_Class = TypeVar("_Class", bound="type[Method]")


@dataclass(frozen=True)
class Entry:
    """A registered method: its name, what kind it is, what it needs and where it was published."""

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

    @property
    def setting_names(self) -> set[str]:
        return {each.name for each in fields(self.method.Settings)}

    def description(self) -> dict[str, Any]:
        """Everything known about the method, as plain values for JSON."""
        return {
            "name": self.name,
            "family": self.family,
            "needs": self.needs,
            "reference": self.reference,
            "summary": self.summary,
            "description": inspect.getdoc(self.method) or "",
            "settings": [each._asdict() for each in settings_table(self.method.Settings)],
            "presets": _presets(self.method.Settings),
        }


def register(name: str, *, family: str, needs: str, reference: str) -> Callable[[_Class], _Class]:
    """Class decorator that makes a method available under a name.

    Parameters
    ----------
    family
        one of `FAMILIES`
    needs
        the data that the method needs, such as "source, target"
    reference
        the publication, or "-"
    """
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
    """All registered names: those of the paper's tables in their order, then the others."""
    return in_order(entries())


def in_order(registered: Iterable[str]) -> tuple[str, ...]:
    """Names in the order of `names`, given those registered in the order of registration."""
    known = list(registered)
    rank = {name: i for i, name in enumerate(dict.fromkeys([*_ORDER, *known]))}
    return tuple(sorted(known, key=rank.__getitem__))


def entries() -> dict[str, Entry]:
    """All registered methods by name."""
    _discover()
    return dict(_entries)


def entry(name: str) -> Entry:
    """One registered method, or the scikit-learn estimator of `sklearn:package.module.Class`; others are refused."""
    known = entries()
    if name.startswith(SKLEARN):
        from transpl.methods.estimators import named_estimator  # it needs this module

        return named_estimator(name)
    if name not in known:
        expected = f"one of {', '.join(names())}, or {SKLEARN}package.module.Class"
        raise invalid("method", expected=expected, got=repr(name), advice="See `transpl methods`.")
    return known[name]


def create(
    name: str,
    execution: Execution | None = None,
    *,
    dataset: str = "",
    preset: str = "paper",
    **changes: Any,
) -> Method:
    """Make a method by name, with the settings for a data set and your `changes`.

    >>> create("softmax", dataset="wisdm", max_epochs=3).settings.top_ratio
    0.2
    """
    found = entry(name)
    return found.method(found.settings(dataset, preset, **changes), execution)


@cache
def _discover() -> None:
    require_deep("transpl.methods")
    package = importlib.import_module("transpl.methods")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def _presets(settings: type[MethodSettings]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """By preset and data set, the values that it sets; those that the method ignores are left out."""
    datasets = {**PAPER, **settings.known_data}
    paper = {name: {**PAPER.get(name, {}), **settings.known_data.get(name, {})} for name in datasets}
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for preset, per_dataset in {"paper": paper, **settings.presets}.items():
        found[preset] = {}
        for dataset, values in per_dataset.items():
            made = vars(settings.for_dataset(dataset, preset))
            found[preset][dataset] = {key: value for key, value in values.items() if key in made and made[key] == value}
    return found
