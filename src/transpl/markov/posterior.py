"""From codes to labels: class likelihoods, Bayes' rule per channel, a weighted vote (paper, section 4.1)."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp

from transpl._utils.errors import check_choice, check_positive, invalid
from transpl.markov.counts import TransitionCounts
from transpl.markov.evidence import check_coded_windows, class_log_probabilities, mean_over_transitions

LENGTHS = ("transitions", "codes")
CONFIDENCE = ("max", "kl")
NEGLIGIBLE_WEIGHT = 1e-6


def log_likelihoods(
    codes: ArrayLike,
    class_counts: TransitionCounts,
    smoothing: str = "floor",
    epsilon: float | None = None,
    length: str = "transitions",
) -> NDArray[np.float64]:
    r"""log p(X^d | y = k) = (1 / L) \sum_{t=1}^{N-1} log p(s_{t+1} | s_t, k, d).

    codes : (windows, channels, N)
    class_counts : counts with a class axis, (K, channels, n, n)
    length : "transitions" takes L = N - 1 (the authors' code), "codes" takes L = N (the paper's print)
    returns : (windows, channels, K) float64; -inf for a class without any source row

    A window with a single patch has no transition: its sum is empty, so every class gets 0.
    """
    check_choice("length", length, LENGTHS)
    s = check_coded_windows(codes, class_counts)
    return mean_over_transitions(s, class_log_probabilities(class_counts, smoothing, epsilon), length)


def channel_posteriors(
    log_likelihoods: ArrayLike, prior: ArrayLike | None = None, prior_temperature: float = 1.0
) -> NDArray[np.float64]:
    r"""p(k | X^d) = softmax_k [ log p(X^d | k) + log p(k) / \tau ].

    log_likelihoods : (windows, channels, K)
    prior : (K,) label proportions of the target; None is uniform
    returns : (windows, channels, K), rows sum to 1; a class of likelihood or prior 0 gets exactly 0
    """
    scores = np.asarray(log_likelihoods, dtype=np.float64)
    if scores.ndim != 3:
        raise invalid(
            "log_likelihoods",
            expected="shape (windows, channels, classes)",
            got=scores.shape,
            advice="Use markov.log_likelihoods.",
        )
    check_positive("prior_temperature", prior_temperature)
    if prior is not None:
        with np.errstate(divide="ignore"):
            scores = scores + np.log(check_prior(prior, scores.shape[-1])) / prior_temperature
    if scores.size and not np.isfinite(scores.max(axis=-1)).all():
        raise invalid(
            "log_likelihoods, prior",
            expected="for every window and channel a class with a positive likelihood and prior",
            got="none",
            advice="Smooth the counts, or give a class that occurs in the source a positive prior.",
        )
    return np.exp(log_softmax(scores, axis=-1))


def label_probabilities(
    log_likelihoods: ArrayLike, weights: ArrayLike, prior: ArrayLike | None = None, prior_temperature: float = 1.0
) -> NDArray[np.float64]:
    r"""y_k = \sum_d w_d p(k | X^d) / \sum_d w_d.

    The paper's (1 / D) \sum_d w_d p(k | X^d), divided by its sum over k, so that rows sum to 1.

    log_likelihoods : (windows, channels, K); weights : (channels,); see `channel_posteriors` for the prior
    returns : (windows, K)

    If no channel has a weight above 1e-6 (all have shifted away), all count alike, with a warning.
    """
    posteriors = channel_posteriors(log_likelihoods, prior, prior_temperature)
    w = voting_weights(weights, posteriors.shape[1])
    return weighted_vote(posteriors, w / w.sum())


def weighted_vote(posteriors: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""y_k = \sum_d share_d p(k | X^d), (windows, K), divided by its sum over k so that rounding leaves rows at 1."""
    y = np.einsum("d,ndk->nk", shares, posteriors)
    return y / y.sum(axis=-1, keepdims=True)


def confidence(probabilities: ArrayLike, rule: str = "max") -> NDArray[np.float64]:
    r"""max_k y_k ("max", the print) or KL(u || softmax(y)) with u uniform ("kl", the authors' code); (windows,)."""
    check_choice("rule", rule, CONFIDENCE)
    y = np.asarray(probabilities, dtype=np.float64)
    if rule == "max":
        return y.max(axis=-1)
    K = y.shape[-1]
    return logsumexp(y, axis=-1) - y.mean(axis=-1) - np.log(K)


def voting_weights(weights: ArrayLike, D: int) -> NDArray[np.float64]:
    """Return `weights` as D numbers of which some count: all ones, with a warning, if every channel shifted away."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (D,) or not np.isfinite(w).all() or (w < 0).any():
        raise invalid(
            "weights", expected=f"{D} non-negative numbers", got=np.array2string(w), advice="Use channel_weights."
        )
    if w.max() > NEGLIGIBLE_WEIGHT:
        return w
    warnings.warn(
        f"every channel has shifted away (largest weight {w.max():.1e}): all channels count alike. "
        "A larger sigma keeps them apart.",
        stacklevel=3,
    )
    return np.ones(D)


def check_prior(prior: ArrayLike, K: int) -> NDArray[np.float64]:
    """Return `prior` as K proportions that sum to 1, or complain."""
    try:
        p = np.asarray(prior, dtype=np.float64)
        fits = p.shape == (K,) and bool(np.isfinite(p).all()) and bool((p >= 0).all()) and p.sum() > 0
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise invalid("prior", expected=f"{K} non-negative proportions", got=prior, advice="Give one per class.")
    return p / p.sum()
