"""Methods of domain adaptation: one contract, one registry, one file per method.

Methods take arrays and return arrays; they know nothing about files, pairs or tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transpl._utils.errors import require_deep
from transpl._utils.lazy import lazy_names

if TYPE_CHECKING:
    from transpl.methods.contract import Method
    from transpl.methods.council_method import CouncilMethod
    from transpl.methods.explainable import ExplainableMethod
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

_NEED_TORCH = {
    "network_method": ("NetworkMethod",),
    "source_model": ("SourceModel",),
    "transpl.transpl_method": ("TransPLMethod",),
}
_get = lazy_names(
    __name__,
    {
        "contract": ("Labelled", "LearntRows", "Method", "PseudoLabels", "TargetInfo"),
        "council_method": ("CouncilMethod",),
        "explainable": ("ExplainableMethod",),
        "transpl.paper_settings": ("TransPLSettings",),
        **_NEED_TORCH,
    },
)


def __getattr__(name: str) -> Any:
    if any(name in names for names in _NEED_TORCH.values()):
        require_deep(f"transpl.methods.{name}")
    return _get(name)
