"""Several cheap witnesses look at an unlabelled target; what a sensor suffered is undone before they are heard."""

from transpl.council.coded_source import CodedSource
from transpl.council.council import Council, Hearing, Standing
from transpl.council.explaining import as_undone, parts_of, signals_of, undone_by
from transpl.council.explanation import (
    CouncilContributions,
    CouncilEvidence,
    CouncilExplanation,
    FeatureEvidence,
    LinearParts,
    WitnessEvidence,
    load_explanation,
    witness_in_words,
)
from transpl.council.joining import Structure
from transpl.council.parameters import CouncilParameters, CouncilSettings
from transpl.council.patch_codes import PatchCodes
from transpl.council.quality import Estimate

__all__ = [
    "CodedSource",
    "Council",
    "CouncilContributions",
    "CouncilEvidence",
    "CouncilExplanation",
    "CouncilParameters",
    "CouncilSettings",
    "Estimate",
    "FeatureEvidence",
    "Hearing",
    "LinearParts",
    "PatchCodes",
    "Standing",
    "Structure",
    "WitnessEvidence",
    "as_undone",
    "load_explanation",
    "parts_of",
    "signals_of",
    "undone_by",
    "witness_in_words",
]
