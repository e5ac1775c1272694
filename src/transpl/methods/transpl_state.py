"""What TransPL has learnt: networks, counts and how they came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from transpl.errors import InputError
from transpl.explanation import SourceCodes
from transpl.markov import TransitionCounts
from transpl.methods.aligned_copies import Alignment, names_with_copies
from transpl.methods.moments import Moments
from transpl.methods.vote import HeldOut
from transpl.network import ChannelHead, CodebookUsage, Network
from transpl.training.loop import History
from transpl.windows import Windows


@dataclass
class TransPLState:
    """What has been learnt. Counts belong to the codes of `source_network`, which adaptation leaves alone.

    D are the channels; V those that vote, which are 2 D where aligned copies of them vote too.
    """

    source_network: Network
    class_counts: TransitionCounts  # (K, D, n_c, n_c)
    codebook_usage: dict[str, CodebookUsage]
    source_codes: SourceCodes | None = None  # to find the nearest source windows; not in models of old
    held_out: HeldOut | None = None  # to set sharpness; not in models of old
    source_moments: Moments | None = None  # to align targets with; not in models of old
    alignment: Alignment | None = None  # of the target's channels, where aligned copies vote
    target_counts: TransitionCounts | None = None  # (V, n_c, n_c)
    # (K,), mean of the vote's probabilities, if the target was labelled
    target_shares: NDArray[np.float64] | None = None
    labelled_counts: TransitionCounts | None = None  # (K, V, n_c, n_c), of target windows that a person labelled
    refined_counts: TransitionCounts | None = None  # (K, V, n_c, n_c), of target windows as the vote labelled them
    temper: float = 1.0  # what the vote's confidences are lowered by
    prior: NDArray[np.float64] | None = None  # (K,)
    adapted_network: Network | ChannelHead | None = None
    mode: str = "source"  # which classifier answers: "source", "markov" or "finetune"
    history: dict[str, History] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def facing(self, target: Moments) -> TransPLState:
        """The state that knows the map from this target's channels to the source's."""
        if self.source_moments is None:
            raise InputError(
                "aligned_copies: this model was saved without moments of its source. Fit and save it again."
            )
        return replace(self, alignment=Alignment.between(self.source_moments, target))

    def as_recorded(self) -> TransPLState:
        """The state in which no copies vote."""
        return replace(self, alignment=None)

    def seen(self, windows: Windows) -> tuple[Windows, ...]:
        """Windows in every view of them: as recorded and, where they vote, their aligned copies."""
        return (windows,) if self.alignment is None else (windows, self.alignment.copies(windows))

    def voters(self, channel_names: Sequence[str]) -> tuple[str, ...]:
        """The names of all channels that vote."""
        return tuple(channel_names) if self.alignment is None else names_with_copies(channel_names)

    @property
    def views(self) -> tuple[slice, ...]:
        """Which of the V channels each view of `seen` has."""
        D = self.class_counts.n_channels
        return (slice(0, D),) if self.alignment is None else (slice(0, D), slice(D, 2 * D))

    @property
    def recorded_counts(self) -> TransitionCounts | None:
        """The target's counts in the channels as they were recorded, (D, n_c, n_c)."""
        return None if self.target_counts is None else self.target_counts.of_channels(self.views[0])

    @property
    def source_counts(self) -> TransitionCounts:
        """Counts of the source by class, (K, V, n_c, n_c); in the source a channel and its copy are the same."""
        return TransitionCounts.side_by_side([self.class_counts] * len(self.views))

    @property
    def voting_counts(self) -> TransitionCounts:
        """Counts by class that labels are made of: the source's, and those of labelled target windows."""
        added = (counts for counts in (self.labelled_counts, self.refined_counts) if counts is not None)
        return sum(added, start=self.source_counts)

    def unadapted(self) -> TransPLState:
        """The source model alone, as it was before any adaptation."""
        return TransPLState(
            self.source_network,
            self.class_counts,
            self.codebook_usage,
            self.source_codes,
            self.held_out,
            self.source_moments,
            history={"source": self.history["source"]},
            seconds={name: self.seconds[name] for name in ("source", "count_source")},
        )
