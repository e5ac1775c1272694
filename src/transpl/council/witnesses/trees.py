"""Extremely randomised trees on statistics of the window."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.layout import Layout, check_numbers
from transpl.council.witnesses.linear import statistics
from transpl.council.witnesses.witness import (
    Arrays,
    Floats,
    ViewedWindows,
    Witness,
    as_arrays,
    register,
    with_all_classes,
)

N_TREES = 200
_AT_ONCE = 1 << 22  # windows times trees
_LEAF = -1
_NO_FEATURE = -2  # scikit-learn's number for it


@register
class Trees(Witness):
    """Extremely randomised trees (Geurts, Ernst and Wehenkel 2006) on the same statistics as `linear`.

    The forest is kept as plain arrays with one row per node, tree after tree, so that it can be saved without pickle.
    """

    name = "trees"
    layout: ClassVar[Layout] = {
        "classes": "i classes",
        "roots": "i trees",
        **dict.fromkeys(("left", "right", "feature"), "i nodes"),
        "threshold": "f nodes",
        "shares": "f nodes classes",
    }

    def rows(self, viewed: ViewedWindows) -> NDArray:
        return viewed.features("statistics", statistics)

    def learn(self, rows: NDArray, y: NDArray[np.int64], n_classes: int) -> Self:
        from sklearn.ensemble import ExtraTreesClassifier  # loads slowly, and labelling needs none of it

        forest = ExtraTreesClassifier(N_TREES, min_samples_leaf=2, random_state=self.seed, n_jobs=1)
        forest.fit(rows.astype(np.float32), y)
        trees = [estimator.tree_ for estimator in forest.estimators_]
        self.n_classes, self.classes = n_classes, forest.classes_.astype(np.int64)
        self.roots = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])[:-1]]).astype(np.int64)
        shifts = np.repeat(self.roots, [tree.node_count for tree in trees])
        left = np.concatenate([tree.children_left for tree in trees])
        right = np.concatenate([tree.children_right for tree in trees])
        self.left = np.where(left < 0, _LEAF, left + shifts).astype(np.int32)
        self.right = np.where(right < 0, _LEAF, right + shifts).astype(np.int32)
        self.feature = np.concatenate([tree.feature for tree in trees]).astype(np.int32)
        self.threshold = np.concatenate([tree.threshold for tree in trees])
        shares = np.concatenate([tree.value[:, 0, :] for tree in trees])
        self.shares = (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)
        return self

    def answer(self, rows: NDArray) -> Floats:
        x = np.asarray(rows, np.float32)
        at_once = max(1, _AT_ONCE // len(self.roots))
        parts = [self._mean_share(x[first : first + at_once]) for first in range(0, len(x), at_once)]
        return with_all_classes(np.concatenate(parts), self.classes, self.n_classes, least=1e-3)

    def _mean_share(self, x: NDArray[np.float32]) -> Floats:
        """Return the mean over trees of the class shares in the leaf that each row reaches."""
        node = np.tile(self.roots, (len(x), 1))
        row = np.arange(len(x))[:, None]
        while True:
            inner = self.left[node] != _LEAF
            if not inner.any():
                return self.shares[node].mean(axis=1, dtype=np.float64)
            goes_left = x[row, np.maximum(self.feature[node], 0)] <= self.threshold[node]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)

    def arrays(self) -> Arrays:
        kept = ("classes", "roots", "left", "right", "feature", "threshold", "shares")
        return as_arrays(**{name: getattr(self, name) for name in kept})

    def check_columns(self, n: int) -> None:
        is_leaf = self.left == _LEAF
        check_numbers("feature", self.feature[~is_leaf], 0, n - 1)
        check_numbers("feature, of leaves", self.feature[is_leaf], _NO_FEATURE, n - 1)  # `answer` looks at it too

    def restore(self, arrays: Arrays, n_classes: int) -> Self:
        nodes, n = np.arange(len(arrays["left"])), len(arrays["left"])
        check_numbers("classes", arrays["classes"], 0, n_classes - 1)
        check_numbers("roots", arrays["roots"], 0, n - 1)
        for name in ("left", "right"):
            child = arrays[name].astype(np.int64)
            check_numbers(name, child, _LEAF, n - 1)
            check_numbers(f"{name}, from node to node", (child - nodes)[child != _LEAF], 1, n)  # no way leads back
        check_numbers("right, of inner nodes", arrays["right"][arrays["left"] != _LEAF], 0, n - 1)
        self.n_classes = n_classes
        for name, values in arrays.items():
            setattr(self, name, values)
        return self
