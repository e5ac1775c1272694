"""How often each class occurs: the weak supervision that some methods take instead of labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_int, check_not_negative, invalid


def label_proportions(y: ArrayLike, n_classes: int, epsilon: float = 0.0) -> NDArray[np.float64]:
    r"""\pi_k = (n_k + \epsilon) / \sum_j (n_j + \epsilon), n_k the rows of class k.

    y : (n,) class indices
    returns : (K,), sums to 1; a class without rows gets 0 unless \epsilon is positive
    """
    check_not_negative("epsilon", epsilon)
    n = np.bincount(check_labels(y, n_classes), minlength=n_classes) + float(epsilon)
    return n / n.sum()


def check_labels(y: ArrayLike, n_classes: int) -> NDArray[np.int64]:
    """Return `y` as class indices 0..n_classes-1, at least one, or complain."""
    check_int("n_classes", n_classes, least=1)
    labels = np.asarray(y)
    if labels.size == 0:
        raise invalid("y", expected="at least one label", got="none", advice="Give the labels of some rows.")
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        got = f"{labels.dtype} of shape {labels.shape}"
        raise invalid("y", expected="class indices of shape (n,)", got=got, advice="Encode labels as 0..K-1.")
    if labels.min() < 0 or labels.max() >= n_classes:
        got = f"{labels.min()}..{labels.max()}"
        raise invalid("y", expected=f"class indices in 0..{n_classes - 1}", got=got, advice="Check n_classes.")
    return labels.astype(np.int64)
