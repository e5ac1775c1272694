"""Plans in YAML: a list of mappings, or one.

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

import math
from pathlib import Path
from typing import Any

import yaml

from transpl._utils.errors import InputError, UnreadableFile, check_int, invalid
from transpl._utils.files import third_party
from transpl._utils.layout import check_facts
from transpl.benchmark.plan import MOST_RUNS, Plan, Row, rows_of, with_changes
from transpl.datasets.pairs import parse_pair

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
        if n > MOST_RUNS or not isinstance(value, _PLAIN) or (isinstance(value, float) and not math.isfinite(value)):
            got = f"more than {MOST_RUNS}" if n > MOST_RUNS else repr(value)
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
        seeds = range(min(seeds, MOST_RUNS + 1))
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
