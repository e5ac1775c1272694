"""Adaptation that learns the vote itself: every target window, with the probabilities the vote gave it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

PENALTY = 0.05  # of |W|^2 / 2, with features of unit variance
_MOST_STEPS = 500


class Linear(NamedTuple):
    """Weights of a linear classifier, and how well it learnt."""

    W: NDArray[np.float64]  # (K, d)
    b: NDArray[np.float64]  # (K,)
    loss: float


def distil(
    source: NDArray[np.float64],
    y: NDArray[np.int64],
    target: NDArray[np.float64],
    votes: NDArray[np.float64],
    penalty: float = PENALTY,
) -> Linear:
    r"""argmin_{W,b} - mean_S log p_y(z) - mean_T \sum_k v_k log p_k(z) + \lambda |W|^2 / 2, p = softmax(W z + b).

    z are standardised by mean and deviation over source and target; the answer is for z as they came. The problem is
    convex: there is one answer, without a seed, a learning rate or a number of epochs.

    source : features S (n, d) with classes y (n,); target : features T (m, d) with votes v (m, K)
    penalty : \lambda
    """
    Z = np.concatenate([source, target])
    mu, sd = Z.mean(axis=0), Z.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    V = np.concatenate([np.eye(votes.shape[1])[y], votes])
    rows = np.repeat([1 / len(source), 1 / len(target)], [len(source), len(target)])
    loss, W, b = _minimised((Z - mu) / sd, V, rows, penalty)
    W = W / sd
    return Linear(W, b - W @ mu, loss)


def _minimised(
    Z: NDArray[np.float64], V: NDArray[np.float64], rows: NDArray[np.float64], penalty: float
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    d, K = Z.shape[1], V.shape[1]

    def loss_and_slope(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        W, b = theta[: K * d].reshape(K, d), theta[K * d :]
        log_p = log_softmax(Z @ W.T + b, axis=1)
        loss = -(rows @ (V * log_p).sum(axis=1)) + penalty * (W**2).sum() / 2
        gap = (np.exp(log_p) - V) * rows[:, None]  # rows of V sum to 1
        return loss, np.concatenate([(gap.T @ Z + penalty * W).ravel(), gap.sum(axis=0)])

    found = minimize(
        loss_and_slope, np.zeros(K * (d + 1)), jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS}
    )
    return float(found.fun), found.x[: K * d].reshape(K, d), found.x[K * d :]
