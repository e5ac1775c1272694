r"""How much each transition, each channel and the prior contributed to the vote of the channels on one window.

A channel gives label a rather than b the margin

    share_d (p_a - p_b) = share_d (p_a + p_b) tanh(o_d / 2),    o_d = \sum_t score_{d,t} + prior.

It is divided among the terms of o_d in proportion to them. Nothing is estimated: transitions and prior add up to the
channel, and channels to the lead of one label over the other.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from transpl.markov.explanation import BaseExplanation, Explanation

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contributions:
    """What spoke for `label` (above 0) and for `against` (below 0) in one window.

    Attributes
    ----------
    label, against : class labels
    log_odds : (D, N-1) array
        log p(s_{t+1} | s_t, label, d) - log p(s_{t+1} | s_t, against, d) of each transition.
    transitions : (D, N-1) array
        The part of each transition in the margin.
    prior : (D,) array
        The remaining part: the prior's, and everything where the source has no window of one of the classes.
    channels : (D,) array
        Transitions and prior of each channel together.
    margin : float
        y_label - y_against, the sum of `channels`.
    """

    label: Any
    against: Any
    log_odds: Floats
    transitions: Floats
    prior: Floats
    channels: Floats
    margin: float


@dataclass(frozen=True)
class TransitionEvidence:
    """One step from a code to the next.

    Attributes
    ----------
    position : int
        Of the first of the two patches in the window, from 0.
    first_step, last_step : int
        The time steps that both patches cover, from 0, inclusive.
    log_odds : float
        How much likelier the step is in one class than in the other (natural logarithm).
    contribution : float
        Its part of the margin.
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
    """The vote of one channel: its weight and share, its own probabilities of both classes, its part of the margin."""

    channel: str
    weight: float
    share: float
    for_label: float
    for_against: float
    contribution: float


@dataclass(frozen=True)
class VoteEvidence:
    """Why `label` rather than `against`, the most decisive evidence first on either side.

    Attributes
    ----------
    window : int
        Row number.
    probability : float
        Of `label`, by the vote.
    margin : float
        The lead of `label`; the contributions of all channels add up to it.
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


def contributions_of(one: Explanation, label: Any = None, against: Any = None) -> Contributions:
    """Split the margin in an explanation of one window."""
    (a, b), labels, votes = one.rivals(label, against), one.classes.tolist(), one.votes[0]
    terms = one.transition_log_probabilities[0]
    log_odds = difference(terms[..., a], terms[..., b])
    prior = 0.0
    if one.prior is not None:
        with np.errstate(divide="ignore"):
            log_prior = np.log(one.prior) / one.prior_temperature
        prior = float(difference(log_prior[a], log_prior[b]))
    transitions = transition_parts(votes[:, a] + votes[:, b], log_odds / one.divisors[0][:, None], prior)
    channels = votes[:, a] - votes[:, b]
    rest = channels - transitions.sum(axis=1)
    return Contributions(labels[a], labels[b], log_odds, transitions, rest, channels, float(channels.sum()))


def transition_parts(votes: Floats, scores: Floats, prior: float) -> Floats:
    r"""votes_d tanh(o_d / 2) score_{d,t} / o_d with o_d = \sum_t score_{d,t} + prior, (D, N-1).

    votes : (D,) share_d (p_a + p_b); scores : (D, N-1). Where o_d = 0 the limit votes_d score_{d,t} / 2 is taken, and
    where it is infinite all is left to the prior.
    """
    with np.errstate(invalid="ignore"):
        odds = scores.sum(axis=1) + prior
        safe = np.where(odds == 0, 1.0, odds)
        slopes = votes * np.where(odds == 0, 0.5, np.tanh(safe / 2) / safe)
        return np.nan_to_num(scores * slopes[:, None], nan=0.0)


def difference(a: Floats, b: Floats) -> Floats:
    """Return a - b, and 0 where both are -inf: neither class is known, so nothing speaks for either."""
    unknown = np.isneginf(a) & np.isneginf(b)
    return np.where(unknown, 0.0, a) - np.where(unknown, 0.0, b)


def evidence_of(one: Explanation, n: int, label: Any, against: Any) -> VoteEvidence:
    """Name what spoke for and against, in an explanation of one window."""
    found = contributions_of(one, label, against)
    a, b = one.class_index("label", found.label), one.class_index("against", found.against)

    def channels(sign: int) -> tuple[ChannelEvidence, ...]:
        return tuple(
            ChannelEvidence(
                channel=one.channel_names[d],
                weight=float(one.weights[d]),
                share=float(one.shares[d]),
                for_label=float(one.posteriors[0, d, a]),
                for_against=float(one.posteriors[0, d, b]),
                contribution=float(found.channels[d]),
            )
            for d in largest(sign * found.channels, len(found.channels))
        )

    return VoteEvidence(
        window=int(one.windows[0]),
        label=found.label,
        against=found.against,
        probability=float(one.probabilities[0, a]),
        margin=found.margin,
        channels_for=channels(1),
        channels_against=channels(-1),
        transitions_for=top_transitions(one, found.log_odds, found.transitions, n),
        transitions_against=top_transitions(one, found.log_odds, found.transitions, n, sign=-1),
    )


def largest(values: Floats, n: int) -> list[int]:
    """Return the positions of the n largest positive values; of equal ones the first comes first."""
    order = np.argsort(-values, kind="stable")[:n]
    return [int(at) for at in order if values[at] > 0]


def top_transitions(
    one: BaseExplanation, log_odds: Floats, contributions: Floats, n: int, sign: int = 1
) -> tuple[TransitionEvidence, ...]:
    """Name the n transitions with the largest contributions (D, N-1) of one sign."""
    places = (divmod(at, contributions.shape[1]) for at in largest(sign * contributions.ravel(), n))
    return tuple(
        TransitionEvidence(
            channel=one.channel_names[d],
            position=t,
            first_step=t * one.patch_length,
            last_step=(t + 2) * one.patch_length - 1,
            from_code=int(one.codes[0, d, t]),
            to_code=int(one.codes[0, d, t + 1]),
            log_odds=float(log_odds[d, t]),
            contribution=float(contributions[d, t]),
        )
        for d, t in places
    )


def evidence_table(kind: type, evidence_for: tuple[Any, ...], evidence_against: tuple[Any, ...]) -> pd.DataFrame:
    """Tabulate evidence of one kind, that for the label first."""
    rows = [{"side": "for", **asdict(one)} for one in evidence_for]
    rows += [{"side": "against", **asdict(one)} for one in evidence_against]
    return pd.DataFrame(rows, columns=["side", *(field.name for field in fields(kind))])
