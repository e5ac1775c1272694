"""Channels that vote twice: as they were recorded, and after a linear map has brought the target to the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl.methods.moments import Moments
from transpl.windows import Windows

RIDGE = 1e-3  # in shares of a source channel's variance
_TINY = 1e-12


class Alignment(NamedTuple):
    """x -> A x + b, from the target's channels to the source's; `matrix` is A, (D, D), `offset` is b, (D,)."""

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]

    @classmethod
    def between(cls, source: Moments, target: Moments) -> Alignment:
        r"""A = C_T^{-1/2} (C_T^{1/2} C_S C_T^{1/2})^{1/2} C_T^{-1/2}, b = m_S - A m_T.

        Optimal transport between two normal distributions: of all maps that give the target the source's means and
        covariances the one that moves it least. Channels are measured in standard deviations of the source, so that
        units do not matter, and 0.001 is added to each variance: a channel that is constant, or that others add up to,
        does no harm.
        """
        unit = np.sqrt(np.diag(source.covariance))
        unit[unit == 0] = 1.0
        ridge, units = RIDGE * np.eye(len(unit)), np.outer(unit, unit)
        A = _transport(source.covariance / units + ridge, target.covariance / units + ridge)
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


def _transport(C_S: NDArray[np.float64], C_T: NDArray[np.float64]) -> NDArray[np.float64]:
    root, inverse = _power(C_T, 0.5), _power(C_T, -0.5)
    return inverse @ _power(root @ C_S @ root, 0.5) @ inverse


def _power(C: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """C^exponent of a symmetric matrix; eigenvalues that only rounding made zero or negative count as tiny."""
    values, vectors = np.linalg.eigh(C)
    return (vectors * np.maximum(values, _TINY * values[-1]) ** exponent) @ vectors.T
