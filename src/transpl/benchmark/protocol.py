"""The paper's protocol for a pair of domains: what methods see, and who holds the target's labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import invalid
from transpl._utils.metrics import cross_entropies, label_scores, scores
from transpl.datasets import Dataset
from transpl.estimator.validation import hold_out
from transpl.methods import Labelled, LearntRows, Method
from transpl.windows import Windows, as_windows

SHOTS = 5  # labelled windows per class for the few-shot risk
PRIOR_EPSILON = 1e-6  # share of the prior that a class absent from the target keeps


@dataclass(frozen=True)
class Pair:
    """What methods see: labelled source windows, and target windows without labels.

    Attributes
    ----------
    source : Labelled
        The source's train part.
    validation : Labelled
        The source's test part, which decides when training stops (the paper's protocol).
    target : Windows
        The target's train part, to adapt to.
    test : Windows
        The target's test part, to predict.
    target_groups, test_groups : (n,) int array or None
        The recording or patient of each window, if the data set has them.
    """

    source: Labelled
    validation: Labelled
    target: Windows
    test: Windows
    target_groups: NDArray[np.int64] | None = None
    test_groups: NDArray[np.int64] | None = None


class Evaluator:
    """The only holder of the target's labels.

    It returns scores, and gives class proportions or labelled rows only to methods that are meant to have them.

    Parameters
    ----------
    train, test : Labelled
        The target's two parts.
    """

    def __init__(self, train: Labelled, test: Labelled) -> None:
        self._train, self._test = train, test

    def score(self, probabilities: ArrayLike) -> dict[str, float]:
        """Scores of class probabilities (n, K) of the target's test part."""
        return scores(self._test.y, _one_per_row(probabilities, self._test))

    def score_labels(self, labels: ArrayLike) -> dict[str, float]:
        """Scores of pseudo-labels (n,) of the target's train part: all rows, whatever their confidence."""
        return label_scores(self._train.y, _one_per_row(labels, self._train), self._train.n_classes)

    def score_learnt(self, learnt: LearntRows) -> dict[str, float]:
        """Scores of the rows of the target's train part that a method learned from.

        Returns their number ("rows"), their share, and "accuracy", the share with the right label, if there are any.
        """
        rows, labels = np.asarray(learnt.rows), np.asarray(learnt.labels)
        n = len(self._train.y)
        if rows.shape != labels.shape or len(np.unique(rows)) != len(rows) or not np.isin(rows, np.arange(n)).all():
            expected = f"different rows of {n}, and a label for each"
            raise invalid("learnt", expected=expected, got=f"{rows.shape}, {labels.shape}", advice="Number the target.")
        accuracy = {"accuracy": float((self._train.y[rows] == labels).mean())} if len(rows) else {}
        return {"rows": len(rows), "share": len(rows) / n, **accuracy}

    def test_risk(self, probabilities: ArrayLike) -> float:
        """Cross entropy of class probabilities (n, K) of the target's test part: an oracle, for comparison only."""
        return float(cross_entropies(_one_per_row(probabilities, self._test), self._test.y).mean())

    def few_shot_risk(self, method: Method, seed: int) -> float:
        """Cross entropy on a few labelled windows per class of the target's train part, the same for equal seeds."""
        rng = np.random.default_rng(seed)
        classes = [rng.permutation(np.flatnonzero(self._train.y == k))[:SHOTS] for k in np.unique(self._train.y)]
        rows = np.sort(np.concatenate(classes))
        return float(cross_entropies(method.predict_proba(self._train.windows[rows]), self._train.y[rows]).mean())

    def proportions(self) -> NDArray[np.float64]:
        r"""\pi_k = (n_k + \epsilon) / \sum_j (n_j + \epsilon), (K,), of the target's train part: weak supervision."""
        n = np.bincount(self._train.y, minlength=self._train.n_classes) + PRIOR_EPSILON
        return n / n.sum()

    def prior_for(self, method: Method) -> NDArray[np.float64] | None:
        """The class proportions for a method that needs them, None for any other."""
        return self.proportions() if "prior" in method.requires else None

    def labelled_rows(self, method: Method, seed: int) -> tuple[Labelled, Labelled]:
        """The labelled train part of the target and a stratified share held out of it; for upper bounds only."""
        if not method.uses_target_labels:
            got, advice = type(method).__name__, "Pass the source instead."
            raise invalid("method", expected="one that uses target labels", got=got, advice=advice)
        return hold_out(self._train, seed)


def split_pair(dataset: Dataset, source: int, target: int) -> tuple[Pair, Evaluator]:
    """Split two domains of a data set into what methods see and what they do not.

    Parameters
    ----------
    dataset : Dataset
    source, target : int
        Domains of the data set.

    Returns
    -------
    pair : Pair
        What methods see.
    evaluator : Evaluator
        Holds the target's labels.

    Examples
    --------
    >>> from transpl import datasets
    >>> from transpl.benchmark import split_pair
    >>> pair, evaluator = split_pair(datasets.load("synthetic"), 0, 1)
    >>> len(pair.target) == len(datasets.load("synthetic").domain(1).y_train)
    True
    """
    here, there = dataset.domain(source), dataset.domain(target)
    K = len(dataset.class_names)

    def part(X: NDArray, y: NDArray[np.int64], name: str) -> Labelled:
        return Labelled(as_windows(X, name=name), y, K)

    train = part(there.X_train, there.y_train, f"train part of domain {target}")
    test = part(there.X_test, there.y_test, f"test part of domain {target}")
    target_groups, test_groups = dataset.domain_groups(target)
    pair = Pair(
        source=part(here.X_train, here.y_train, f"train part of domain {source}"),
        validation=part(here.X_test, here.y_test, f"test part of domain {source}"),
        target=train.windows,
        test=test.windows,
        target_groups=target_groups,
        test_groups=test_groups,
    )
    return pair, Evaluator(train, test)


def _one_per_row(answers: ArrayLike, part: Labelled) -> NDArray:
    found = np.asarray(answers)
    if len(found) != len(part.y):
        advice = "Return one answer per window."
        raise invalid("answers", expected=f"{len(part.y)} rows", got=len(found), advice=advice)
    return found
