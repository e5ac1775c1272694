"""The paper's mathematics on integer arrays: transition counts, channel alignment, posteriors, drift, explanations.

Codes are integer arrays (n, channels, N): the code of patch t, or -1 where a shorter window has no patch t. Everything
is computed in float64 with numpy, scipy and POT; nothing here knows about torch, training or data sets.
"""

from transpl.markov.alignment import (
    channel_distances,
    channel_weights,
    row_distances,
    transport_cost,
    unread_channels,
)
from transpl.markov.contributions import ChannelEvidence, Contributions, TransitionEvidence, VoteEvidence
from transpl.markov.counts import CodebookUsage, TransitionCounts, check_epsilon, codebook_usage, few_label_counts
from transpl.markov.drift import Drift, measure_drift
from transpl.markov.explanation import MAX_EXPLAINED, BaseExplanation, Explanation, windows_to_explain
from transpl.markov.nearest import NearestWindows, SourceCodes, nearest_windows
from transpl.markov.posterior import (
    CONFIDENCE,
    LENGTHS,
    channel_posteriors,
    check_prior,
    class_log_probabilities,
    confidence,
    each_transition,
    label_probabilities,
    log_likelihoods,
    mean_over_transitions,
    transition_log_probabilities,
    voting_weights,
    weighted_vote,
)
from transpl.markov.shift_report import ShiftReport, Undone

__all__ = [
    "CONFIDENCE",
    "LENGTHS",
    "MAX_EXPLAINED",
    "BaseExplanation",
    "ChannelEvidence",
    "CodebookUsage",
    "Contributions",
    "Drift",
    "Explanation",
    "NearestWindows",
    "ShiftReport",
    "SourceCodes",
    "TransitionCounts",
    "TransitionEvidence",
    "Undone",
    "VoteEvidence",
    "channel_distances",
    "channel_posteriors",
    "channel_weights",
    "check_epsilon",
    "check_prior",
    "class_log_probabilities",
    "codebook_usage",
    "confidence",
    "each_transition",
    "few_label_counts",
    "label_probabilities",
    "log_likelihoods",
    "mean_over_transitions",
    "measure_drift",
    "nearest_windows",
    "row_distances",
    "transition_log_probabilities",
    "transport_cost",
    "unread_channels",
    "voting_weights",
    "weighted_vote",
    "windows_to_explain",
]
