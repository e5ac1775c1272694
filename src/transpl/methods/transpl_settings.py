"""The settings of TransPL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from transpl.errors import one_of, positive, share, whole_number
from transpl.markov.counts import check_epsilon
from transpl.markov.joining import VOTES
from transpl.markov.posterior import CONFIDENCE, LENGTHS
from transpl.methods.settings import AdaptSettings, added_later
from transpl.training.adaptation import STOPPING, AdaptationSettings

LEARNING = ("labels", "vote")
_FOR_ALL_DATA_SETS = {"sigma": 0.2, "prior_temperature": 1.0}  # the paper has other ones for each


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

    Beyond the paper, all off by default; `transpl-plus` turns them on:

    vote : channels are joined by the "mean" of their posteriors (the paper) or by the "product" of their likelihoods
    calibrate : set how sharp likelihoods and classifier are on held-out source windows
    classifier_evidence : the source network's own class probabilities join the vote
    aligned_copies : every channel votes twice, as recorded and after a linear map that gives the target's channels the
        means and covariances of the source's, unless the source's matrices find the mapped windows less likely
    refine_rounds : how often the target's windows, as labelled so far, are counted to the classes before the next vote
    refine_share : of the windows of each class the surest that are counted then
    temper : lower confidences until their mean on the target is the share of windows whose label the refinement kept
    learning : fine-tuning trains the network on the most confident "labels" (the paper), or gives it a head that learns
        the "vote": its probabilities for all windows, see `ChannelHead`
    """

    sigma: float = 0.2
    prior_temperature: float = 1.0
    channel_alignment: bool = True
    smoothing: str = "floor"
    epsilon: float | None = None
    length: str = "transitions"
    confidence: str = "max"
    top_ratio: float = 0.5
    adapt_stopping: str = "source"
    vote: str = "mean"
    calibrate: bool = False
    classifier_evidence: bool = False
    aligned_copies: bool = added_later(False, before=False)
    refine_rounds: int = 0
    refine_share: float = 1.0
    temper: bool = added_later(False, before=False)
    learning: str = "labels"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("smoothing", self.smoothing, ("floor", "additive", "pseudocount"))
        one_of("length", self.length, LENGTHS)
        one_of("confidence", self.confidence, CONFIDENCE)
        one_of("adapt_stopping", self.adapt_stopping, STOPPING)
        one_of("vote", self.vote, VOTES)
        one_of("learning", self.learning, LEARNING)
        for name in ("channel_alignment", "calibrate", "classifier_evidence", "aligned_copies", "temper"):
            one_of(name, getattr(self, name), (True, False))
        whole_number("refine_rounds", self.refine_rounds, least=0)
        share("refine_share", self.refine_share, one=True)
        for name in ("sigma", "prior_temperature"):
            positive(name, getattr(self, name))
        if self.epsilon is not None:
            check_epsilon(self.smoothing, self.epsilon)
        self.adaptation()

    def adaptation(self) -> AdaptationSettings:
        return AdaptationSettings(self.top_ratio, self.adapt_stopping)


@dataclass(frozen=True)
class TransPLPlusSettings(TransPLSettings):
    """Those of TransPL with what `transpl-plus` turns on; docs/beyond.md tells how it was found."""

    smoothing: str = "pseudocount"
    vote: str = "product"
    calibrate: bool = True
    classifier_evidence: bool = True
    aligned_copies: bool = True
    refine_rounds: int = 10
    refine_share: float = 0.5
    temper: bool = added_later(True, before=False)
    learning: str = "vote"

    @classmethod
    def for_dataset(cls, dataset: str, preset: str = "paper", **changes: Any) -> Self:
        """The same values for every data set, but for the network's."""
        return super().for_dataset(dataset, preset, **{**_FOR_ALL_DATA_SETS, **changes})


PLUS: dict[str, Any] = {name: getattr(TransPLPlusSettings, name) for name in TransPLPlusSettings.__annotations__}
# What a variant sets, and how it adapts unless told otherwise.
VARIANTS: dict[str, dict[str, Any]] = {"paper": {}, "plus": PLUS}
MODE_OF = {"paper": "finetune", "plus": "markov"}
