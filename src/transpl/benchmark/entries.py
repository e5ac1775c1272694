"""Entries of a leaderboard: methods with their settings, told apart by what differs from the paper's."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transpl.benchmark.plan import settings_without_seed
from transpl.benchmark.run_spec import RunSpec, backbone_of
from transpl.methods.registry import Entry, entries, names

_ABSENT = "absent"


@dataclass(frozen=True)
class LeaderboardEntry:
    """A method with its settings: what a row of the leaderboard stands for.

    label : different for every entry
    goal : "adapt", or "label" for runs that only label the target with the source model
    changes : settings that differ from the paper's, as text, except those that all entries share
    backbone : the network that the method trains; empty if it trains none
    remarks : what a reader has to know before comparing it with others
    informed : knows more of the target than its windows (class proportions, recordings), so not best beside rows that
        do not
    upper_bound : trained on target labels, so neither ranked nor best
    """

    label: str
    method: str
    goal: str
    changes: Mapping[str, str] = field(default_factory=dict)
    backbone: str = ""
    remarks: tuple[str, ...] = ()
    informed: bool = False
    upper_bound: bool = False


_Key = tuple[str, str, tuple[tuple[str, str], ...]]  # method, goal, settings that are not the paper's


class EntryIndex:
    """The entries of some runs, in the order of the paper's tables: runs of one differ only in data, pair or seed."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        self._defaults = _default_settings(specs)
        keys = sorted({self._key(spec) for spec in specs}, key=_sort_key)
        self.shared_changes = _in_all([dict(changes) for _, _, changes in keys])
        backbones = {self._key(spec): backbone_of(spec.method, spec.settings) for spec in specs}
        self._entries = {}
        for key in keys:
            method, goal, changes = key
            own = {name: value for name, value in changes if name not in self.shared_changes}
            self._entries[key] = make_entry(_label(method, goal, own), method, goal, own, backbones[key])

    @property
    def entries(self) -> tuple[LeaderboardEntry, ...]:
        """All entries."""
        return tuple(self._entries.values())

    def of(self, spec: RunSpec) -> LeaderboardEntry:
        """The entry that a run belongs to."""
        return self._entries[self._key(spec)]

    def _key(self, spec: RunSpec) -> _Key:
        settings, usual = _as_text(spec.settings), self._defaults[spec.method, spec.dataset]
        candidates = [
            {**({} if name == "paper" else {"preset": name}), **changes_between(settings, values)}
            for name, values in usual.items()
        ]
        changes = min(candidates, key=len)
        if spec.normalise != "none":
            changes["normalise"] = spec.normalise
        return spec.method, spec.goal, tuple(sorted(changes.items()))


def changes_between(settings: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The settings that are not the defaults; one that only the defaults have is "absent"."""
    every = {**dict.fromkeys(defaults, _ABSENT), **settings}
    return {name: value for name, value in every.items() if defaults.get(name) != value}


def _default_settings(specs: Iterable[RunSpec]) -> dict[tuple[str, str], dict[str, dict[str, str]]]:
    """(method, data set) -> preset -> its settings, as text.

    For a method that is not registered (its plugin is not loaded) these are the settings that all its runs on the data
    set have in common.
    """
    groups: dict[tuple[str, str], list[RunSpec]] = {}
    for spec in specs:
        groups.setdefault((spec.method, spec.dataset), []).append(spec)
    known = entries()
    return {
        (method, dataset): {
            preset: _as_text(settings_without_seed(known[method].settings(dataset, preset)))
            for preset in known[method].method.Settings.preset_names()
        }
        if method in known
        else {"paper": _in_all([_as_text(spec.settings) for spec in found])}
        for (method, dataset), found in groups.items()
    }


def _in_all(several: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The settings that all of them have alike."""
    first, *others = several
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _as_text(settings: Mapping[str, Any]) -> dict[str, str]:
    """As in JSON, where a tuple equals the list that it is read back as; strings without quotes."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}


def make_entry(label: str, method: str, goal: str, changes: Mapping[str, str], backbone: str = "") -> LeaderboardEntry:
    """An entry with what its method is known for."""
    known = entries().get(method)
    return LeaderboardEntry(
        label,
        method,
        goal,
        changes,
        backbone,
        remarks=_remarks(known, goal),
        informed=known is not None and not {"prior", "groups"}.isdisjoint(known.method.requires),
        upper_bound=known is not None and known.method.uses_target_labels,
    )


def _label(method: str, goal: str, changes: Mapping[str, str]) -> str:
    name = f"{method} (labels only)" if goal == "label" else method
    return ", ".join([name, *(f"{setting}={value}" for setting, value in changes.items())])


def _remarks(known: Entry | None, goal: str) -> tuple[str, ...]:
    """What a reader has to know before comparing it with others."""
    remarks = ["only labels the target with the source model"] if goal == "label" else []
    if known is None:
        remarks.append("not registered here, so its defaults are unknown; settings that vary are shown")
    elif known.method.uses_target_labels:
        remarks.append("trained on target labels: an upper bound, not ranked")
    elif "prior" in known.method.requires:
        remarks.append("knows the target's class proportions")
    elif "groups" in known.method.requires:
        remarks.append("knows which windows belong to one recording or patient")
    return tuple(remarks)


def place_of(method: str, order: Sequence[str]) -> int:
    """The position of a method in an order; behind all others if it is not in it."""
    return order.index(method) if method in order else len(order)


def _sort_key(key: _Key) -> tuple[Any, ...]:
    """Methods in the order of the paper's tables; their settings by size, numbers before text."""

    def size(value: str) -> tuple[float, str]:
        try:
            return float(value), value
        except ValueError:
            return math.inf, value

    method, goal, changes = key
    return place_of(method, names()), method, goal, len(changes), tuple((name, *size(value)) for name, value in changes)
