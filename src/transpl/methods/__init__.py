"""One file per method, one contract, one registry. Methods receive arrays and return arrays; they know no files,
pairs or tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transpl._utils.errors import require_deep
from transpl.windows import Labelled, LearntRows, PseudoLabels

if TYPE_CHECKING:
    from transpl.methods.base import GroupedMethod, Method
    from transpl.methods.source_model import SourceModel
    from transpl.methods.transpl.method import TransPLMethod
    from transpl.methods.transpl.settings import TransPLSettings

__all__ = [
    "GroupedMethod",
    "Labelled",
    "LearntRows",
    "Method",
    "PseudoLabels",
    "SourceModel",
    "TransPLMethod",
    "TransPLSettings",
]

_WITH_TORCH = {
    "GroupedMethod": "base",
    "Method": "base",
    "SourceModel": "source_model",
    "TransPLMethod": "transpl.method",
    "TransPLSettings": "transpl.settings",
}


def __getattr__(name: str) -> Any:
    if name in _WITH_TORCH:
        require_deep("transpl.methods")
        return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
