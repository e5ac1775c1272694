"""The paper's mathematics on integer arrays: transition counts, channel alignment, posteriors.

Codes are integer arrays (n, channels, N): code of patch t, or -1 where a shorter window has no patch t.
Everything is computed in float64; nothing here knows about torch, training or data sets.
"""

from transpl.markov.alignment import channel_distances, channel_weights, row_distances, transport_cost
from transpl.markov.counts import TransitionCounts, check_epsilon
from transpl.markov.drift import Drift, measure_drift
from transpl.markov.evidence import (
    class_log_probabilities,
    each_transition,
    mean_over_transitions,
    transition_log_probabilities,
)
from transpl.markov.explanation import (
    BaseExplanation,
    CouncilContributions,
    CouncilExplanation,
    Explanation,
    ShiftReport,
    SourceCodes,
    Undone,
    load_explanation,
    thinned,
    witness_in_words,
)
from transpl.markov.explanation.nearest import NearestWindows, nearest_windows
from transpl.markov.explanation.thinning import evenly_spaced
from transpl.markov.labels import (
    UNKNOWN,
    Labelled,
    LearntRows,
    PseudoLabels,
    certain_where_known,
    counts_of_labels,
    obeying,
)
from transpl.markov.posterior import (
    CONFIDENCE,
    LENGTHS,
    channel_posteriors,
    check_prior,
    confidence,
    label_probabilities,
    log_likelihoods,
    voting_weights,
    weighted_vote,
)
from transpl.markov.usage import CodebookUsage, codebook_usage

__all__ = [
    "CONFIDENCE",
    "LENGTHS",
    "UNKNOWN",
    "BaseExplanation",
    "CodebookUsage",
    "CouncilContributions",
    "CouncilExplanation",
    "Drift",
    "Explanation",
    "Labelled",
    "LearntRows",
    "NearestWindows",
    "PseudoLabels",
    "ShiftReport",
    "SourceCodes",
    "TransitionCounts",
    "Undone",
    "certain_where_known",
    "channel_distances",
    "channel_posteriors",
    "channel_weights",
    "check_epsilon",
    "check_prior",
    "class_log_probabilities",
    "codebook_usage",
    "confidence",
    "counts_of_labels",
    "each_transition",
    "evenly_spaced",
    "label_probabilities",
    "load_explanation",
    "log_likelihoods",
    "mean_over_transitions",
    "measure_drift",
    "nearest_windows",
    "obeying",
    "row_distances",
    "thinned",
    "transition_log_probabilities",
    "transport_cost",
    "voting_weights",
    "weighted_vote",
    "witness_in_words",
]
