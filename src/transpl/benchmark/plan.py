"""What to run. A `Plan` (data set, rows, pairs, seeds) expands to `RunSpec`s, one for each single run.

`read_plans` reads plans from YAML, a list (or one) of mappings:

- dataset: ucihar
  methods: [no-adapt, transpl]   # or `all`, or rows: [{label: ..., method: ..., changes: {...}, goal: label}]
  pairs: [2-11, 6-23]            # default: all
  seeds: 3                       # 0, 1 and 2; or a list
  preset: paper
  normalise: none
  changes: {max_epochs: 100}
  grid: {adapt_lr: [1e-3, 5e-4]}
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Self

import yaml

from transpl import datasets
from transpl._utils.errors import InputError, UnreadableFile, check_choice, check_int, invalid
from transpl._utils.files import third_party
from transpl._utils.hashing import hash_bytes, hash_json
from transpl._utils.layout import check_facts
from transpl.datasets import Dataset
from transpl.datasets.pairs import parse_pair
from transpl.methods.method_settings import MethodSettings, recorded
from transpl.methods.registry import Entry, entries, entry, names

GOALS = ("adapt", "label")
NORMALISE = ("none", "domain", "per_split")
_SPEC = {  # as `check_facts` takes it
    **dict.fromkeys(("dataset", "data", "method", "goal", "normalise"), str),
    **dict.fromkeys(("source", "target", "seed"), int),
    "settings": dict,
}
_DIGEST_LENGTH = 20
_MOST_RUNS = 100_000


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


@dataclass(frozen=True)
class Row:
    """A method with some settings changed: one row of a table.

    Parameters
    ----------
    label : str
        Name of the row.
    method : str
        Registered name.
    changes : mapping
        Settings that differ from the preset.
    goal : {"adapt", "label"}
        See `RunSpec`.
    """

    label: str
    method: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    goal: str = "adapt"


@dataclass(frozen=True)
class Plan:
    """Rows to run on pairs of a data set, with some seeds.

    Parameters
    ----------
    dataset : str
        Name of a prepared data set.
    rows : tuple of Row
        What to run, see `rows_of`.
    pairs : tuple of (source, target)
        Empty for all pairs of the data set.
    seeds : tuple of int
    preset : str
        "paper", or a preset that some methods have, such as "cnn".
    normalise : {"none", "domain", "per_split"}
        How to scale the channels: not at all (the paper), each domain by its train part, or (AdaTime) each part of a
        domain by itself.
    grid : mapping
        Values to try for some settings, such as ``{"adapt_lr": [1e-3, 5e-4]}``; every combination is a run. A row
        that changes a setting itself keeps its own value.

    Examples
    --------
    >>> from transpl.benchmark import Plan, rows_of
    >>> plan = Plan("synthetic", rows_of(["no-adapt", "softmax"]), pairs=((0, 1),), seeds=(0, 1))
    >>> [str(spec) for spec in plan.runs()][:2]
    ['synthetic 0-1 no-adapt seed 0', 'synthetic 0-1 no-adapt seed 1']
    """

    dataset: str
    rows: tuple[Row, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    seeds: tuple[int, ...] = (0,)
    preset: str = "paper"
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    normalise: str = "none"

    def __post_init__(self) -> None:
        check_choice("normalise", self.normalise, NORMALISE)
        for row in self.rows:
            _check_changes([entry(row.method)], row.changes)
            check_choice("goal", row.goal, GOALS)
        for seed in self.seeds:
            check_int("seeds", seed, least=0)
        if not self.rows or not self.seeds:
            empty = "seeds" if self.rows else "rows"
            raise invalid(empty, expected="one or more", got="none", advice="A plan needs methods and seeds.")
        n_runs = len(self.rows) * len(self.seeds)
        for values in self.grid.values():
            n_runs *= len(values) if isinstance(values, Sequence) else 1
        if n_runs > _MOST_RUNS:
            expected, advice = f"at most {_MOST_RUNS:,} runs per pair", "Try fewer values, or fewer seeds."
            raise invalid("seeds, grid", expected=expected, got=f"{n_runs:,}", advice=advice)
        _check_setting_names("grid", self.grid, (entry(row.method) for row in self.rows))
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                expected = f"a list of values for {name}"
                raise invalid("grid", expected=expected, got=repr(values), advice="Give at least one.")
            if all(name in row.changes for row in self.rows if name in entry(row.method).setting_names):
                advice = "Either change it or try values."
                raise invalid("grid", expected="settings that changes leave open", got=name, advice=advice)

    def runs(self, data: Dataset | None = None) -> list[RunSpec]:
        """Every run, each once. `data` replaces the prepared data set."""
        data = datasets.load(self.dataset) if data is None else data
        needs_groups = [row.method for row in self.rows if "groups" in entry(row.method).method.requires]
        if needs_groups and data.groups is None:
            expected = f"methods for a data set that does not say which windows belong together ({self.dataset})"
            advice = "Leave it out, or prepare the data set with `group`."
            raise invalid("methods", expected=expected, got=needs_groups[0], advice=advice)
        fingerprint = data_fingerprint(data)
        specs = [
            RunSpec(self.dataset, fingerprint, source, target, row.method, seed, settings, row.goal, self.normalise)
            for row in self.rows
            for settings in self.settings_for(row)
            for seed in self.seeds
            for source, target in self.pairs_of(data)
        ]
        return list({spec.digest: spec for spec in specs}.values())

    def pairs_of(self, data: Dataset) -> tuple[tuple[int, int], ...]:
        """The pairs to run; pairs of unknown domains are refused."""
        unknown = sorted({domain for pair in self.pairs for domain in pair} - set(data.domains))
        if unknown:
            expected = f"domains of {self.dataset} ({', '.join(map(str, data.domains))})"
            raise invalid("pairs", expected=expected, got=", ".join(map(str, unknown)), advice="Choose among these.")
        return self.pairs or data.pairs

    def settings_for(self, row: Row) -> list[dict[str, Any]]:
        """The settings of a row, without the seed: one, or one per point of the grid."""
        open_ones = entry(row.method).setting_names - set(row.changes)
        tried = {name: self.grid[name] for name in self.grid if name in open_ones}
        points = [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]
        return [
            settings_without_seed(
                settings_of([row.method], self.dataset, 0, self.preset, {**point, **row.changes})[row.method]
            )
            for point in points
        ]


# Rows


def rows_of(methods: Iterable[str], changes: Mapping[str, Any] | None = None) -> tuple[Row, ...]:
    """One row per method.

    Parameters
    ----------
    methods : iterable of str
        Registered names; "all" stands for every method that needs no groups, which few data sets have.
    changes : mapping, optional
        Settings to change in the methods that have them.
    """
    without_groups = tuple(name for name in names() if "groups" not in entry(name).method.requires)
    chosen = dict.fromkeys(name for given in methods for name in (without_groups if given == "all" else (given,)))
    return with_changes([Row(name, name) for name in chosen], changes or {})


def with_changes(rows: Iterable[Row], changes: Mapping[str, Any]) -> tuple[Row, ...]:
    """Change settings of the rows whose methods have them; a row's own changes win."""
    rows = tuple(rows)
    if not rows:
        return ()
    settings_of([row.method for row in rows], "", 0, "paper", changes)  # refuses a setting that none of them has
    return tuple(replace(row, changes={**_applicable(entry(row.method), changes), **row.changes}) for row in rows)


