"""What a fitted `TransPL` can be asked: attributes that end in an underscore, views of its method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transpl.markov import CodebookUsage, TransitionCounts
from transpl.methods.contract import ExplainableMethod
from transpl.windows import name_channels

if TYPE_CHECKING:
    from transpl.council import Estimate, Standing


class FittedAttributes:
    """The attributes that `TransPL` describes."""

    method_: ExplainableMethod
    n_channels_: int
    channel_names: Sequence[str] | None

    @abstractmethod
    def fitted_method(self) -> ExplainableMethod: ...

    @property
    def estimated_accuracy_(self) -> Estimate:
        estimate = self._adapted_by_plus("estimated_accuracy_").estimate
        assert estimate is not None
        return estimate

    @property
    def shifts_(self) -> tuple[str, ...]:
        return self._adapted_by_plus("shifts_").undone(name_channels(self.channel_names, self.n_channels_))

    @property
    def witnesses_(self) -> list[Standing]:
        return self._adapted_by_plus("witnesses_").standings()

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

    def _adapted_by_plus(self, attribute: str) -> ExplainableMethod:
        if self.method_.variant != "plus" or self.method_.target_counts is None:
            raise AttributeError(f"{attribute} exists after adapt or partial_adapt, with variant='plus'.")
        return self.fitted_method()
