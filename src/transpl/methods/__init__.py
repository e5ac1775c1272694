"""Methods of domain adaptation: one contract, one registry, one file per method.

Methods take arrays and return arrays; they know nothing about files, pairs or tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transpl._utils.errors import require_deep

if TYPE_CHECKING:
    from transpl.methods.contract import ExplainableMethod, Method
    from transpl.methods.council_method import CouncilMethod
    from transpl.methods.network_method import NetworkMethod
    from transpl.methods.source_model import SourceModel
    from transpl.methods.transpl.paper_settings import TransPLSettings
    from transpl.methods.transpl.transpl_method import TransPLMethod
    from transpl.windows import Labelled, LearntRows, PseudoLabels, TargetInfo

__all__ = [
    "CouncilMethod",
    "ExplainableMethod",
    "Labelled",
    "LearntRows",
    "Method",
    "NetworkMethod",
    "PseudoLabels",
    "SourceModel",
    "TargetInfo",
    "TransPLMethod",
    "TransPLSettings",
]

_HOME = {
    "CouncilMethod": "transpl.methods.council_method",
    "ExplainableMethod": "transpl.methods.contract",
    "Labelled": "transpl.windows",
    "LearntRows": "transpl.windows",
    "Method": "transpl.methods.contract",
    "PseudoLabels": "transpl.windows",
    "TargetInfo": "transpl.windows",
    "TransPLSettings": "transpl.methods.transpl.paper_settings",
}
_HOME_WITH_TORCH = {
    "NetworkMethod": "transpl.methods.network_method",
    "SourceModel": "transpl.methods.source_model",
    "TransPLMethod": "transpl.methods.transpl.transpl_method",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_WITH_TORCH:
        require_deep(f"transpl.methods.{name}")
    elif name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module((_HOME | _HOME_WITH_TORCH)[name]), name)
