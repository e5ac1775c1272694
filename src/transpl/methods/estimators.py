"""Any scikit-learn classifier or pipeline as a method: by name, `sklearn:package.module.Class`, or as an object.

A name is imported when somebody asks for that method, never because a folder of results has runs of it.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, make_dataclass, replace
from functools import cache
from typing import Any, ClassVar

from sklearn.base import clone, is_classifier

from transpl._utils.errors import InputError, check_choice, invalid
from transpl.methods.method_settings import recorded, setting
from transpl.methods.registry import SKLEARN, Entry, entry
from transpl.methods.shallow import INPUTS, ShallowMethod, ShallowSettings

_OF_ESTIMATOR = "of the estimator"
_SEED = "random_state"


@dataclass(frozen=True)
class EstimatorSettings(ShallowSettings):
    """Settings of `EstimatorMethod`. Those of an estimator have its simple parameters besides."""

    input: str = setting(
        "features",
        'what the estimator gets: "features" (n, F), "windows" (n, channels, time), or "flat" (n, channels * time)',
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("input", self.input, INPUTS)


class EstimatorMethod(ShallowMethod):
    """A scikit-learn classifier; subclasses have the `prototype`, which is cloned and never fitted."""

    Settings = EstimatorSettings
    settings: EstimatorSettings
    prototype: ClassVar[Any]

    @property
    def rows_are(self) -> str:
        return self.settings.input

    def make_classifier(self) -> Any:
        made, values = clone(self.prototype), recorded(self.settings)
        seeds = {name: self.seed for name in made.get_params() if _is_seed(name)}
        changed = {name: values[name] for name in self.settings.recorded_if_changed if name in values}
        return made.set_params(**seeds, **changed)


@cache
def named_estimator(name: str) -> Entry:
    """The method of a name `sklearn:package.module.Class`.

    Besides a class it may name a function that returns an estimator, or an estimator.
    """
    path = name.removeprefix(SKLEARN)
    module, _, attribute = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
        made = found() if callable(found) else found
    except InputError:
        raise
    except Exception as error:  # an import, and a constructor, may raise anything
        expected = f"{SKLEARN}package.module.Class of a classifier that needs no arguments"
        got = f"{path}: {type(error).__name__}: {error}"
        raise invalid(
            "method", expected=expected, got=got, advice="Check the spelling, and that it is installed."
        ) from None
    return estimator_entry(name, made)


def estimator_entry(name: str, estimator: Any) -> Entry:
    """The method that fits clones of an estimator."""
    if isinstance(estimator, type) or not _is_classifier(estimator):
        got, advice = f"{estimator!r:.80}", "Pass a scikit-learn classifier, or a pipeline that ends in one."
        raise invalid("method", expected="a classifier", got=got, advice=advice)
    kind = type(estimator)
    parameters = {name: value for name, value in estimator.get_params().items() if _can_be_set(name, value)}
    Settings = make_dataclass(
        f"{kind.__name__}Settings",
        [(name, Any, setting(value, _OF_ESTIMATOR)) for name, value in parameters.items()],
        bases=(EstimatorSettings,),
        namespace={"recorded_if_changed": frozenset(parameters)},
        frozen=True,
    )
    described = f"The estimator {kind.__name__} ({kind.__module__.partition('._')[0]}) on features of each window."
    method = type(
        kind.__name__,
        (EstimatorMethod,),
        {
            "__doc__": described,
            "__module__": __name__,
            "Settings": Settings,
            "prototype": clone(estimator),
            "library_versions": _version_of(kind),
        },
    )
    return Entry(name, method, "shallow", "source; target for its moments alone", "-")


def entries_of(methods: Iterable[Any] | Mapping[str, Any]) -> dict[str, Entry]:
    """The methods of names and estimators, or of a single one, by name; a mapping names them itself.

    An estimator is called after its class, a pipeline after those of its steps.
    """
    if not isinstance(methods, Mapping):
        is_one = isinstance(methods, str) or hasattr(methods, "get_params")
        methods = [methods] if is_one else list(methods)
        called = [each if isinstance(each, str) else _name_of(each) for each in methods]
        twice = sorted({name for name in called if called.count(name) > 1})
        if twice:
            advice = "Leave one out, or pass a dict with names of your own."
            raise invalid("methods", expected="different methods", got=f"{', '.join(twice)} twice", advice=advice)
        methods = dict(zip(called, methods, strict=True))
    if not methods:
        raise invalid("methods", expected="one or more", got="none", advice="See `transpl methods`.")
    return {
        name: replace(entry(each), name=name) if isinstance(each, str) else estimator_entry(name, each)
        for name, each in methods.items()
    }


def _name_of(estimator: Any) -> str:
    steps = getattr(estimator, "steps", None) or [("", estimator)]
    return " + ".join(type(step).__name__ for _, step in steps)


def _is_classifier(estimator: Any) -> bool:
    try:
        return hasattr(estimator, "get_params") and is_classifier(estimator)
    except Exception:  # scikit-learn asks the object for its tags
        return False


def _can_be_set(name: str, value: Any) -> bool:
    """Whether a parameter can be a setting: a plain value whose name is free."""
    if _is_seed(name) or hasattr(EstimatorSettings, name):
        return False
    if isinstance(value, tuple):
        return all(_can_be_set("", each) for each in value)
    if isinstance(value, float):
        return math.isfinite(value)  # as JSON holds it
    return value is None or isinstance(value, bool | int | str)


def _is_seed(name: str) -> bool:
    return name.rpartition("__")[2] == _SEED


def _version_of(kind: type) -> Mapping[str, str]:
    package = kind.__module__.partition(".")[0]
    if package == "sklearn":  # every run has its version
        return {}
    return {package: str(getattr(sys.modules.get(package), "__version__", "unknown"))}
