"""The parts of a vote written out, for the tests of votes."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax


def likelihoods_by_hand(codes: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """(1 / (D (N - 1))) sum_d sum_t log p(s_{t+1} | s_t, k, d), (n, K); codes (n, D, N), log_p (K, D, n_c, n_c)."""
    channels = np.arange(codes.shape[1])[:, None]
    return log_p[:, channels, codes[..., :-1], codes[..., 1:]].mean(axis=(2, 3)).T


def sharpness_on_a_grid(scores: np.ndarray, labels: np.ndarray, sharpest: float) -> float:
    """The a of 20 000 for which the labels (n,) are likeliest under softmax(a scores); scores (n, K)."""
    grid = np.geomspace(1e-3, sharpest, 20_000)
    own = log_softmax(grid[:, None, None] * scores, axis=2)[:, np.arange(len(labels)), labels]
    return float(grid[own.mean(axis=1).argmax()])
