"""What a fitted `TransPL` can be asked: attributes that end in an underscore, views of its method's state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transpl.markov import TransitionCounts
from transpl.methods import TransPLMethod
from transpl.network import CodebookUsage
from transpl.windows import name_channels


class FittedAttributes:
    """The attributes that `TransPL` describes."""

    method_: TransPLMethod
    n_channels_: int

    @abstractmethod
    def fitted_method(self) -> TransPLMethod: ...

    @property
    def codebook_(self) -> NDArray[np.float64]:
        return self.method_.codebook

    @property
    def class_counts_(self) -> TransitionCounts:
        return self.method_.state.voting_counts

    @property
    def source_counts_(self) -> TransitionCounts:
        return self.method_.state.source_counts.pooled()

    @property
    def target_counts_(self) -> TransitionCounts:
        counts = self.method_.state.target_counts
        if counts is None:
            raise AttributeError("target_counts_ exists after adapt or partial_adapt.")
        return counts

    @property
    def channel_distances_(self) -> NDArray[np.float64]:
        return self.fitted_method().channel_distances(self.target_counts_)

    @property
    def channel_weights_(self) -> NDArray[np.float64]:
        return self.fitted_method().channel_weights(self.target_counts_)

    def voting_channels(self, channel_names: Sequence[str] | None = None) -> tuple[str, ...]:
        """The channels that vote since the last adaptation: those of X and, with `aligned_copies`, these again.

        channel_names : one per channel of X
        """
        return self.fitted_method().state.voters(name_channels(channel_names, self.n_channels_))

    @property
    def codebook_usage_(self) -> dict[str, CodebookUsage]:
        return self.method_.state.codebook_usage

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        return self.method_.state.history

    @property
    def seconds_(self) -> dict[str, float]:
        return self.method_.state.seconds

    @property
    def mode_(self) -> str:
        return self.method_.state.mode
