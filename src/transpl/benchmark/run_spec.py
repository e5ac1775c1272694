"""One run: everything that decides its numbers, and the digests that name it on disk."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

from transpl._utils.errors import check_choice, check_int, invalid
from transpl._utils.hashing import hash_bytes, hash_json
from transpl._utils.layout import check_facts
from transpl.datasets import Dataset
from transpl.methods.method_settings import MethodSettings
from transpl.methods.registry import entries, entry

GOALS = ("adapt", "label")
NORMALISE = ("none", "domain", "per_split")
_SPEC = {  # as `check_facts` takes it
    **dict.fromkeys(("dataset", "data", "method", "goal", "normalise"), str),
    **dict.fromkeys(("source", "target", "seed"), int),
    "settings": dict,
}
_DIGEST_LENGTH = 20


@dataclass(frozen=True)
class RunSpec:
    """Everything that decides the numbers of one run, and nothing else.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    data : str
        Fingerprint of its values, see `data_fingerprint`: a changed data set makes a different run.
    source, target : int
        Domains of the pair.
    method : str
        Registered name.
    seed : int
        Seed of everything random.
    settings : mapping
        All settings of the method except the seed, as JSON stores them, so that a stored spec equals this one.
    goal : {"adapt", "label"}
        Adapt to the target and predict, or only label the target with the source model.
    normalise : {"none", "domain", "per_split"}
        How the channels were scaled, see `transpl.datasets.normalised`.
    """

    dataset: str
    data: str
    source: int
    target: int
    method: str
    seed: int
    settings: Mapping[str, Any]
    goal: str = "adapt"
    normalise: str = "none"

    def __post_init__(self) -> None:
        check_choice("goal", self.goal, GOALS)
        check_choice("normalise", self.normalise, NORMALISE)
        check_int("seed", self.seed, least=0)
        for name in ("source", "target", "seed"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))
        try:
            settings = json.loads(json.dumps(dict(self.settings), allow_nan=False))
        except (TypeError, ValueError) as error:
            advice = "Use plain numbers, strings, lists and None."
            raise invalid("settings", expected="values that JSON can hold", got=error, advice=advice) from None
        object.__setattr__(self, "settings", settings)

    @cached_property
    def digest(self) -> str:
        """The run's name on disk: the same on every machine and in every release."""
        return short_digest(self.as_dict())

    @property
    def pair(self) -> str:
        """The pair as "source-target"."""
        return f"{self.source}-{self.target}"

    def method_settings(self) -> MethodSettings:
        """Settings to create the method with. Settings that no longer exist must have the one value that is left."""
        Settings = entry(self.method).method.Settings
        retired = Settings.retired
        changed = {name: value for name, value in self.settings.items() if value != retired.get(name, value)}
        if changed:
            got = ", ".join(f"{name}={value}" for name, value in changed.items())
            raise invalid("settings", expected=f"those of {self.method}", got=got, advice="Only older versions had it.")
        values = {name: _with_tuples(value) for name, value in self.settings.items() if name not in retired}
        return Settings(**values, random_state=self.seed)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `normalise` only where it changes the data."""
        values = {**{each.name: getattr(self, each.name) for each in fields(self)}, "settings": dict(self.settings)}
        return values if self.normalise != "none" else {k: v for k, v in values.items() if k != "normalise"}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create a spec from `as_dict`."""
        values = {"normalise": "none", **values}
        check_fields(cls, values)
        check_facts("run", values, _SPEC)
        return cls(**values)

    @property
    def seen_data(self) -> str:
        """A name for the values that methods see: those of the data set, scaled."""
        return self.data if self.normalise == "none" else f"{self.data}-{self.normalise}"

    def __str__(self) -> str:
        labels_only = " (labels only)" if self.goal == "label" else ""
        scaled = "" if self.normalise == "none" else f" ({self.normalise})"
        return f"{self.dataset}{scaled} {self.pair} {self.method} seed {self.seed}{labels_only}"


def short_digest(value: Any) -> str:
    """A short name for plain values: the same on every machine for equal values."""
    return hash_json(value)[:_DIGEST_LENGTH]


def run_identity(method: str, settings: Mapping[str, Any], normalise: str = "none") -> str:
    """Equal for runs that differ only in data, pair, seed and goal."""
    return short_digest([method, dict(settings), normalise])


def backbone_of(method: str, settings: Mapping[str, Any]) -> str:
    """The network that a run trains; empty if it trains none, or if the method is unknown and does not say."""
    known = entries().get(method)
    usual = "" if known is None else getattr(known.method.Settings, "backbone", "")
    return str(settings.get("backbone", usual))


def data_fingerprint(dataset: Dataset) -> str:
    """A short name for every window, label, domain and split of a data set."""
    arrays = (dataset.X, dataset.y, dataset.domain_ids, dataset.split)
    pieces = (piece for values in arrays for piece in (f"{values.shape}{values.dtype.str}", values.tobytes()))
    return hash_bytes(pieces)[:_DIGEST_LENGTH]


def check_fields(cls: type, values: Mapping[str, Any]) -> None:
    """Refuse values that are not exactly the fields of a dataclass."""
    difference = set(values) ^ {each.name for each in fields(cls)}
    if difference:
        got = f"a difference in {', '.join(sorted(difference))}"
        raise invalid("values", expected=f"the fields of a {cls.__name__}", got=got, advice="Run it again.")


def _with_tuples(value: Any) -> Any:
    """Turn lists back into tuples: settings are hashable."""
    return tuple(_with_tuples(each) for each in value) if isinstance(value, list) else value
