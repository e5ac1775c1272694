"""Methods side by side on the same pair of domains, scored by an evaluator that alone holds the target's labels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transpl.benchmark.comparing import compare, settings_of
    from transpl.benchmark.pair import Evaluator, Pair, split_pair
    from transpl.benchmark.result import Result

__all__ = ["Evaluator", "Pair", "Result", "compare", "settings_of", "split_pair"]

_HOME = {
    "Evaluator": "pair",
    "Pair": "pair",
    "Result": "result",
    "compare": "comparing",
    "settings_of": "comparing",
    "split_pair": "pair",
}


def __getattr__(name: str) -> Any:
    # Scores and tables need no torch; pay for it where methods run.
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
