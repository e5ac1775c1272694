"""TransPL: adapt a time-series classifier to a new user, device or patient without new labels.

>>> from transpl import TransPL, datasets
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transpl import datasets
    from transpl._utils.errors import InputError
    from transpl.estimator import TransPL
    from transpl.jobs import AdaptedTarget, adapt_many
    from transpl.markov import Drift, Explanation, ShiftReport
    from transpl.windows import PseudoLabels

try:
    __version__ = version("transpl")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "AdaptedTarget",
    "Drift",
    "Explanation",
    "InputError",
    "PseudoLabels",
    "ShiftReport",
    "TransPL",
    "__version__",
    "adapt_many",
    "datasets",
]

_HOME = {
    "AdaptedTarget": "transpl.jobs",
    "Drift": "transpl.markov",
    "Explanation": "transpl.markov",
    "InputError": "transpl._utils.errors",
    "PseudoLabels": "transpl.windows",
    "ShiftReport": "transpl.markov",
    "TransPL": "transpl.estimator.transpl",
    "adapt_many": "transpl.jobs",
}


def __getattr__(name: str) -> Any:
    # Pandas, scikit-learn and others take seconds to load: pay for them when a class is asked for.
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "datasets":
        return import_module("transpl.datasets")
    raise AttributeError(f"module 'transpl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
