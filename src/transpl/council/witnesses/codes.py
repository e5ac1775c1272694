"""The paper's idea without a network: k-means codes of patches, and the transition matrices of each class."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from transpl._utils.layout import Layout
from transpl.council.patch_codes import PatchCodes
from transpl.council.witnesses.witness import (
    Arrays,
    Floats,
    ViewedWindows,
    Witness,
    as_arrays,
    register,
    with_all_classes,
)
from transpl.markov import TransitionCounts, each_transition
from transpl.windows import Windows

N_CODES = 8
PATCH_LENGTH = 8
_PSEUDOCOUNT = 0.1  # per transition, so that a rarely visited row says little
_ABSENT = -1e3  # added to the lowest log likelihood for classes without any window


class TransitionWitness(Witness):
    r"""softmax_k \sum_d \sum_t log p(s_{t+1} | s_t, k, d), the product of the class transition matrices of codes.

    Rows are codes (n, D, N), -1 behind the end of a shorter window. Subclasses define where they come from.
    """

    per_column = False

    @property
    @abstractmethod
    def n_codes(self) -> int: ...

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        self.n_classes, n_codes = n_classes, self.n_codes
        counts = TransitionCounts.from_codes(rows, n_codes, y, n_classes).counts
        smooth = counts + _PSEUDOCOUNT
        self.log_p = np.log(smooth / smooth.sum(axis=3, keepdims=True))
        self.shown = counts.sum(axis=(1, 2, 3)) > 0
        return self

    def log_likelihoods(self, rows: NDArray) -> Floats:
        r"""\sum_d \sum_t log p(s_{t+1} | s_t, k, d), (n, K)."""
        found = each_transition(rows, self.log_p).sum(axis=(1, 2))
        found[:, ~self.shown] = found.min(axis=1, keepdims=True) + _ABSENT
        return found

    def answer(self, rows: NDArray) -> Floats:
        p = softmax(self.log_likelihoods(rows), axis=1)
        return with_all_classes(p, np.arange(self.n_classes), self.n_classes)


@register
class Codes(TransitionWitness):
    """The transition matrices of k-means codes of raw patches."""

    name = "codes"
    layout: ClassVar[Layout] = {
        "centres": "f codes steps",
        "mean": "f D",
        "deviation": "p D",
        "log_p": "f K D codes codes",
        "shown": "b K",
    }

    @property
    def n_codes(self) -> int:
        return self.book.n_codes

    def prepare(self, source: ViewedWindows) -> None:
        length = min(PATCH_LENGTH, int(source.lengths.min()) // 2)
        self.book = PatchCodes.fit(_windows(source), n_codes=N_CODES, patch_length=max(length, 1), seed=self.seed)

    def rows(self, viewed: ViewedWindows) -> NDArray:
        return self.book.codes(_windows(viewed))

    def arrays(self) -> Arrays:
        book = self.book
        prepared = as_arrays(centres=book.centres, mean=book.mean, deviation=book.deviation)
        return {**prepared, **as_arrays(log_p=self.log_p, shown=self.shown)}

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        self.n_classes = n_classes
        self.book = PatchCodes(arrays["centres"], arrays["mean"], arrays["deviation"])
        self.log_p, self.shown = arrays["log_p"], arrays["shown"]
        return self


def _windows(viewed: ViewedWindows) -> Windows:
    return Windows(viewed.values, viewed.lengths)