def only_methods(rows: Iterable[Row], methods: Iterable[str]) -> tuple[Row, ...]:
    """The rows of these methods, or all rows if none is named; a name that no row has is refused."""
    rows, wanted = tuple(rows), set(methods) - {"all"}
    known = {row.method for row in rows}
    if not wanted <= known:
        expected, got = f"methods of the table ({', '.join(sorted(known))})", ", ".join(sorted(wanted - known))
        raise invalid("methods", expected=expected, got=got, advice="Leave out --table to run other methods.")
    return tuple(row for row in rows if not wanted or row.method in wanted)


# Settings


def settings_of(
    methods: Sequence[str],
    dataset: str,
    seed: int = 0,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> dict[str, MethodSettings]:
    """The settings that `compare` runs each method with.

    Parameters
    ----------
    methods : sequence of str
        Registered names.
    dataset : str
        Name of the data set; an unknown one (your own) gets the defaults.
    seed : int
    preset : str
        "paper", or a preset such as "adatime" for the methods that have it; the others take the paper's values.
    changes : mapping, optional
        Settings to change in the methods that have them; a name that none of them has is refused.

    Returns
    -------
    dict
        Method name -> settings.

    Examples
    --------
    >>> from transpl.benchmark import settings_of
    >>> settings_of(["softmax"], "wisdm", changes={"max_epochs": 40})["softmax"].max_epochs
    40
    """
    return settings_of_entries({name: entry(name) for name in methods}, dataset, seed, preset, changes)


def settings_of_entries(
    methods: Mapping[str, Entry],
    dataset: str,
    seed: int = 0,
    preset: str = "paper",
    changes: Mapping[str, Any] | None = None,
) -> dict[str, MethodSettings]:
    """As `settings_of`, for methods of any name."""
    changes = dict(changes or {})
    known = {name for found in entries().values() for name in found.method.Settings.preset_names()}
    check_choice("preset", preset, ("paper", *sorted(known - {"paper"})))
    _check_changes(methods.values(), changes)
    settings = {}
    for name, method in methods.items():
        own_preset = preset if preset in method.method.Settings.preset_names() else "paper"
        settings[name] = method.settings(dataset, own_preset, **_applicable(method, changes), random_state=seed)
    return settings


def settings_without_seed(settings: MethodSettings) -> dict[str, Any]:
    """Settings as they are recorded in a `RunSpec`: plain values without the seed; 1 and 1.0 are the same fraction."""
    fractions = {each.name for each in fields(settings) if isinstance(each.default, float)}
    fractions -= settings.recorded_if_changed  # of a library, to which 1 and 1.0 may be different
    return {
        name: float(value) if name in fractions and type(value) is int else value
        for name, value in recorded(settings).items()
        if name != "random_state"
    }


def _applicable(method: Entry, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name in method.setting_names}


def _check_changes(methods: Iterable[Entry], changes: Mapping[str, Any]) -> None:
    _check_setting_names("changes", changes, methods)
    if "random_state" in changes:
        raise invalid("changes", expected="no random_state", got=changes["random_state"], advice="Pass it as seed.")


def _check_setting_names(argument: str, settings: Iterable[str], methods: Iterable[Entry]) -> None:
    """Refuse settings that none of the methods has."""
    methods = list(methods)
    unknown = sorted(set(settings) - {name for method in methods for name in method.setting_names})
    if unknown:
        expected = f"settings of {', '.join(dict.fromkeys(method.name for method in methods))}"
        raise invalid(argument, expected=expected, got=", ".join(unknown), advice="See `transpl methods NAME`.")


# Digests


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


# YAML

_OPTIONAL_KEYS = ("pairs", "seeds", "preset", "normalise", "changes", "grid")
_ADVICE = "See docs/benchmark.md."
_PLAIN = (dict, list, str, int, float, type(None))
_KINDS = {
    "dataset": str,
    "methods": (str, [str]),
    "pairs": (str, [(str, [int])]),
    "seeds": (int, [int]),
    "preset": str,
    "normalise": str,
    "changes": {str: (int, float, str, bool, list, None)},
    "grid": {str: [(int, float, str, bool, list, None)]},
}
_ROW = {"method": str, "label?": str, "goal?": str, "changes?": _KINDS["changes"]}


def read_plans(path: Path) -> list[Plan]:
    """Read the plans of a YAML file."""
    with third_party(path, "not YAML", _ADVICE):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    try:
        _check_plain([content])
        return [_parse_plan(values) for values in (content if isinstance(content, list) else [content])]
    except InputError as error:
        raise UnreadableFile(f"{path}: {error}") from None


def _check_plain(values: list[Any]) -> None:
    """Raise for values that JSON cannot hold, such as dates, and for references that unfold to far too many values."""
    waiting, n = values, 0
    while waiting:
        n, value = n + 1, waiting.pop()
        inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        if n > _MOST_RUNS or not isinstance(value, _PLAIN) or (isinstance(value, float) and not math.isfinite(value)):
            got = f"more than {_MOST_RUNS}" if n > _MOST_RUNS else repr(value)
            raise invalid("plan", expected="names, numbers and lists of them", got=got, advice=_ADVICE)
        if isinstance(value, dict) and (odd := [key for key in value if not isinstance(key, str)]):
            raise invalid("plan", expected="names before a colon", got=repr(odd[0]), advice=_ADVICE)
        if isinstance(inner, list):
            waiting.extend(inner)


def _parse_plan(values: Any) -> Plan:
    known = {"dataset", "methods", "rows", *_OPTIONAL_KEYS}
    if not isinstance(values, dict) or not {"dataset"} <= set(values) <= known or not {"rows", "methods"} & set(values):
        raise InputError(f"not a plan. Give dataset, methods or rows, and perhaps {', '.join(_OPTIONAL_KEYS)}.")
    for name in ("methods", "rows", "pairs"):
        _parse_list(name, values)
    for name in ("changes", "grid"):
        _parse_mapping(name, values)
    for name, kind in _KINDS.items():
        if name in values:
            check_facts(name, values[name], kind, _ADVICE)
    seeds = values.get("seeds", 1)
    if not isinstance(seeds, list):
        check_int("seeds", seeds, least=1)
        seeds = range(min(seeds, _MOST_RUNS + 1))
    rows = [*rows_of(_parse_list("methods", values)), *map(_parse_row, _parse_list("rows", values))]
    pairs = ("-".join(map(str, pair)) if isinstance(pair, list) else pair for pair in _parse_list("pairs", values))
    return Plan(
        dataset=values["dataset"],
        rows=with_changes(rows, _parse_mapping("changes", values)),
        pairs=tuple(map(parse_pair, pairs)),
        seeds=tuple(seeds),
        preset=values.get("preset", "paper"),
        normalise=values.get("normalise", "none"),
        grid=_parse_mapping("grid", values),
    )


def _parse_row(values: Any) -> Row:
    if isinstance(values, str):
        return Row(values, values)
    if not isinstance(values, dict) or not {"method"} <= set(values) <= {name.removesuffix("?") for name in _ROW}:
        raise InputError(f"rows: not a row: {values}. Give method, and perhaps label, changes, goal.")
    check_facts("rows", values, _ROW, _ADVICE)
    method = str(values["method"])
    changes = _parse_mapping("changes", values)
    return Row(str(values.get("label", method)), method, changes, str(values.get("goal", "adapt")))


def _parse_list(name: str, values: dict[str, Any]) -> list[Any]:
    found = values.get(name, [])
    if not isinstance(found, (list, str)):
        raise InputError(f"{name}: expected a list, got {found!r}. {_ADVICE}")
    return [found] if isinstance(found, str) else found


def _parse_mapping(name: str, values: dict[str, Any]) -> dict[str, Any]:
    found = values.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{name}: expected names with values, got {found!r}. {_ADVICE}")
    numbers: dict[str, Any] = _parse_numbers(found)
    return numbers


def _parse_numbers(value: Any) -> Any:
    """Read 1e-3 as a number; YAML reads it as a string and wants 1.0e-3."""
    if isinstance(value, dict):
        return {name: _parse_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_parse_numbers(each) for each in value]
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
