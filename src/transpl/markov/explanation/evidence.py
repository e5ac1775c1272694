"""The few channels and transitions that decided a window, by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl.markov.explanation.contributions import Contributions, contributions_of

if TYPE_CHECKING:
    from transpl.markov.explanation.base import BaseExplanation
    from transpl.markov.explanation.explanation import Explanation


@dataclass(frozen=True)
class TransitionEvidence:
    """One step from a code to the next.

    position : of the first of both patches in the window, from 0
    first_step, last_step : the time steps that both patches cover, from 0, both ends included
    log_odds : how much likelier the step is in one class than in the other (natural logarithm)
    contribution : its part of the margin
    """

    channel: str
    position: int
    first_step: int
    last_step: int
    from_code: int
    to_code: int
    log_odds: float
    contribution: float


@dataclass(frozen=True)
class ChannelEvidence:
    """What one channel said.

    share : of the vote
    for_label, for_against : the channel's own probabilities of the two classes
    contribution : its part of the margin, share * (for_label - for_against)
    """

    channel: str
    weight: float
    share: float
    for_label: float
    for_against: float
    contribution: float


@dataclass(frozen=True)
class Evidence:
    """Why `label` rather than `against`, the most decisive first on either side.

    window : row number
    probability : of `label` by the vote
    margin : by how much `label` leads; the contributions of all channels add up to it
    """

    window: int
    label: Any
    against: Any
    probability: float
    margin: float
    channels_for: tuple[ChannelEvidence, ...]
    channels_against: tuple[ChannelEvidence, ...]
    transitions_for: tuple[TransitionEvidence, ...]
    transitions_against: tuple[TransitionEvidence, ...]

    def table(self) -> pd.DataFrame:
        """The transitions, one per row; column `side` is "for" or "against"."""
        return evidence_table(TransitionEvidence, self.transitions_for, self.transitions_against)

    def channel_table(self) -> pd.DataFrame:
        """The channels, one per row; column `side` is "for" or "against"."""
        return evidence_table(ChannelEvidence, self.channels_for, self.channels_against)


def evidence_of(one: Explanation, n: int, label: Any, against: Any) -> Evidence:
    """Name what spoke for and against, of an explanation of one window."""
    found = contributions_of(one, label, against)
    transitions, D = found.transitions.ravel(), len(found.channels)

    def step(at: int) -> TransitionEvidence:
        return transition_evidence(one, at, found.log_odds, found.transitions)

    return Evidence(
        window=int(one.windows[0]),
        label=found.label,
        against=found.against,
        probability=float(one.probabilities[0, one.class_index("label", found.label)]),
        margin=found.margin,
        channels_for=tuple(_channel(one, found, d) for d in largest(found.channels, D)),
        channels_against=tuple(_channel(one, found, d) for d in largest(-found.channels, D)),
        transitions_for=tuple(step(at) for at in largest(transitions, n)),
        transitions_against=tuple(step(at) for at in largest(-transitions, n)),
    )


def largest(values: NDArray[np.float64], n: int) -> list[int]:
    """Positions of the n largest of those above 0; of equal ones the first comes first."""
    order = np.argsort(-values, kind="stable")[:n]
    return [int(at) for at in order if values[at] > 0]


def _channel(one: Explanation, found: Contributions, d: int) -> ChannelEvidence:
    a, b = one.class_index("label", found.label), one.class_index("against", found.against)
    return ChannelEvidence(
        channel=one.channel_names[d],
        weight=float(one.weights[d]),
        share=float(one.shares[d]),
        for_label=float(one.posteriors[0, d, a]),
        for_against=float(one.posteriors[0, d, b]),
        contribution=float(found.channels[d]),
    )


def transition_evidence(
    one: BaseExplanation, at: int, log_odds: NDArray[np.float64], contributions: NDArray[np.float64]
) -> TransitionEvidence:
    """The step at a place in the flattened (D, N-1) arrays `log_odds` and `contributions`."""
    d, t = divmod(at, contributions.shape[1])
    return TransitionEvidence(
        channel=one.channel_names[d],
        position=t,
        first_step=t * one.patch_length,
        last_step=(t + 2) * one.patch_length - 1,
        from_code=int(one.codes[0, d, t]),
        to_code=int(one.codes[0, d, t + 1]),
        log_odds=float(log_odds[d, t]),
        contribution=float(contributions[d, t]),
    )


def evidence_table(kind: type, spoke_for: tuple[Any, ...], spoke_against: tuple[Any, ...]) -> pd.DataFrame:
    """Named evidence as a table, what spoke for the label first."""
    rows = [{"side": "for", **asdict(one)} for one in spoke_for]
    rows += [{"side": "against", **asdict(one)} for one in spoke_against]
    return pd.DataFrame(rows, columns=["side", *(field.name for field in fields(kind))])
