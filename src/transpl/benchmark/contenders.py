"""Who takes part in a leaderboard: runs that differ in data, pair or seed only belong to one contender."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transpl.benchmark.leaderboard_data import Contender
from transpl.benchmark.plan import RunSpec, settings_without_seed
from transpl.methods.registry import entries, names

_ABSENT = "absent"
Key = tuple[str, str, tuple[tuple[str, str], ...]]  # method, goal, settings that are not the paper's


class Contenders:
    """The contenders of some runs, in the order of the paper's tables."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        self._defaults = _Defaults(specs)
        keys = sorted({self._key(spec) for spec in specs}, key=_order)
        self.shared = _shared([dict(changes) for _, _, changes in keys])
        self._contenders = {key: _contender(key, self.shared) for key in keys}

    def of(self, spec: RunSpec) -> Contender:
        """The one that a run belongs to."""
        return self._contenders[self._key(spec)]

    @property
    def all(self) -> tuple[Contender, ...]:
        return tuple(self._contenders.values())

    def _key(self, spec: RunSpec) -> Key:
        changes = changes_between(_as_text(spec.settings), self._defaults.of(spec))
        return spec.method, spec.goal, tuple(sorted(changes.items()))


def changes_between(settings: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The settings that are not the defaults; one that only the defaults have is "absent"."""
    every = {**dict.fromkeys(defaults, _ABSENT), **settings}
    return {name: value for name, value in every.items() if defaults.get(name) != value}


class _Defaults:
    """The paper's settings of a method for a data set, as text.

    A method that is not registered here (somebody's own, whose file is not loaded) has none: what all of its runs on
    the data set have in common stands for them.
    """

    def __init__(self, specs: Iterable[RunSpec]) -> None:
        self._known = entries()
        self._found: dict[tuple[str, str], dict[str, str]] = {}
        self._strangers: dict[tuple[str, str], list[dict[str, str]]] = {}
        for spec in specs:
            if spec.method not in self._known:
                self._strangers.setdefault((spec.method, spec.dataset), []).append(_as_text(spec.settings))

    def of(self, spec: RunSpec) -> Mapping[str, str]:
        where = spec.method, spec.dataset
        if where not in self._found:
            known = self._known.get(spec.method)
            self._found[where] = (
                _shared(self._strangers[where])
                if known is None
                else _as_text(settings_without_seed(known.settings(spec.dataset)))
            )
        return self._found[where]


def _shared(several: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The entries that all of them have alike."""
    first, *others = several
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _as_text(settings: Mapping[str, Any]) -> dict[str, str]:
    """As JSON has them, so that a tuple equals the list that it was read back as; texts without quotes."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}


def _contender(key: Key, shared: Mapping[str, str]) -> Contender:
    method, goal, changes = key
    own = {name: value for name, value in changes if name not in shared}
    known = entries().get(method)
    name = f"{method} (labels only)" if goal == "label" else method
    return Contender(
        label=", ".join([name, *(f"{setting}={value}" for setting, value in own.items())]),
        method=method,
        goal=goal,
        changes=own,
        remarks=tuple(_remarks(method, goal)),
        upper_bound=known is not None and known.method.uses_target_labels,
    )


def _remarks(method: str, goal: str) -> Iterable[str]:
    known = entries().get(method)
    if goal == "label":
        yield "only labels the target with the source model"
    if known is None:
        yield "not registered here, so its defaults are unknown; settings that vary are shown"
    elif known.method.uses_target_labels:
        yield "trained on target labels: an upper bound, not ranked"
    elif "prior" in known.method.requires:
        yield "is told the target's class proportions"
    elif "groups" in known.method.requires:
        yield "is told which windows are of one recording or patient"


def _order(key: Key) -> tuple[Any, ...]:
    method, goal, changes = key
    known = names()
    values = tuple((name, *_by_size(value)) for name, value in changes)
    return known.index(method) if method in known else len(known), method, goal, len(changes), values


def _by_size(value: str) -> tuple[float, str]:
    """Numbers by size, before other values."""
    try:
        return float(value), value
    except ValueError:
        return math.inf, value
