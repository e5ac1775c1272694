"""Counting and labelling, as a share of encoding and against a plain Python loop."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch

from benchmarks.timing import interleaved
from transpl.markov import TransitionCounts, channel_weights, label_probabilities, log_likelihoods
from transpl.nn import Network, NetworkSettings
from transpl.nn.inference import coarse_codes
from transpl.windows import as_windows

WINDOWS, CHANNELS, TIME, CLASSES, CODES = 256, 9, 128, 6, 8


def run(rounds: int = 5) -> dict[str, float]:
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    network = Network(NetworkSettings(n_classes=CLASSES))
    windows = as_windows(rng.normal(size=(WINDOWS, CHANNELS, TIME)))
    codes = rng.integers(0, CODES, (WINDOWS, CHANNELS, TIME // 8))
    counts = TransitionCounts.from_codes(codes, CODES, rng.integers(0, CLASSES, WINDOWS), CLASSES)

    def label() -> None:
        TransitionCounts.from_codes(codes, CODES)
        label_probabilities(log_likelihoods(codes, counts), channel_weights(np.full(CHANNELS, 0.1), 0.2))

    seconds = interleaved(
        {
            "encode": lambda: coarse_codes(network, windows),
            "label": label,
            "likelihood": lambda: log_likelihoods(codes[:20], counts),
            "loop_likelihood": lambda: loop_likelihood(codes[:20], counts),
        },
        rounds,
    )
    return {
        "label_share_of_encode": seconds["label"] / seconds["encode"],
        "loop_over_likelihood": seconds["loop_likelihood"] / seconds["likelihood"],
    }


def loop_likelihood(codes: np.ndarray, counts: TransitionCounts) -> list[float]:
    """The plain alternative: one Python step per window, channel, class and transition."""
    p = counts.probabilities()
    return [
        sum(math.log(p[k, d, i, j]) for i, j in pairwise(row)) / (len(row) - 1)
        for window in codes
        for d, row in enumerate(window)
        for k in range(len(p))
    ]
