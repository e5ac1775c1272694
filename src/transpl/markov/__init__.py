"""The paper's mathematics on integer arrays: transition counts, channel alignment, posteriors.

Codes are integer arrays (n, channels, N): code of patch t, or -1 where a shorter window has no patch t.
Everything is computed in float64; nothing here knows about torch, training or data sets.
"""

from transpl.markov.alignment import channel_distances, channel_weights, row_distances, transport_cost
from transpl.markov.counts import TransitionCounts
from transpl.markov.evidence import transition_log_probabilities
from transpl.markov.posterior import channel_posteriors, confidence, label_probabilities, log_likelihoods
from transpl.markov.usage import CodebookUsage, codebook_usage

__all__ = [
    "CodebookUsage",
    "TransitionCounts",
    "channel_distances",
    "channel_posteriors",
    "channel_weights",
    "codebook_usage",
    "confidence",
    "label_probabilities",
    "log_likelihoods",
    "row_distances",
    "transition_log_probabilities",
    "transport_cost",
]
