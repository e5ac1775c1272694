"""Why a window got its label, and what shifted between source and target: plain data, no network, exact sums."""

from transpl.explanation.base import BaseExplanation
from transpl.explanation.contributions import Contributions
from transpl.explanation.council import (
    CouncilContributions,
    CouncilEvidence,
    CouncilExplanation,
    FeatureEvidence,
    LinearParts,
    WitnessEvidence,
    witness_in_words,
)
from transpl.explanation.evidence import ChannelEvidence, Evidence, TransitionEvidence
from transpl.explanation.explanation import Explanation
from transpl.explanation.files import load_explanation
from transpl.explanation.nearest import NearestWindows, SourceCodes
from transpl.explanation.shift import ShiftReport, Undone
from transpl.explanation.thinning import thinned

__all__ = [
    "BaseExplanation",
    "ChannelEvidence",
    "Contributions",
    "CouncilContributions",
    "CouncilEvidence",
    "CouncilExplanation",
    "Evidence",
    "Explanation",
    "FeatureEvidence",
    "LinearParts",
    "NearestWindows",
    "ShiftReport",
    "SourceCodes",
    "TransitionEvidence",
    "Undone",
    "WitnessEvidence",
    "load_explanation",
    "thinned",
    "witness_in_words",
]
