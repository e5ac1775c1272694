"""Channels that vote twice: as they were recorded, and after a linear map has brought the target to the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl.markov.evidence import mean_over_transitions
from transpl.methods.moments import Moments
from transpl.methods.vote import Chunks
from transpl.windows import Windows

RIDGE = 1e-3  # in shares of a channel's variance
_TINY = 1e-12  # variances are not compared with others so much larger
_ROUNDING = 1e-15


class Alignment(NamedTuple):
    """x -> A x + b, from the target's channels to the source's; `matrix` is A, (D, D), `offset` is b, (D,)."""

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]

    @classmethod
    def between(cls, source: Moments, target: Moments) -> Alignment:
        r"""A = C_S^{1/2} (C_S^{1/2} C_T C_S^{1/2})^{-1/2} C_S^{1/2}, b = m_S - A m_T.

        Optimal transport between two normal distributions: of all maps that give the target the source's means and
        covariances the one that moves it least. Channels are measured in standard deviations of the source, so that
        units do not matter, and 0.001 of a variance is added to each: a channel that is constant, or that others add
        up to, does no harm.
        """
        unit = np.sqrt(np.maximum(np.diag(source.covariance), _TINY * np.diag(target.covariance)))
        unit[unit == 0] = 1.0
        C_S, C_T = (moments.covariance / np.outer(unit, unit) for moments in (source, target))
        variance = np.diag(C_T)
        A = _transport(
            C_S + RIDGE * np.eye(len(unit)), C_T + RIDGE * np.diag(np.where(variance > _TINY, variance, 1.0))
        )
        A = A * unit[:, None] / unit
        return cls(A, source.mean - A @ target.mean)

    def copies(self, windows: Windows) -> Windows:
        """The channels of windows aligned, (n, D, T)."""
        recorded = windows.in_memory()
        moved = np.einsum("cd,ndt->nct", self.matrix, recorded.values) + self.offset[:, None]
        if recorded.ragged:
            moved *= (np.arange(moved.shape[2]) < recorded.lengths[:, None])[:, None]
        return Windows(moved.astype(np.float32), recorded.lengths)


def names_with_copies(names: Sequence[str]) -> tuple[str, ...]:
    """The names of channels and of their aligned copies."""
    return (*names, *(f"{name} (aligned)" for name in names))


def copies_are_likelier(chunks: Chunks, log_p: NDArray[np.float64], length: str) -> bool:
    r"""\sum_n \max_k \sum_d l_{ndk} of the aligned copies is greater than that of the channels as recorded.

    l_{ndk} is the mean log likelihood of channel d of window n under the source's matrix of class k. A map that suits
    the target makes its windows look like the source's; one that was misled does not. It is misled where the target has
    other class proportions than the source, for means and covariances then differ without any shift.

    chunks : both views of the target's windows; log_p : of the source, (K, D, n_c, n_c); length : as in the settings
    """
    D = log_p.shape[1]
    fits = [
        mean_over_transitions(view, log_p, length).sum(axis=1).max(axis=1).sum()
        for _, coded in chunks
        for view in (coded.codes[:, :D], coded.codes[:, D:])
    ]
    return bool(sum(fits[1::2]) > sum(fits[::2]))


def _transport(C_S: NDArray[np.float64], C_T: NDArray[np.float64]) -> NDArray[np.float64]:
    root = _power(C_S, 0.5)
    return root @ _power(root @ C_T @ root, -0.5) @ root


def _power(C: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """C^exponent of a symmetric matrix; eigenvalues that only rounding made zero or negative count as tiny."""
    values, vectors = np.linalg.eigh(C)
    return (vectors * np.maximum(values, _ROUNDING * values[-1]) ** exponent) @ vectors.T
