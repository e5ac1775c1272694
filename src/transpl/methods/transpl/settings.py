"""The settings of TransPL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from transpl._utils.errors import check_choice, check_positive
from transpl.markov import CONFIDENCE, LENGTHS, check_epsilon
from transpl.methods.settings import AdaptSettings
from transpl.nn import STOPPING, AdaptationSettings


@dataclass(frozen=True)
class TransPLSettings(AdaptSettings):
    """Everything that decides the numbers; the paper's values for UCIHAR by default.

    sigma : bandwidth of the channel weight exp(-distance^2 / sigma^2)
    prior_temperature : divides the log prior; larger trusts a given prior less
    channel_alignment : weigh channels by their shift; False lets all count alike
    smoothing : of transitions never seen, "floor" (the authors' code), "additive" (the paper's print) or "pseudocount"
    epsilon : what such a transition counts; None is 1e-4 for "floor", 1e-6 for "additive" and 0.1 for "pseudocount"
    length : log likelihoods are divided by the number of "transitions" (authors' code) or "codes" (print)
    confidence : "max" probability (print) or "kl" from uniform (authors' code)
    top_ratio : the share of a batch's target rows, the most confident, that is learnt from
    adapt_stopping : validate adaptation on held-out "source" rows, or also on trusted pseudo-"labels"
    """

    retired: ClassVar[Mapping[str, Any]] = {
        "vote": "mean",
        "calibrate": False,
        "classifier_evidence": False,
        "refine_rounds": 0,
        "refine_share": 1.0,
        "learning": "labels",
    }

    sigma: float = 0.2
    prior_temperature: float = 1.0
    channel_alignment: bool = True
    smoothing: str = "floor"
    epsilon: float | None = None
    length: str = "transitions"
    confidence: str = "max"
    top_ratio: float = 0.5
    adapt_stopping: str = "source"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("smoothing", self.smoothing, ("floor", "additive", "pseudocount"))
        check_choice("length", self.length, LENGTHS)
        check_choice("confidence", self.confidence, CONFIDENCE)
        check_choice("adapt_stopping", self.adapt_stopping, STOPPING)
        check_choice("channel_alignment", self.channel_alignment, (True, False))
        for name in ("sigma", "prior_temperature"):
            check_positive(name, getattr(self, name))
        if self.epsilon is not None:
            check_epsilon(self.smoothing, self.epsilon)
        self.adaptation()

    def adaptation(self) -> AdaptationSettings:
        return AdaptationSettings(self.top_ratio, self.adapt_stopping)
