"""Scaling channels, and whose statistics may be used for it. Mean and standard deviation are over (window, time).

rule              statistics of                       what a method gets to know that it should not
none              nothing (the paper)                 nothing
source_stats      the source's train part, for all    nothing; the shift in scale stays in the data
per_domain_train  each domain's own train part        nothing: a target's train part is given, without labels
per_split         each (domain, split) by itself      the test part's mean and spread, before it is predicted
                  (AdaTime's loader)                  window by window

No rule looks at a label. A channel that does not vary is centred and not divided.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, invalid
from transpl.datasets.base import TEST, TRAIN, Dataset

RULES = ("none", "per_domain_train", "source_stats", "per_split")
_NO_SPREAD = 1e-7  # of a channel's size: what float32 cannot tell from a constant


class Statistics(NamedTuple):
    """Mean and standard deviation per channel, (channels,)."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    def applied(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return windows with this mean taken off, divided by this standard deviation."""
        centred = X - self.mean[:, None]
        return np.asarray(centred / self.std[:, None], dtype=np.float32)


def normalised(dataset: Dataset, rule: str = "none", source: int | None = None) -> Dataset:
    """Return `dataset` scaled by `rule`; "source_stats" needs to know which domain is the source."""
    check_choice("normalise", rule, RULES)
    if rule == "none":
        return dataset
    if rule == "source_stats":
        return replace(dataset, X=_source_statistics(dataset, source).applied(dataset.X))
    X = np.empty_like(dataset.X)
    for domain in dataset.domains:
        for split in (TRAIN, TEST):
            rows = (dataset.domain_ids == domain) & (dataset.split == split)
            if rows.any():
                X[rows] = statistics(dataset, domain, split if rule == "per_split" else TRAIN).applied(dataset.X[rows])
    return replace(dataset, X=X)


def statistics(dataset: Dataset, domain: int, split: int = TRAIN) -> Statistics:
    """Return mean and standard deviation of one part of one domain."""
    X = dataset.X[(dataset.domain_ids == domain) & (dataset.split == split)]
    if len(X) == 0:
        part = "train" if split == TRAIN else "test"
        expected = f"a domain of {dataset.name} with {part} windows"
        raise invalid("normalise", expected=expected, got=f"none in domain {domain}", advice="Choose another rule.")
    mean = X.mean(axis=(0, 2), dtype=np.float64)
    std = X.std(axis=(0, 2), dtype=np.float64)
    largest = np.abs(X).max(axis=(0, 2))
    return Statistics(mean, np.where(std > _NO_SPREAD * largest, std, 1.0))


def _source_statistics(dataset: Dataset, source: int | None) -> Statistics:
    if source is None:
        advice = "Name the source domain, or choose per_domain_train."
        raise invalid("source", expected="the domain whose statistics are used", got=None, advice=advice)
    if source not in dataset.domains:
        known = ", ".join(map(str, dataset.domains))
        raise invalid(
            "source", expected=f"one of {known}", got=repr(source), advice=f"Choose a domain of {dataset.name}."
        )
    return statistics(dataset, source)
