"""From codes to labels: class likelihoods, Bayes' rule per channel, a weighted vote (paper, section 4.1)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp

from transpl._utils.errors import check_choice, check_positive, invalid
from transpl.markov.counts import TransitionCounts, check_codes, transition_index

LENGTHS = ("transitions", "codes")
CONFIDENCE = ("max", "kl")
NEGLIGIBLE_WEIGHT = 1e-6
_LOOKUPS_AT_ONCE = 1 << 19

Floats = NDArray[np.float64]


def log_likelihoods(
    codes: ArrayLike,
    class_counts: TransitionCounts,
    smoothing: str = "floor",
    epsilon: float | None = None,
    length: str = "transitions",
) -> Floats:
    r"""log p(X^d | y = k) = (1 / L) \sum_{t=1}^{N-1} log p(s_{t+1} | s_t, k, d).

    Parameters
    ----------
    codes : (windows, channels, N) int array
    class_counts : TransitionCounts
        Counts with a class axis, (K, channels, n, n).
    smoothing, epsilon
        See `TransitionCounts.probabilities`.
    length : {"transitions", "codes"}
        "transitions" takes L = N - 1 (the authors' code), "codes" takes L = N (as printed in the paper).

    Returns
    -------
    (windows, channels, K) float64 array
        -inf for a class without any source window. A window with a single patch has no transition: its sum is empty,
        so every class gets 0.

    Examples
    --------
    >>> counts = TransitionCounts.from_codes([[[0, 1, 0, 1]], [[0, 0, 1, 1]]], 2, labels=[0, 1])
    >>> log_likelihoods([[[0, 1, 0]]], counts).round(2)
    array([[[ 0.  , -4.95]]])
    """
    check_choice("length", length, LENGTHS)
    s = _check_coded_windows(codes, class_counts)
    return mean_over_transitions(s, class_log_probabilities(class_counts, smoothing, epsilon), length)


def transition_log_probabilities(
    codes: ArrayLike, class_counts: TransitionCounts, smoothing: str = "floor", epsilon: float | None = None
) -> Floats:
    r"""log p(s_{t+1} | s_t, k, d) for t = 1..N-1, (windows, channels, N-1, K).

    The terms of `log_likelihoods`: 0 behind the end of a shorter window, -inf for a class without any source window.
    """
    s = _check_coded_windows(codes, class_counts)
    return each_transition(s, class_log_probabilities(class_counts, smoothing, epsilon))


def class_log_probabilities(
    class_counts: TransitionCounts, smoothing: str = "floor", epsilon: float | None = None
) -> Floats:
    r"""log p(j | i, k, d), (K, channels, n, n); -inf throughout for a class without any source window."""
    with np.errstate(divide="ignore"):
        log_p = np.log(class_counts.probabilities(smoothing, epsilon))
    log_p[class_counts.counts.sum(axis=(1, 2, 3)) == 0] = -np.inf
    return log_p


def each_transition(s: NDArray[np.integer], log_p: Floats) -> Floats:
    """Look up every transition of checked codes `s` in `class_log_probabilities`, (windows, channels, N-1, K)."""
    windows, D, N = s.shape
    found = np.empty((windows, D, max(N - 1, 0), len(log_p)))
    for rows, terms in _lookups(s, log_p):
        found[rows] = terms
    return found


def mean_over_transitions(s: NDArray[np.integer], log_p: Floats, length: str) -> Floats:
    r"""(1 / L) \sum_t log p(s_{t+1} | s_t, k, d) of checked codes, (windows, channels, K); L as in `divisors`."""
    windows, D, _ = s.shape
    sums = np.zeros((windows, D, len(log_p)))
    for rows, terms in _lookups(s, log_p):
        sums[rows] = terms.sum(axis=2)
    means = sums / divisors(s, length)[..., None]
    means[..., np.isneginf(log_p).all(axis=(1, 2, 3))] = -np.inf  # also for windows without any transition
    return means


def divisors(s: NDArray[np.integer], length: str) -> NDArray[np.int64]:
    """L, (windows, channels): the number of "transitions" or of "codes" of a window in a channel, at least 1."""
    exists = s[..., :-1] >= 0
    exists &= s[..., 1:] >= 0
    return np.maximum(exists.sum(axis=-1) + (length == "codes"), 1)


def channel_posteriors(
    log_likelihoods: ArrayLike, prior: ArrayLike | None = None, prior_temperature: float = 1.0
) -> Floats:
    r"""p(k | X^d) = softmax_k [ log p(X^d | k) + log p(k) / \tau ].

    Parameters
    ----------
    log_likelihoods : (windows, channels, K) array
    prior : (K,) array, optional
        Class proportions p(k) of the target; uniform by default.
    prior_temperature : float
        \tau; a larger value trusts the prior less.

    Returns
    -------
    (windows, channels, K) array
        Rows sum to 1; a class of likelihood or prior 0 gets exactly 0.
    """
    scores = np.asarray(log_likelihoods, dtype=np.float64)
    if scores.ndim != 3:
        expected, advice = "shape (windows, channels, classes)", "Use markov.log_likelihoods."
        raise invalid("log_likelihoods", expected=expected, got=scores.shape, advice=advice)
    check_positive("prior_temperature", prior_temperature)
    if prior is not None:
        with np.errstate(divide="ignore"):
            scores = scores + np.log(check_prior(prior, scores.shape[-1])) / prior_temperature
    if scores.size and not np.isfinite(scores.max(axis=-1)).all():
        expected = "for every window and channel a class with a positive likelihood and prior"
        advice = "Smooth the counts, or give a class that occurs in the source a positive prior."
        raise invalid("log_likelihoods, prior", expected=expected, got="none", advice=advice)
    return np.exp(log_softmax(scores, axis=-1))


def label_probabilities(
    log_likelihoods: ArrayLike, weights: ArrayLike, prior: ArrayLike | None = None, prior_temperature: float = 1.0
) -> Floats:
    r"""y_k = \sum_d w_d p(k | X^d) / \sum_d w_d, the weighted vote of all channels, (windows, K).

    This is the paper's (1 / D) \sum_d w_d p(k | X^d) divided by its sum over k, so that rows sum to 1. If no channel
    has a weight above 1e-6, because all have shifted away, all count alike, with a warning.

    Parameters
    ----------
    log_likelihoods : (windows, channels, K) array
    weights : (channels,) array
        See `channel_weights`.
    prior, prior_temperature
        See `channel_posteriors`.

    Examples
    --------
    >>> label_probabilities([[[-1.0, -2.0], [-3.0, -1.0]]], weights=[0.9, 0.1]).round(2)
    array([[0.67, 0.33]])
    """
    posteriors = channel_posteriors(log_likelihoods, prior, prior_temperature)
    w = voting_weights(weights, posteriors.shape[1])
    return weighted_vote(posteriors, w / w.sum())


def weighted_vote(posteriors: Floats, shares: Floats) -> Floats:
    r"""y_k = \sum_d share_d p(k | X^d), (windows, K), divided by its sum over k to remove rounding errors."""
    y = np.einsum("d,ndk->nk", shares, posteriors)
    return y / y.sum(axis=-1, keepdims=True)


def confidence(probabilities: ArrayLike, rule: str = "max") -> Floats:
    r"""max_k y_k ("max", as printed) or KL(u || softmax(y)) with u uniform ("kl", the authors' code), (windows,)."""
    check_choice("rule", rule, CONFIDENCE)
    y = np.asarray(probabilities, dtype=np.float64)
    if rule == "max":
        return y.max(axis=-1)
    K = y.shape[-1]
    return logsumexp(y, axis=-1) - y.mean(axis=-1) - np.log(K)


def voting_weights(weights: ArrayLike, D: int) -> Floats:
    """Check D channel weights; if all are negligible, warn and return ones, so that all channels count alike."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (D,) or not np.isfinite(w).all() or (w < 0).any():
        expected = f"{D} non-negative numbers"
        raise invalid("weights", expected=expected, got=np.array2string(w), advice="Use channel_weights.")
    if w.max() > NEGLIGIBLE_WEIGHT:
        return w
    warnings.warn(
        f"every channel has shifted away (largest weight {w.max():.1e}): all channels count alike. "
        "A larger sigma keeps them apart.",
        stacklevel=3,
    )
    return np.ones(D)


def check_prior(prior: ArrayLike, K: int) -> Floats:
    """Return `prior` as K proportions that sum to 1, or raise."""
    try:
        p = np.asarray(prior, dtype=np.float64)
        fits = p.shape == (K,) and bool(np.isfinite(p).all()) and bool((p >= 0).all()) and p.sum() > 0
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise invalid("prior", expected=f"{K} non-negative proportions", got=prior, advice="Pass one per class.")
    return p / p.sum()


def _check_coded_windows(codes: ArrayLike, class_counts: TransitionCounts) -> NDArray[np.integer]:
    s = check_codes(codes, class_counts.n_codes)
    if class_counts.n_classes is None or s.shape[1] != class_counts.n_channels:
        expected, got = f"shape (classes, {s.shape[1]}, n, n)", class_counts.counts.shape
        advice = "Count with from_codes(codes, n, labels) on the same channels."
        raise invalid("class_counts", expected=expected, got=got, advice=advice)
    return s


def _lookups(s: NDArray[np.integer], log_p: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield (rows, terms (rows, channels, N-1, K)) for a part of the windows at a time; 0 without a transition."""
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
