"""The explanation of one window in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transpl.markov.posterior import NEGLIGIBLE_WEIGHT

if TYPE_CHECKING:
    from transpl.markov.explanation.explanation import Explanation

_NAMED = 3  # channels; more do not fit a sentence
_ALIKE = 0.05  # of an equal part of the vote; what differs by less is not worth telling apart
_SET_ASIDE = 0.25  # of the most trusted channel's share
_ANSWERED_BY = {
    "finetune": "The fine-tuned network answers",
    "source": "The source network, which is not adapted, answers",
    "markov": "With the class proportions given to adapt the answer is",
}


def sentence_of(one: Explanation) -> str:
    """Say who carried the label of a single window, which channels were set aside, and who else answers what.

    A channel carried its part of the label's probability. It is set aside if it counts less than a quarter of the most
    trusted one.
    """
    k = int(one.probabilities[0].argmax())
    votes = one.votes[0, :, k]
    reasons = [_carried(votes / votes.sum(), one.channel_names), *_set_aside(one)]
    return f"{one.classes[k]}, {one.probabilities[0, k]:.2f}: {'; '.join(reasons)}.{_other_answer(one, k)}"


def _carried(parts: NDArray[np.float64], names: Sequence[str]) -> str:
    D = len(parts)
    if D == 1:
        return f"its one channel, {names[0]}, carried the whole vote"
    if np.ptp(parts) < _ALIKE / D:
        return f"{_every(D)} channels carried about the same part of the vote"
    most = _first_half(parts)
    named = listed([names[d] for d in most])
    return f"{_channels(len(most))} {named} carried {_percent(parts[most].sum())} of the vote"


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
