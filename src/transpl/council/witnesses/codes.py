"""The paper's idea without a network: patches become codes by k-means; classes differ in which code follows which."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from transpl.council.patch_codes import PatchCodes
from transpl.council.witnesses.base import Arrays, Floats, Sight, Witness, as_arrays, register, with_all_classes
from transpl.markov import each_transition
from transpl.windows import Windows

N_CODES = 8
PATCH_LENGTH = 8
_PSEUDOCOUNT = 0.1  # per transition: a row that was hardly visited says little
_NEVER = -1e3  # log likelihood of a class without any window, under that of the others


class TransitionWitness(Witness):
    r"""softmax_k \sum_d \sum_t log p(s_{t+1} | s_t, k, d), the product of the class transition matrices of codes.

    Its rows are codes (n, D, N), -1 behind the end of a shorter window. Subclasses say where codes come from.
    """

    per_column = False

    @property
    @abstractmethod
    def n_codes(self) -> int: ...

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        self.n_classes, n_codes = n_classes, self.n_codes
        D = rows.shape[1]
        inside = (rows[..., :-1] >= 0) & (rows[..., 1:] >= 0)
        window, channel, t = np.nonzero(inside)
        counts = np.zeros((n_classes, D, n_codes, n_codes))
        at = (y[window], channel, rows[window, channel, t], rows[window, channel, t + 1])
        np.add.at(counts, at, 1)
        smooth = counts + _PSEUDOCOUNT
        self.log_p = np.log(smooth / smooth.sum(axis=3, keepdims=True))
        self.shown = counts.sum(axis=(1, 2, 3)) > 0
        return self

    def log_likelihoods(self, rows: NDArray) -> Floats:
        r"""\sum_d \sum_t log p(s_{t+1} | s_t, k, d), (n, K)."""
        found = each_transition(rows, self.log_p).sum(axis=(1, 2))
        found[:, ~self.shown] = found.min(axis=1, keepdims=True) + _NEVER
        return found

    def answer(self, rows: NDArray) -> Floats:
        p = softmax(self.log_likelihoods(rows), axis=1)
        return with_all_classes(p, np.arange(self.n_classes), self.n_classes)


@register
class Codes(TransitionWitness):
    """The transition matrices of k-means codes of raw patches."""

    name = "codes"

    @property
    def n_codes(self) -> int:
        return self.book.n_codes

    def prepare(self, source: Sight) -> None:
        length = min(PATCH_LENGTH, int(source.lengths.min()) // 2)
        self.book = PatchCodes.fit(_windows(source), n_codes=N_CODES, patch_length=max(length, 1), seed=self.seed)

    def rows(self, sight: Sight) -> NDArray:
        """Codes (n, D, N); -1 behind the end of a shorter window."""
        return self.book.codes(_windows(sight))

    def arrays(self) -> Arrays:
        book = self.book
        prepared = as_arrays(centres=book.centres, mean=book.mean, deviation=book.deviation)
        return {**prepared, **as_arrays(log_p=self.log_p, shown=self.shown)}

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        self.n_classes = n_classes
        self.book = PatchCodes(arrays["centres"], arrays["mean"], arrays["deviation"])
        self.log_p, self.shown = arrays["log_p"], arrays["shown"]
        return self


def _windows(sight: Sight) -> Windows:
    return Windows(sight.values, sight.lengths)
