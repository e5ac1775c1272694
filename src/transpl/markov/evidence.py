"""What a likelihood is made of: the log probability of every single transition, class by class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import invalid
from transpl.markov.counts import TransitionCounts, check_codes, transition_index

_LOOKUPS_AT_ONCE = 1 << 19


def transition_log_probabilities(
    codes: ArrayLike, class_counts: TransitionCounts, smoothing: str = "floor", epsilon: float | None = None
) -> NDArray[np.float64]:
    r"""log p(s_{t+1} | s_t, k, d) for t = 1..N-1.

    codes : (windows, channels, N)
    class_counts : counts with a class axis, (K, channels, n, n)
    returns : (windows, channels, N-1, K) float64; 0 behind the end of a shorter window, -inf for a class without any
    source row. The sum over t, divided by the length, is `log_likelihoods`.
    """
    s = check_coded_windows(codes, class_counts)
    return each_transition(s, class_log_probabilities(class_counts, smoothing, epsilon))


def class_log_probabilities(
    class_counts: TransitionCounts, smoothing: str = "floor", epsilon: float | None = None
) -> NDArray[np.float64]:
    r"""log p(j | i, k, d), (K, channels, n, n); -inf throughout for a class without any source row."""
    with np.errstate(divide="ignore"):
        log_p = np.log(class_counts.probabilities(smoothing, epsilon))
    log_p[class_counts.counts.sum(axis=(1, 2, 3)) == 0] = -np.inf
    return log_p


def each_transition(s: NDArray[np.integer], log_p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Look up every transition of checked codes in `class_log_probabilities`, (windows, channels, N-1, K)."""
    windows, D, N = s.shape
    found = np.empty((windows, D, max(N - 1, 0), len(log_p)))
    for rows, terms in _looked_up(s, log_p):
        found[rows] = terms
    return found


def mean_over_transitions(s: NDArray[np.integer], log_p: NDArray[np.float64], length: str) -> NDArray[np.float64]:
    r"""(1 / L) \sum_t log p(s_{t+1} | s_t, k, d) of checked codes, (windows, channels, K); see `divisors` for L."""
    windows, D, _ = s.shape
    sums = np.zeros((windows, D, len(log_p)))
    for rows, terms in _looked_up(s, log_p):
        sums[rows] = terms.sum(axis=2)
    means = sums / divisors(s, length)[..., None]
    means[..., np.isneginf(log_p).all(axis=(1, 2, 3))] = -np.inf  # also where there is no transition to say so
    return means


def divisors(s: NDArray[np.integer], length: str) -> NDArray[np.int64]:
    """L, (windows, channels): the number of "transitions", or of "codes", of a window in a channel, at least 1."""
    exists = s[..., :-1] >= 0
    exists &= s[..., 1:] >= 0
    return np.maximum(exists.sum(axis=-1) + (length == "codes"), 1)


def check_coded_windows(codes: ArrayLike, class_counts: TransitionCounts) -> NDArray[np.integer]:
    """Return codes that belong to counts with a class axis, or complain."""
    s = check_codes(codes, class_counts.n_codes)
    if class_counts.n_classes is None or s.shape[1] != class_counts.n_channels:
        raise invalid(
            "class_counts",
            expected=f"shape (classes, {s.shape[1]}, n, n)",
            got=class_counts.counts.shape,
            advice="Count with from_codes(codes, n, labels) on the same channels.",
        )
    return s


def _looked_up(s: NDArray[np.integer], log_p: NDArray[np.float64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """A part of the windows at a time: rows, and terms (rows, channels, N-1, K); 0 where there is no transition."""
    K, D, n, _ = log_p.shape
    table = np.ascontiguousarray(log_p.reshape(K, D * n * n).T)
    at_once = max(1, _LOOKUPS_AT_ONCE // max(1, D * s.shape[2] * K))
    for first in range(0, len(s), at_once):
        rows = slice(first, first + at_once)
        index, exists = transition_index(s[rows], n)
        index += (np.arange(D) * n**2)[:, None]
        terms = table[index]
        if exists is not None:
            terms[~exists] = 0.0
        yield rows, terms
