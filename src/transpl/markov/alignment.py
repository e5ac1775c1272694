"""How far each channel moved between source and target (paper, section 4.1, channel alignment)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_choice, check_positive, invalid
from transpl.markov.counts import SMOOTHING, TransitionCounts


def transport_cost(codebook: ArrayLike) -> NDArray[np.float64]:
    r"""M_ij = 1 - cos(e_i, e_j), zero diagonal.

    codebook : (n, d), one code vector a row
    returns : (n, n) float64 in [0, 2]; rounding below 0 is clipped
    """
    e = np.asarray(codebook, dtype=np.float64)
    if e.ndim != 2:
        raise invalid(
            "codebook", expected="an array (codes, width)", got=f"shape {e.shape}", advice="Pass m.codebook_."
        )
    norms = np.linalg.norm(e, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise invalid("codebook", expected="finite, non-zero vectors", got="a zero or NaN row", advice="Train it anew.")
    e = e / norms
    M = np.clip(1.0 - e @ e.T, 0.0, 2.0)
    M = (M + M.T) / 2
    np.fill_diagonal(M, 0.0)
    return M


def row_distances(
    source: TransitionCounts,
    target: TransitionCounts,
    cost: ArrayLike,
    smoothing: str = "floor",
    epsilon: float | None = None,
) -> NDArray[np.float64]:
    r"""EMD(p^S_{d,i}, p^T_{d,i}) = min <\gamma, M> over \gamma >= 0, \gamma 1 = p^S_{d,i}, \gamma^T 1 = p^T_{d,i}.

    returns : (channels, n), the cost of turning row i of the source matrix into row i of the target matrix

    With "additive" smoothing (the printed rule) and with "pseudocount" both matrices are smoothed first. Otherwise a
    row that is empty on either side costs 0 (the authors' rule).
    """
    # POT imports every array library it finds; pay for that only when a distance is asked for.
    from ot import emd2

    check_choice("smoothing", smoothing, SMOOTHING)
    M = _check(source, target, cost)
    view = "none" if smoothing == "floor" else smoothing
    p, q = source.probabilities(view, epsilon), target.probabilities(view, epsilon)
    seen = (p.sum(axis=-1) > 0) & (q.sum(axis=-1) > 0)
    distances = np.zeros(seen.shape)
    for d, i in np.argwhere(seen):
        # emd2 wants both sides to have the same mass to the last bit.
        a, b = p[d, i] / p[d, i].sum(), q[d, i] / q[d, i].sum()
        if not np.array_equal(a, b):
            # We know the mass is the same and need no duals: both options only save time.
            distances[d, i] = max(0.0, float(emd2(a, b, M, check_marginals=False, center_dual=False)))
    return distances


def channel_distances(
    source: TransitionCounts,
    target: TransitionCounts,
    cost: ArrayLike,
    smoothing: str = "floor",
    epsilon: float | None = None,
) -> NDArray[np.float64]:
    r"""dist_d = (1 / n_c) \sum_i EMD(p^S_{d,i}, p^T_{d,i}), shape (channels,); see `row_distances`."""
    return row_distances(source, target, cost, smoothing, epsilon).mean(axis=-1)


def channel_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""w_d = exp(-dist_d^2 / \sigma^2), shape (channels,).

    The authors' code has 2 \sigma^2 in the denominator: their sigma is this one divided by sqrt(2).
    """
    check_positive("sigma", sigma)
    dist = np.asarray(distances, dtype=np.float64)
    return np.exp(-((dist / sigma) ** 2))


def _check(source: TransitionCounts, target: TransitionCounts, cost: ArrayLike) -> NDArray[np.float64]:
    if source.counts.ndim != 3 or source.counts.shape != target.counts.shape:
        raise invalid(
            "source, target",
            expected="two channel-wise counts of one shape (channels, n, n)",
            got=f"{source.counts.shape} and {target.counts.shape}",
            advice="Drop a class axis with .pooled().",
        )
    M = np.ascontiguousarray(cost, dtype=np.float64)
    if M.shape != (source.n_codes, source.n_codes):
        raise invalid(
            "cost",
            expected=f"shape ({source.n_codes}, {source.n_codes})",
            got=M.shape,
            advice="Use transport_cost(codebook).",
        )
    if not (np.isfinite(M).all() and (M >= 0).all()):
        raise invalid("cost", expected="finite costs >= 0", got="others", advice="Use transport_cost(codebook).")
    return M
