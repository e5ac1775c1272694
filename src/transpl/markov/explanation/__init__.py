"""Why a window got its label, and what shifted between source and target: plain data, no network, exact sums."""

from transpl.markov.explanation.base import BaseExplanation
from transpl.markov.explanation.contributions import Contributions
from transpl.markov.explanation.council import (
    CouncilContributions,
    CouncilEvidence,
    CouncilExplanation,
    FeatureEvidence,
    LinearParts,
    WitnessEvidence,
    witness_in_words,
)
from transpl.markov.explanation.evidence import ChannelEvidence, Evidence, TransitionEvidence
from transpl.markov.explanation.explanation import Explanation
from transpl.markov.explanation.files import load_explanation
from transpl.markov.explanation.nearest import NearestWindows, SourceCodes
from transpl.markov.explanation.shift import ShiftReport, Undone
from transpl.markov.explanation.thinning import thinned

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
