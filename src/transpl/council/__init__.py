"""The council: cheap witnesses label an unlabelled target together, after sensor shifts have been undone."""

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
