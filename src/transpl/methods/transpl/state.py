"""What TransPL has learnt: networks, counts and how they came about."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from transpl.markov import CodebookUsage, SourceCodes, TransitionCounts
from transpl.nn import History, Network


@dataclass
class TransPLState:
    """What has been learnt. Counts belong to the codes of `source_network`, which adaptation leaves alone."""

    source_network: Network
    class_counts: TransitionCounts  # (K, D, n_c, n_c)
    codebook_usage: dict[str, CodebookUsage]
    source_codes: SourceCodes | None = None  # to find the nearest source windows; not in models of old
    target_counts: TransitionCounts | None = None  # (D, n_c, n_c)
    # (K,), mean of the vote's probabilities, if the target was labelled
    target_shares: NDArray[np.float64] | None = None
    labelled_counts: TransitionCounts | None = None  # (K, D, n_c, n_c), of target windows that a person labelled
    prior: NDArray[np.float64] | None = None  # (K,)
    adapted_network: Network | None = None
    mode: str = "source"  # which classifier answers: "source", "markov" or "finetune"
    history: dict[str, History] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def voting_counts(self) -> TransitionCounts:
        """Counts by class that labels are made of: the source's, and those of labelled target windows."""
        return self.class_counts if self.labelled_counts is None else self.class_counts + self.labelled_counts

    def unadapted(self) -> TransPLState:
        """The source model alone, as it was before any adaptation."""
        return TransPLState(
            self.source_network,
            self.class_counts,
            self.codebook_usage,
            self.source_codes,
            history={"source": self.history["source"]},
            seconds={name: self.seconds[name] for name in ("source", "count_source")},
        )
