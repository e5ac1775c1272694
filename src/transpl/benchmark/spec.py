"""One run of a benchmark: everything that decides its numbers, and nothing else."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

from transpl._utils.errors import check_choice, check_int, invalid
from transpl.datasets import Dataset
from transpl.methods.registry import entry
from transpl.methods.settings import MethodSettings, recorded

GOALS = ("adapt", "label")
_DIGEST_LENGTH = 20


@dataclass(frozen=True)
class RunSpec:
    """One method on one pair of domains with one seed.

    data : fingerprint of the data set's values, so that a changed data set is another run
    settings : all settings of the method, without the seed; kept as JSON has them, so that a stored spec equals it
    goal : "adapt" to the target and predict, or only "label" it with the source model
    """

    dataset: str
    data: str
    source: int
    target: int
    method: str
    seed: int
    settings: Mapping[str, Any]
    goal: str = "adapt"

    def __post_init__(self) -> None:
        check_choice("goal", self.goal, GOALS)
        check_int("seed", self.seed, least=0)
        for name in ("source", "target", "seed"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))
        object.__setattr__(self, "settings", _as_json_has_it(dict(self.settings)))

    @cached_property
    def digest(self) -> str:
        """The name of the run on disk."""
        return short_digest(self.as_dict())

    @property
    def pair(self) -> str:
        return f"{self.source}-{self.target}"

    def method_settings(self) -> MethodSettings:
        """The settings as the method takes them."""
        Settings = entry(self.method).method.Settings
        values = {name: _frozen(value) for name, value in self.settings.items() if name not in Settings.retired}
        gone = {name: self.settings.get(name, left) for name, left in Settings.retired.items()}
        if gone != Settings.retired:
            got = ", ".join(f"{name}={value}" for name, value in gone.items() if value != Settings.retired[name])
            raise invalid("settings", expected=f"those of {self.method}", got=got, advice="Older versions had it.")
        return Settings(**values, random_state=self.seed)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**{each.name: getattr(self, each.name) for each in fields(self)}, "settings": dict(self.settings)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        known = {each.name for each in fields(cls)}
        if set(values) != known:
            got = f"a difference in {', '.join(sorted(set(values) ^ known))}"
            raise invalid("values", expected="the fields of a RunSpec", got=got, advice="Run it anew.")
        return cls(**values)

    def __str__(self) -> str:
        labels_only = " (labels only)" if self.goal == "label" else ""
        return f"{self.dataset} {self.pair} {self.method} seed {self.seed}{labels_only}"


def without_seed(settings: MethodSettings) -> dict[str, Any]:
    """Settings as plain values, as runs are recorded with them, but for the seed.

    A whole number where a fraction may stand is the same number.
    """
    fractions = {each.name for each in fields(settings) if isinstance(each.default, float)}
    return {
        name: float(value) if name in fractions and type(value) is int else value
        for name, value in recorded(settings).items()
        if name != "random_state"
    }


def short_digest(value: Any) -> str:
    """A short name made of plain values; equal values, equal names, on every machine."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def data_fingerprint(dataset: Dataset) -> str:
    """A short name made of every window, label, domain and split of a data set."""
    digest = hashlib.sha256()
    for values in (dataset.X, dataset.y, dataset.domain_ids, dataset.split):
        digest.update(f"{values.shape}{values.dtype.str}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _as_json_has_it(settings: dict[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(settings, allow_nan=False))
    except (TypeError, ValueError) as error:
        advice = "Use plain numbers, texts, lists and None."
        raise invalid("settings", expected="values that JSON can hold", got=error, advice=advice) from None


def _frozen(value: Any) -> Any:
    """A list as the tuple it was: settings are hashable."""
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
