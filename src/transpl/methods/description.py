"""What a registered method says of itself, as plain values: for the command line and the documentation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from transpl.methods.registry import Entry
from transpl.methods.settings import PAPER, MethodSettings

_ENTRY_OF_SETTINGS = re.compile(r"(\w+(?:, \w+)*) : (.+)")
_WEIGHT = "_weight"
_ABSENT = object()


@dataclass(frozen=True)
class Setting:
    """One field of a method's settings."""

    name: str
    default: Any
    what: str


def described(entry: Entry) -> dict[str, Any]:
    """Name, family, needs, reference, docstring, settings and presets of a method; plain values for JSON."""
    return {
        "name": entry.name,
        "family": entry.family,
        "needs": entry.needs,
        "reference": entry.reference,
        "summary": entry.summary,
        "description": inspect.getdoc(entry.method) or "",
        "settings": [vars(setting) for setting in settings_table(entry.method.Settings)],
        "presets": _presets(entry.method.Settings),
    }


def settings_table(settings: type[MethodSettings]) -> list[Setting]:
    """The fields of a class of settings, in their order, each with its default and what its docstring says of it."""
    words: dict[str, str] = {}
    for ancestor in reversed(settings.__mro__):
        words |= _words_of(ancestor.__doc__ or "")
    return [
        Setting(each.name, _default(each), words.get(each.name, _weight_words(each.name))) for each in fields(settings)
    ]


def values_in_words(values: Mapping[str, Any]) -> str:
    """name=value pairs in one line."""
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _presets(settings: type[MethodSettings]) -> dict[str, dict[str, dict[str, Any]]]:
    """By preset and data set: the values that it sets."""
    paper = {
        dataset: {**PAPER.get(dataset, {}), **settings.known_data.get(dataset, {})}
        for dataset in {**PAPER, **settings.known_data}
    }
    return {
        preset: {
            dataset: _values_that_hold(settings.for_dataset(dataset, preset), values)
            for dataset, values in per_dataset.items()
        }
        for preset, per_dataset in {"paper": paper, **settings.presets}.items()
    }


def _values_that_hold(made: MethodSettings, values: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that the method does not have, or does not take over."""
    return {name: value for name, value in values.items() if getattr(made, name, _ABSENT) == value}


def _words_of(docstring: str) -> dict[str, str]:
    """The lines `name, name : what` of a docstring; what follows until the next or an empty line belongs to them."""
    words: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.cleandoc(docstring).splitlines():
        found = _ENTRY_OF_SETTINGS.fullmatch(line.strip())
        if found:
            names = found[1].split(", ")
            words |= dict.fromkeys(names, found[2].strip())
        elif not line.strip():
            names = []
        else:
            words |= {name: f"{words[name]} {line.strip()}" for name in names}
    return words


def _weight_words(name: str) -> str:
    return f"weight of the term {name.removesuffix(_WEIGHT).replace('_', ' ')}" if name.endswith(_WEIGHT) else ""


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()
