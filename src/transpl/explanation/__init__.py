"""Why a window got its label, and what shifted between source and target: plain data, no network, exact sums."""

from transpl.explanation.contributions import Contributions
from transpl.explanation.evidence import ChannelEvidence, Evidence, TransitionEvidence
from transpl.explanation.explanation import Explanation
from transpl.explanation.nearest import NearestWindows, SourceCodes
from transpl.explanation.shift import ShiftReport
from transpl.explanation.thinning import thinned

__all__ = [
    "ChannelEvidence",
    "Contributions",
    "Evidence",
    "Explanation",
    "NearestWindows",
    "ShiftReport",
    "SourceCodes",
    "TransitionEvidence",
    "thinned",
]
