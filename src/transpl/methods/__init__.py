"""One file per method, one contract, one registry. Methods receive arrays and return arrays; they know no files,
pairs or tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transpl.errors import require_deep
from transpl.labels import Labelled, LearntRows, PseudoLabels

if TYPE_CHECKING:
    from transpl.methods.base import GroupedMethod, Method
    from transpl.methods.source_model import SourceModel
    from transpl.methods.transpl import TransPLMethod
    from transpl.methods.transpl_settings import TransPLSettings

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
    "TransPLMethod": "transpl",
    "TransPLSettings": "transpl_settings",
}


def __getattr__(name: str) -> Any:
    if name in _WITH_TORCH:
        require_deep("transpl.methods")
        return getattr(import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
