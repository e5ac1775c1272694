"""The council: cheap witnesses label an unlabelled target together, after sensor shifts have been undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transpl._utils.lazy import lazy_names

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

# The command line reads settings and their help texts; it should not wait for scikit-learn.
__getattr__ = lazy_names(
    __name__,
    {
        "council": ("Council", "CouncilAnswer", "SeatAccuracy"),
        "evidence": (
            "CouncilContributions",
            "CouncilEvidence",
            "CouncilExplanation",
            "FeatureEvidence",
            "LinearParts",
            "WitnessEvidence",
            "explanation_fields",
            "load_explanation",
            "witness_in_words",
        ),
        "joining": ("AccuracyEstimate",),
        "patch_codes": ("CodedSource", "PatchCodes"),
        "settings": ("CouncilSettings",),
        "target_sample": ("MAX_WINDOWS", "TargetSample"),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
