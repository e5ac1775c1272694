"""Plans in YAML: a list (or one) of mappings.

- dataset: ucihar
  methods: [no-adapt, transpl]   # or `all`, or rows: [{label: ..., method: ..., changes: {...}, goal: label}]
  pairs: [2-11, 6-23]            # default: all
  seeds: 3                       # 0, 1 and 2; or a list
  preset: paper
  changes: {max_epochs: 100}
  grid: {adapt_lr: [1e-3, 5e-4]}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from transpl._utils.errors import InputError, UnreadableFile, check_int, unreadable_file
from transpl.benchmark.plan import Plan, Row, rows_of, with_changes
from transpl.datasets.pairs import parse_pair

_OPTIONAL = ("pairs", "seeds", "preset", "changes", "grid")
_KNOWN = {"dataset", "methods", "rows", *_OPTIONAL}
_ADVICE = "See docs/benchmark.md."


def read_plans(path: Path) -> list[Plan]:
    """Read the plans of a file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise unreadable_file(path, problem="no such file", advice="Check the path.") from None
    except (yaml.YAMLError, ValueError, OSError) as error:
        raise unreadable_file(path, problem=f"not YAML ({error})", advice=_ADVICE) from None
    entries = content if isinstance(content, list) else [content]
    try:
        return [_plan(values) for values in entries]
    except InputError as error:
        raise UnreadableFile(f"{path}: {error}") from None


def _plan(values: Any) -> Plan:
    if (
        not isinstance(values, dict)
        or not {"dataset"} <= set(values) <= _KNOWN
        or not {"rows", "methods"} & set(values)
    ):
        raise InputError(f"not a plan. Give dataset, methods or rows, and perhaps {', '.join(_OPTIONAL)}.")
    changes = _numbers(_mapping("changes", values))
    rows = [*rows_of(_list("methods", values)), *(_row(row) for row in _list("rows", values))]
    return Plan(
        dataset=str(values["dataset"]),
        rows=with_changes(rows, changes),
        pairs=tuple(_pair(pair) for pair in _list("pairs", values)),
        seeds=_seeds(values.get("seeds", 1)),
        preset=str(values.get("preset", "paper")),
        grid=_numbers(_mapping("grid", values)),
    )


def _row(values: Any) -> Row:
    if isinstance(values, str):
        return Row(values, values)
    if not isinstance(values, dict) or not {"method"} <= set(values) <= {"label", "method", "changes", "goal"}:
        raise InputError(f"rows: not a row: {values}. Give method, and perhaps label, changes, goal.")
    changes = _numbers(_mapping("changes", values))
    return Row(str(values.get("label", values["method"])), str(values["method"]), changes, values.get("goal", "adapt"))


def _pair(value: Any) -> tuple[int, int]:
    return parse_pair("-".join(map(str, value)) if isinstance(value, list) else value)


def _seeds(value: Any) -> tuple[int, ...]:
    """A number n stands for 0, ..., n - 1, as on the command line."""
    if isinstance(value, list):
        return tuple(value)
    check_int("seeds", value, least=1)
    return tuple(range(value))


def _list(name: str, values: dict[str, Any]) -> list[Any]:
    found = values.get(name, [])
    if isinstance(found, str):
        return [found]
    if not isinstance(found, list):
        raise InputError(f"{name}: expected a list, got {found!r}. {_ADVICE}")
    return found


def _mapping(name: str, values: dict[str, Any]) -> dict[str, Any]:
    found = values.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{name}: expected names with values, got {found!r}. {_ADVICE}")
    return found


def _numbers(value: Any) -> Any:
    """Read 1e-3 as the number that everybody means; YAML wants 1.0e-3."""
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
