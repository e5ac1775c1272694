"""TransPL: adapt a time-series classifier to a new user, device or patient without new labels.

>>> from transpl import TransPL, datasets
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from transpl._utils.lazy import lazy_names

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

# Pandas, scikit-learn and others take seconds to load: pay for them when a class is asked for.
_get = lazy_names(
    __name__,
    {
        "_utils.errors": ("InputError",),
        "estimator": ("TransPL",),
        "jobs": ("AdaptedTarget", "adapt_many"),
        "markov": ("Drift", "Explanation", "ShiftReport"),
        "windows": ("PseudoLabels",),
    },
)


def __getattr__(name: str) -> Any:
    return import_module("transpl.datasets") if name == "datasets" else _get(name)


def __dir__() -> list[str]:
    return sorted(__all__)
