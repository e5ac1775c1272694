"""How far each channel moved between source and target (paper, section 4.1, channel alignment)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_choice, check_positive, invalid
from transpl._utils.progress import tracked
from transpl.markov.counts import SMOOTHING, TransitionCounts


def transport_cost(codebook: ArrayLike) -> NDArray[np.float64]:
    r"""M_ij = 1 - cos(e_i, e_j), (n, n) in [0, 2] with a zero diagonal.

    Parameters
    ----------
    codebook : (n, d) array
        One code vector e_i per row.

    Examples
    --------
    >>> transport_cost([[1, 0], [0, 1], [-1, 0]])
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    e = np.asarray(codebook, dtype=np.float64)
    if e.ndim != 2:
        expected, got = "an array (codes, width)", f"shape {e.shape}"
        raise invalid("codebook", expected=expected, got=got, advice="Pass m.codebook_.")
    norms = np.linalg.norm(e, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise invalid("codebook", expected="finite, non-zero vectors", got="a zero or NaN row", advice="Train again.")
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

    The cost of turning row i of the source's transition matrix into row i of the target's, (channels, n). With
    "additive" smoothing (as printed) and with "pseudocount", both matrices are smoothed first. Otherwise a row that is
    empty on either side costs 0 (the authors' code).

    Parameters
    ----------
    source, target : TransitionCounts
        Without a class axis, (channels, n, n).
    cost : (n, n) array
        See `transport_cost`.
    smoothing, epsilon
        See `TransitionCounts.probabilities`.
    """
    from ot import emd2  # POT imports every array library it finds, which is slow

    check_choice("smoothing", smoothing, SMOOTHING)
    M = _check(source, target, cost)
    view = "none" if smoothing == "floor" else smoothing
    p, q = source.probabilities(view, epsilon), target.probabilities(view, epsilon)
    seen = (p.sum(axis=-1) > 0) & (q.sum(axis=-1) > 0)
    distances = np.zeros(seen.shape)
    pairs = np.argwhere(seen)
    for d, i in tracked(pairs, "comparing the codes' transitions", len(pairs)):
        # emd2 demands the same mass on both sides, to the last bit.
        a, b = p[d, i] / p[d, i].sum(), q[d, i] / q[d, i].sum()
        if not np.array_equal(a, b):
            # The masses are equal and the duals are not needed: both options only save time.
            distances[d, i] = max(0.0, float(emd2(a, b, M, check_marginals=False, center_dual=False)))
    return distances


def channel_distances(
    source: TransitionCounts,
    target: TransitionCounts,
    cost: ArrayLike,
    smoothing: str = "floor",
    epsilon: float | None = None,
) -> NDArray[np.float64]:
    r"""dist_d = (1 / n_c) \sum_i EMD(p^S_{d,i}, p^T_{d,i}), (channels,).

    Parameters are those of `row_distances`.

    Examples
    --------
    >>> still = TransitionCounts.from_codes([[[0, 0, 0, 0]]], n_codes=2)
    >>> moving = TransitionCounts.from_codes([[[0, 1, 0, 1]]], n_codes=2)
    >>> channel_distances(still, moving, [[0, 1], [1, 0]])
    array([0.5])
    """
    return row_distances(source, target, cost, smoothing, epsilon).mean(axis=-1)


def channel_weights(distances: ArrayLike, sigma: float, unread: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    r"""w_d = exp(-dist_d^2 / \sigma^2), (channels,); 0 for `unread_channels`.

    The authors' code has 2 \sigma^2 in the denominator: their sigma is this one divided by sqrt(2).

    >>> channel_weights([0.0, 0.1, 0.4], sigma=0.2).round(3)
    array([1.   , 0.779, 0.018])
    """
    check_positive("sigma", sigma)
    dist = np.asarray(distances, dtype=np.float64)
    weights = np.exp(-((dist / sigma) ** 2))
    return weights if unread is None else np.where(unread, 0.0, weights)


def unread_channels(source: TransitionCounts, target: TransitionCounts) -> NDArray[np.bool_]:
    r"""Channels whose codes cannot tell classes apart, (channels,).

    Either the codebook gives all pieces of the source one code, or the target has none of the source's codes. Then all
    classes have the same likelihood, and the distance is 0 because no row of the transition matrices could be compared.

    >>> source = TransitionCounts.from_codes([[[0, 0, 0], [0, 1, 0], [0, 1, 0]]], n_codes=3)
    >>> target = TransitionCounts.from_codes([[[0, 0, 0], [1, 1, 0], [2, 2, 2]]], n_codes=3)
    >>> unread_channels(source, target)
    array([ True, False,  True])
    """
    p, q = source.counts, target.counts
    n_codes = ((p.sum(axis=-1) + p.sum(axis=-2)) > 0).sum(axis=-1)
    shared = (p.sum(axis=-1) > 0) & (q.sum(axis=-1) > 0)
    return (n_codes <= 1) | ~shared.any(axis=-1)


def _check(source: TransitionCounts, target: TransitionCounts, cost: ArrayLike) -> NDArray[np.float64]:
    if source.counts.ndim != 3 or source.counts.shape != target.counts.shape:
        expected = "two channel-wise counts of one shape (channels, n, n)"
        got = f"{source.counts.shape} and {target.counts.shape}"
        raise invalid("source, target", expected=expected, got=got, advice="Drop a class axis with .pooled().")
    M, n = np.ascontiguousarray(cost, dtype=np.float64), source.n_codes
    if M.shape != (n, n):
        raise invalid("cost", expected=f"shape ({n}, {n})", got=M.shape, advice="Use transport_cost(codebook).")
    if not (np.isfinite(M).all() and (M >= 0).all()):
        raise invalid("cost", expected="finite costs >= 0", got="others", advice="Use transport_cost(codebook).")
    return M
