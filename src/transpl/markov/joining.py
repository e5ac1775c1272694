r"""Evidence of several witnesses about one window: channels among each other, codes and classifier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from transpl.errors import wrong
from transpl.markov.posterior import channel_posteriors, log_channel_posteriors, weighted_vote

VOTES = ("mean", "product")
_LEAST = 1e-12  # a class that a float32 softmax gives 0 is not impossible


def joined_vote(
    log_likelihoods: NDArray[np.float64],
    shares: NDArray[np.float64],
    prior: NDArray[np.float64] | None = None,
    prior_temperature: float = 1.0,
    vote: str = "mean",
    sharpness: float = 1.0,
    opinion: NDArray[np.float64] | None = None,
    classifier_sharpness: float | None = None,
    temper: float = 1.0,
) -> NDArray[np.float64]:
    r"""y_k = softmax_k [ c log y'_k ], (windows, K), y' of `joined_channels` or, if the classifier votes, of both.

    From one to the next go logarithms: a power c below 1 brings back what was too small for a float before it.

    opinion, classifier_sharpness : q and b of `log_joined_with_classifier`; without b the classifier does not vote
    temper : c
    """
    of_channels = (log_likelihoods, shares, prior, prior_temperature, vote, sharpness)
    if classifier_sharpness is None and temper == 1:
        return joined_channels(*of_channels)
    log_y = log_joined_channels(*of_channels)
    if classifier_sharpness is not None:
        if opinion is None:
            raise wrong("opinion", expected="the classifier's, which is to vote", got=None, advice="Encode it too.")
        log_y = log_joined_with_classifier(log_y, opinion, classifier_sharpness)
    return softmax(temper * log_y, axis=1)


def joined_channels(
    log_likelihoods: NDArray[np.float64],
    shares: NDArray[np.float64],
    prior: NDArray[np.float64] | None = None,
    prior_temperature: float = 1.0,
    vote: str = "mean",
    sharpness: float = 1.0,
) -> NDArray[np.float64]:
    r"""mean: v_k = \sum_d share_d softmax_k [ a l_{d,k} + log p(k) / \tau ];
    product: v_k = softmax_k [ a \sum_d share_d l_{d,k} + log p(k) / \tau ].

    log_likelihoods : l, (windows, D, K), -inf for a class without any source row
    shares : (D,), sum 1
    sharpness : a
    returns : (windows, K), rows sum to 1
    """
    scores = log_likelihoods if sharpness == 1 else sharpness * log_likelihoods
    if vote == "mean":
        return weighted_vote(channel_posteriors(scores, prior, prior_temperature), shares)
    return channel_posteriors(_summed(scores, shares), prior, prior_temperature)[:, 0]


def log_joined_channels(
    log_likelihoods: NDArray[np.float64],
    shares: NDArray[np.float64],
    prior: NDArray[np.float64] | None = None,
    prior_temperature: float = 1.0,
    vote: str = "mean",
    sharpness: float = 1.0,
) -> NDArray[np.float64]:
    """log v of `joined_channels`, also where v is too small for a float; -inf for a class that is impossible."""
    scores = sharpness * log_likelihoods
    if vote == "mean":
        return logsumexp(log_votes(log_channel_posteriors(scores, prior, prior_temperature), shares), axis=1)
    return log_channel_posteriors(_summed(scores, shares), prior, prior_temperature)[:, 0]


def log_votes(log_posteriors: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""log [ share_d p(k | X^d) ], (windows, D, K): what each channel adds to the mean."""
    with np.errstate(divide="ignore"):
        return log_posteriors + np.log(shares)[:, None]


def _summed(scores: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""\sum_d share_d score_{d,k}, (windows, 1, K)."""
    # A share of 0 times -inf is not a number; only whole classes are -inf, so any one channel tells.
    impossible = np.isneginf(scores[:, :1])
    summed = np.einsum("d,ndk->nk", shares, np.where(impossible, 0.0, scores))
    summed[impossible[:, 0]] = -np.inf
    return summed[:, None]


def log_joined_with_classifier(
    log_v: NDArray[np.float64], q: NDArray[np.float64], sharpness: float = 1.0
) -> NDArray[np.float64]:
    r"""log y_k, y_k = softmax_k [ (log v_k + b log q_k) / 2 ]: two witnesses, half of the say each.

    Their errors go together, for both see the window through one network: the product alone is too sure of itself.
    The label is the same with and without the half.

    log_v : (windows, K) by the codes, -inf for a class that is impossible; q : (windows, K) by the classifier
    sharpness : b
    returns : (windows, K), the exponentials of a row sum to 1
    """
    return log_softmax((log_v + log_opinion(q, sharpness)) / 2, axis=1)


def common_opinion(q: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""softmax_k [ (1 / W) \sum_w log q_{w,k} ] of W views of each window, (windows, W, K) -> (windows, K)."""
    return q[:, 0] if q.shape[1] == 1 else np.exp(log_opinion(np.exp(np.log(np.maximum(q, _LEAST)).mean(axis=1))))


def log_opinion(q: NDArray[np.float64], sharpness: float = 1.0) -> NDArray[np.float64]:
    r"""b log q_k less a constant, so that its exponentials sum to 1; (windows, K)."""
    return log_softmax(sharpness * np.log(np.maximum(q, _LEAST)), axis=1)
