"""The council: cheap witnesses label an unlabelled target together, after sensor shifts have been undone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transpl.council.council import Council, CouncilAnswer, SeatAccuracy
    from transpl.council.evidence import (
        CouncilContributions,
        CouncilEvidence,
        CouncilExplanation,
        FeatureEvidence,
        LinearParts,
        WitnessEvidence,
        explanation_fields,
        load_explanation,
        witness_in_words,
    )
    from transpl.council.joining import AccuracyEstimate
    from transpl.council.patch_codes import CodedSource, PatchCodes
    from transpl.council.settings import CouncilSettings
    from transpl.council.target_sample import MAX_WINDOWS, TargetSample

__all__ = [
    "MAX_WINDOWS",
    "AccuracyEstimate",
    "CodedSource",
    "Council",
    "CouncilAnswer",
    "CouncilContributions",
    "CouncilEvidence",
    "CouncilExplanation",
    "CouncilSettings",
    "FeatureEvidence",
    "LinearParts",
    "PatchCodes",
    "SeatAccuracy",
    "TargetSample",
    "WitnessEvidence",
    "explanation_fields",
    "load_explanation",
    "witness_in_words",
]

_MODULES = {
    "council": ("Council", "CouncilAnswer", "SeatAccuracy"),
    "joining": ("AccuracyEstimate",),
    "patch_codes": ("CodedSource", "PatchCodes"),
    "settings": ("CouncilSettings",),
    "target_sample": ("MAX_WINDOWS", "TargetSample"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Settings and their help texts are read by the command line, which should not wait for scikit-learn.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'evidence')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
