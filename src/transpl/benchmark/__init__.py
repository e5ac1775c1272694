"""Methods side by side on the same pair of domains, scored by an evaluator that alone holds the target's labels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transpl.benchmark.plan import Plan, Row, RunSpec, rows_of, settings_of
    from transpl.benchmark.protocol import Evaluator, Pair, split_pair
    from transpl.benchmark.run import compare
    from transpl.benchmark.runner import restore_run, run_plan
    from transpl.benchmark.store import Result, Store

_MODULES = {
    "plan": ("Plan", "Row", "RunSpec", "rows_of", "settings_of"),
    "protocol": ("Evaluator", "Pair", "split_pair"),
    "run": ("compare",),
    "runner": ("restore_run", "run_plan"),
    "store": ("Result", "Store"),
}
_HOME = {name: module for module, exported in _MODULES.items() for name in exported}
__all__ = [
    "Evaluator",
    "Pair",
    "Plan",
    "Result",
    "Row",
    "RunSpec",
    "Store",
    "compare",
    "restore_run",
    "rows_of",
    "run_plan",
    "settings_of",
    "split_pair",
]


def __getattr__(name: str) -> Any:
    # Lazy: plans, stored results and tables are read without importing torch.
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
