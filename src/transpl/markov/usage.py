"""How codebooks are used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class CodebookUsage:
    """How a codebook is used: how often each code occurs, and what follows from it."""

    counts: NDArray[np.int64]  # (n_codes,)

    @property
    def perplexity(self) -> float:
        r"""exp(-\sum_c p_c log p_c): as many codes, used evenly, would be as varied."""
        p = self.counts / max(1, int(self.counts.sum()))
        used = p[p > 0]
        return float(np.exp(-(used * np.log(used)).sum())) if len(used) else 0.0

    @property
    def dead(self) -> list[int]:
        """Codes that never occur."""
        return np.flatnonzero(self.counts == 0).tolist()


def codebook_usage(codes: ArrayLike, n_codes: int) -> CodebookUsage:
    """Count the codes of any array of them; -1 (no patch) is left out."""
    flat = np.asarray(codes).ravel()
    return CodebookUsage(np.bincount(flat[flat >= 0], minlength=n_codes).astype(np.int64))
