"""The explanation of one window in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transpl.explanation.contributions import PROBABILITY, contributions_of, scale_of
from transpl.markov.posterior import NEGLIGIBLE_WEIGHT

if TYPE_CHECKING:
    from transpl.explanation.explanation import Explanation

_NAMED = 3  # channels; more do not fit a sentence
_ALIKE = 0.05  # of an equal part of the vote; what differs by less is not worth telling apart
_SET_ASIDE = 0.25  # of the most trusted channel's share
_NETWORK = "the network's own view"
_ANSWERED_BY = {
    "finetune": "The fine-tuned network answers",
    "source": "The source network, which is not adapted, answers",
    "markov": "With the class proportions given to adapt the answer is",
}


def sentence_of(one: Explanation) -> str:
    """Say who carried the label of a single window, which channels were set aside, and who else answers what.

    By the plain mean a channel carried its part of the label's probability. Else it, or the network, carried its part
    of all that spoke for the label and against the next best class. A channel is set aside if it counts less than a
    quarter of the most trusted one.
    """
    k = int(one.probabilities[0].argmax())
    carried = _of_the_vote(one, k) if scale_of(one) == PROBABILITY else _of_the_log_odds(one)
    reasons = [*carried, *_set_aside(one)]
    return f"{one.classes[k]}, {one.probabilities[0, k]:.2f}: {'; '.join(reasons)}.{_other_answer(one, k)}"


def _of_the_vote(one: Explanation, k: int) -> list[str]:
    votes = one.votes[0, :, k]
    return [_carried(votes / votes.sum(), one.channel_names)]


def _of_the_log_odds(one: Explanation) -> list[str]:
    if len(one.classes) == 1:
        return ["there is no other class"]
    found = contributions_of(one)
    b = one.class_index("against", found.against)
    if not found.transitions.any() and np.isneginf(one.log_code_probabilities[0, b]):
        return ["no other class is possible by the source and the class proportions given"]
    parts = np.append(found.channels, found.classifier).clip(min=0)
    if not parts.any():
        return [f"nothing spoke for it rather than for {found.against}"]
    carried = _carried_odds(parts / parts.sum(), one.channel_names)
    against = [f"{_NETWORK} spoke for {found.against}"] if found.classifier < 0 else []
    return [f"{carried} of what spoke for it rather than for {found.against}", *against]


def _carried_odds(parts: NDArray[np.float64], names: Sequence[str]) -> str:
    """Name channels and network; the last of `parts` is the network's, 0 where it spoke against or did not vote."""
    D = len(names)
    if parts[D] == 0 and (D == 1 or np.ptp(parts[:D]) < _ALIKE / D):
        return _all_alike(names)
    most = _first_half(parts)
    channels = [names[d] for d in most if d < D]
    carriers = [f"{_channels(len(channels))} {listed(channels)}"] if channels else []
    if D in most:
        carriers.append(_NETWORK)
    return f"{', and '.join(carriers)}{',' if len(carriers) == 2 else ''} carried {_percent(parts[most].sum())}"


def _carried(parts: NDArray[np.float64], names: Sequence[str]) -> str:
    D = len(parts)
    if D == 1:
        return f"its one channel, {names[0]}, carried the whole vote"
    if np.ptp(parts) < _ALIKE / D:
        return f"{_every(D)} channels carried about the same part of the vote"
    most = _first_half(parts)
    named = listed([names[d] for d in most])
    return f"{_channels(len(most))} {named} carried {_percent(parts[most].sum())} of the vote"


def _all_alike(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"its one channel, {names[0]}, carried all"
    return f"{_every(len(names))} channels carried about the same part"


def _first_half(parts: NDArray[np.float64]) -> NDArray[np.int64]:
    """The largest parts that make up a half, at most `_NAMED` of them."""
    order = np.argsort(-parts, kind="stable")
    enough = 1 + int(np.searchsorted(np.cumsum(parts[order]), 0.5))
    return order[: min(enough, _NAMED)]


def _set_aside(one: Explanation) -> list[str]:
    if len(one.shares) > 1 and one.weights.max() <= NEGLIGIBLE_WEIGHT:
        return ["every channel has shifted away, so all count alike"]
    aside = np.flatnonzero(one.shares < _SET_ASIDE * one.shares.max())
    if not len(aside):
        return []
    aside = aside[np.argsort(one.weights[aside], kind="stable")]
    weights = [_weight(one.weights[d]) for d in aside]
    if len(aside) > _NAMED:
        spread = weights[0] if weights[0] == weights[-1] else f"{weights[0]} to {weights[-1]}"
        return [f"{len(aside)} channels were set aside, weights {spread}"]
    verb, noun = ("was", "weight") if len(aside) == 1 else ("were", "weights")
    return [f"{listed([one.channel_names[d] for d in aside])} {verb} set aside, {noun} {listed(weights)}"]


def _other_answer(one: Explanation, k: int) -> str:
    answer = int(one.answers[0].argmax())
    if answer == k:
        return ""
    return f" {_ANSWERED_BY[one.mode]} {one.classes[answer]}, {one.answers[0, answer]:.2f}."


def _every(n: int) -> str:
    return "both" if n == 2 else f"all {n}"


def _channels(n: int) -> str:
    return "channel" if n == 1 else "channels"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _weight(weight: float) -> str:
    return f"{weight:.2f}" if weight >= 0.005 else "below 0.01"


def listed(words: Sequence[str]) -> str:
    """Join words as in a sentence: a; a and b; a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
