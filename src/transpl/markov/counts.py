"""Transition counts of code sequences: the state of the method (paper, section 3.2).

Counts are integers, so they add up exactly over batches, files, machines and days, in any order. Probabilities are a
view of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import InputError, check_choice, check_fraction, check_positive, invalid, unreadable_file
from transpl._utils.files import read_npz, replacing

SMOOTHING = ("floor", "additive", "pseudocount", "none")
DEFAULT_EPSILON = {"floor": 1e-4, "additive": 1e-6, "pseudocount": 0.1, "none": 0.0}
_TRANSITIONS_AT_ONCE = 1 << 18  # temporaries of 2 MB stay in the processor's cache
_LABELS_WORTH_A_SOURCE = 10  # labelled target windows of a class that count as much as all its source windows
_FORMAT = "transpl-counts-1"


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """count(i, j): how often code i is followed by code j.

    `a + b` merges counts, `a - b` removes counts that were added, and `TransitionCounts.empty` is the identity.

    Attributes
    ----------
    counts : int64 array
        (channels, n, n), or (classes, channels, n, n) if counted with labels.

    Examples
    --------
    >>> monday = TransitionCounts.from_codes([[[0, 1, 1, 0]]], n_codes=2)
    >>> tuesday = TransitionCounts.from_codes([[[0, 1, -1, -1]]], n_codes=2)
    >>> (monday + tuesday).counts
    array([[[0, 2],
            [1, 1]]])
    """

    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        if counts.ndim not in (3, 4) or counts.shape[-1] != counts.shape[-2]:
            raise invalid("counts", expected="shape (..., channels, n, n)", got=counts.shape, advice="Use from_codes.")
        if counts.dtype.kind not in "iu":
            raise invalid("counts", expected="whole numbers", got=counts.dtype, advice="Use from_codes.")
        if counts.size and counts.max() > np.iinfo(np.int64).max:
            raise invalid("counts", expected="numbers that fit int64", got=int(counts.max()), advice="Use from_codes.")
        if counts.size and counts.min() < 0:
            raise invalid(
                "counts", expected="no negative count", got=int(counts.min()), advice="Subtract only what was added."
            )
        object.__setattr__(self, "counts", counts.astype(np.int64))

    @classmethod
    def empty(cls, n_channels: int, n_codes: int, n_classes: int | None = None) -> TransitionCounts:
        """Return counts of no transition at all."""
        leading = () if n_classes is None else (n_classes,)
        return cls(np.zeros((*leading, n_channels, n_codes, n_codes), np.int64))

    @classmethod
    def from_codes(
        cls, codes: ArrayLike, n_codes: int, labels: ArrayLike | None = None, n_classes: int | None = None
    ) -> TransitionCounts:
        r"""count(i, j) = \sum_windows \sum_{t=1}^{N-1} [s_t = i] [s_{t+1} = j].

        Parameters
        ----------
        codes : (windows, channels, N) int array
            In 0..n_codes-1, or -1 behind the end of a shorter window.
        n_codes : int
        labels : (windows,) int array, optional
            Class indices; they give the counts a leading class axis of size `n_classes`.
        n_classes : int, optional
            By default the largest label plus 1.
        """
        s = check_codes(codes, n_codes)
        if labels is None:
            return cls(_count(s, n_codes))
        y, K = _check_labels(labels, len(s), n_classes)
        return cls(_count(s, n_codes, y, K))

    @property
    def n_codes(self) -> int:
        return int(self.counts.shape[-1])

    @property
    def n_channels(self) -> int:
        return int(self.counts.shape[-3])

    @property
    def n_classes(self) -> int | None:
        """The size of the class axis; None if counted without labels."""
        return int(self.counts.shape[0]) if self.counts.ndim == 4 else None

    def pooled(self) -> TransitionCounts:
        """Return the counts summed over classes."""
        return TransitionCounts(self.counts.sum(axis=0)) if self.counts.ndim == 4 else self

    def probabilities(self, smoothing: str = "floor", epsilon: float | None = None) -> NDArray[np.float64]:
        r"""p(j | i) = count(i, j) / \sum_j count(i, j), float64, in the shape of `counts`.

        The paper divides by the occurrences of i; only row sums make rows add up to 1.

        Parameters
        ----------
        smoothing : {"floor", "additive", "pseudocount", "none"}
            * "floor": a probability of 0 becomes `epsilon` (default 1e-4), others stay: the authors' code.
            * "additive": `epsilon` (default 1e-6) is added to every element, and rows are renormalised: as printed.
            * "pseudocount": (count(i, j) + `epsilon`) / (\sum_j count(i, j) + n `epsilon`), default 0.1: the fewer
              transitions a row has, the closer it is to uniform.
            * "none": zeros stay; the row of a code that never occurred is all zero.
        epsilon : float, optional
        """
        check_choice("smoothing", smoothing, SMOOTHING)
        eps = DEFAULT_EPSILON[smoothing] if epsilon is None else float(epsilon)
        check_epsilon(smoothing, eps)
        totals = self.counts.sum(axis=-1, keepdims=True)
        if smoothing == "pseudocount":
            return (self.counts + eps) / (totals + eps * self.n_codes)
        p = self.counts / np.maximum(totals, 1)
        if smoothing == "floor":
            return np.where(p == 0, eps, p)
        if smoothing == "additive":
            return (p + eps) / (p + eps).sum(axis=-1, keepdims=True)
        return p

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to an npz file, atomically."""
        with replacing(path) as part, open(part, "wb") as stream:
            np.savez_compressed(stream, format=np.array(_FORMAT), counts=self.counts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TransitionCounts:
        """Read counts that `save` wrote; nothing in the file is executed."""
        arrays = read_npz(path)
        try:
            if arrays["format"].tolist() != _FORMAT:
                raise KeyError("format")
            return cls(arrays["counts"])
        except (KeyError, InputError) as error:
            problem = f"not a file of transition counts ({error})"
            raise unreadable_file(path, problem=problem, advice="Write it with TransitionCounts.save.") from None

    def __add__(self, other: object) -> TransitionCounts:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        self._check_same_shape(other)
        return TransitionCounts(self.counts + other.counts)

    def __sub__(self, other: object) -> TransitionCounts:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        self._check_same_shape(other)
        return TransitionCounts(self.counts - other.counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TransitionCounts) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # equality is by content, and arrays have no stable hash

    def _check_same_shape(self, other: TransitionCounts) -> None:
        if self.counts.shape != other.counts.shape:
            raise invalid(
                "counts",
                expected=f"the shape {self.counts.shape}",
                got=other.counts.shape,
                advice="Merge only counts of the same codebook, channels and classes.",
            )


@dataclass(frozen=True)
class CodebookUsage:
    """How often each code of a codebook occurs, `counts` (n_codes,).

    >>> codebook_usage([0, 0, 1, 1, -1], n_codes=3).perplexity
    2.0
    """

    counts: NDArray[np.int64]

    @property
    def perplexity(self) -> float:
        r"""exp(-\sum_c p_c log p_c): the number of codes that, used equally often, would be as varied."""
        p = self.counts / max(1, int(self.counts.sum()))
        used = p[p > 0]
        return float(np.exp(-(used * np.log(used)).sum())) if len(used) else 0.0

    @property
    def dead(self) -> list[int]:
        """Codes that never occur."""
        return np.flatnonzero(self.counts == 0).tolist()


def codebook_usage(codes: ArrayLike, n_codes: int) -> CodebookUsage:
    """Count how often each code occurs in an array of any shape; -1 (no patch) is left out."""
    flat = np.asarray(codes).ravel()
    return CodebookUsage(np.bincount(flat[flat >= 0], minlength=n_codes).astype(np.int64))


def few_label_counts(
    codes: NDArray[np.integer], y: NDArray[np.int64], class_counts: TransitionCounts
) -> TransitionCounts:
    r"""w_k count_k(i, j), w_k = max(1, round(S_k / (10 t_k))): what a few labelled target windows add to class counts.

    S_k is the number of transitions of class k in the source, t_k the mean number in a labelled window of class k. Ten
    labelled windows of a class thus count as much as all its source windows: a source of thousands does not drown
    them, and a single one does not decide. w_k is an integer, so that counts stay integers.

    Parameters
    ----------
    codes : (rows, D, N) int array
        Codes of the labelled windows.
    y : (rows,) int array
        Their class indices.
    class_counts : TransitionCounts
        Of the source, (K, D, n, n).
    """
    K = class_counts.counts.shape[0]
    found = TransitionCounts.from_codes(codes, class_counts.n_codes, y, K).counts
    per_window = found.sum(axis=(1, 2, 3)) / np.maximum(np.bincount(y, minlength=K), 1)
    w = np.rint(class_counts.counts.sum(axis=(1, 2, 3)) / np.maximum(_LABELS_WORTH_A_SOURCE * per_window, 1))
    return TransitionCounts(found * np.maximum(w, 1).astype(np.int64)[:, None, None, None])


def check_epsilon(smoothing: str, epsilon: float) -> None:
    """Raise unless the smoothing rule can use this epsilon."""
    if smoothing == "pseudocount":
        check_positive("epsilon", epsilon)
    elif smoothing != "none":
        check_fraction("epsilon", epsilon)


def check_codes(codes: ArrayLike, n_codes: int) -> NDArray[np.integer]:
    """Return `codes` as an integer array (windows, channels, N) within -1..n_codes-1, or raise."""
    s = np.asarray(codes)
    if s.ndim != 3 or s.dtype.kind not in "iu":
        raise invalid(
            "codes",
            expected="an integer array (windows, channels, patches)",
            got=f"{s.dtype} of shape {s.shape}",
            advice="Pass the codes of the network.",
        )
    if s.size and (s.max() >= n_codes or s.min() < -1):
        raise invalid(
            "codes", expected=f"codes in 0..{n_codes - 1}", got=f"{s.min()}..{s.max()}", advice="Check n_codes."
        )
    return s


def transition_index(s: NDArray[np.integer], n_codes: int) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return i * n + j for every transition, (windows, channels, N-1), and which of them exist (None: all)."""
    now, then = s[..., :-1].astype(np.int64), s[..., 1:].astype(np.int64)
    index = now * n_codes
    index += then
    if not s.size or s.min() >= 0:
        return index, None
    exists = (now >= 0) & (then >= 0)
    return np.where(exists, index, 0), exists


def _count(
    s: NDArray[np.integer], n_codes: int, y: NDArray[np.int64] | None = None, K: int | None = None
) -> NDArray[np.int64]:
    windows, D, N = s.shape
    shape = (D, n_codes, n_codes) if K is None else (K, D, n_codes, n_codes)
    total = np.zeros(int(np.prod(shape)), np.int64)
    at_once = max(1, _TRANSITIONS_AT_ONCE // max(1, D * N))
    for first in range(0, windows, at_once):
        rows = slice(first, first + at_once)
        index, exists = transition_index(s[rows], n_codes)
        index += (np.arange(D) * n_codes**2)[:, None]
        if y is not None:
            index += (y[rows] * D * n_codes**2)[:, None, None]
        total += np.bincount(index.ravel() if exists is None else index[exists], minlength=len(total))
    return total.reshape(shape)


def _check_labels(labels: ArrayLike, n: int, n_classes: int | None) -> tuple[NDArray[np.int64], int]:
    y = np.asarray(labels)
    if y.shape != (n,) or (y.size and y.dtype.kind not in "iu"):
        raise invalid(
            "labels",
            expected=f"{n} class indices",
            got=f"{y.dtype} of shape {y.shape}",
            advice="Encode labels as 0..K-1.",
        )
    K = n_classes if n_classes is not None else (int(y.max()) + 1 if n else 0)
    if n and (y.min() < 0 or y.max() >= K):
        raise invalid(
            "labels", expected=f"class indices in 0..{K - 1}", got=f"{y.min()}..{y.max()}", advice="Check n_classes."
        )
    return y.astype(np.int64), K
