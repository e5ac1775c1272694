"""What a fitted `TransPL` can be asked: attributes that end in an underscore, views of its method."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from transpl.adapter import DomainAdapter
from transpl.markov import CodebookUsage, TransitionCounts


class FittedAttributes:
    """The attributes that `TransPL` describes."""

    method_: DomainAdapter

    @abstractmethod
    def fitted_method(self) -> DomainAdapter: ...

    @property
    def codebook_(self) -> NDArray[np.float64]:
        return self.method_.codebook

    @property
    def class_counts_(self) -> TransitionCounts:
        return self.method_.class_counts

    @property
    def source_counts_(self) -> TransitionCounts:
        return self.method_.source_counts

    @property
    def target_counts_(self) -> TransitionCounts:
        counts = self.method_.target_counts
        if counts is None:
            raise AttributeError("target_counts_ exists after adapt or partial_adapt.")
        return counts

    @property
    def channel_distances_(self) -> NDArray[np.float64]:
        return self.fitted_method().channel_distances(self.target_counts_)

    @property
    def channel_weights_(self) -> NDArray[np.float64]:
        return self.fitted_method().trust(self.channel_distances_)

    @property
    def codebook_usage_(self) -> dict[str, CodebookUsage]:
        return self.method_.codebook_usage

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        return self.method_.history

    @property
    def seconds_(self) -> dict[str, float]:
        return self.method_.seconds

    @property
    def mode_(self) -> str:
        return self.method_.mode
