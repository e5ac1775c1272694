"""The settings of TransPL. Reading them needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from transpl._utils.errors import check_choice, check_positive
from transpl.methods.method_settings import AdaptSettings, setting

if TYPE_CHECKING:
    from transpl.nn import AdaptationSettings


@dataclass(frozen=True)
class TransPLSettings(AdaptSettings):
    """Everything that decides the numbers of TransPL; defaults are the paper's values for UCIHAR."""

    retired: ClassVar[Mapping[str, Any]] = {
        "vote": "mean",
        "calibrate": False,
        "classifier_evidence": False,
        "refine_rounds": 0,
        "refine_share": 1.0,
        "learning": "labels",
    }

    # Its labels are made of codes, which a CNN does not have, so these are no settings of TransPL.
    backbone: ClassVar[str] = "patch-transformer"  # type: ignore[misc]
    keep: ClassVar[str] = "best"  # type: ignore[misc]

    sigma: float = setting(0.2, "bandwidth of the channel weight exp(-distance^2 / sigma^2)")
    prior_temperature: float = setting(1.0, "divides the log prior; a larger value trusts a given prior less")
    channel_alignment: bool = setting(True, "weight channels by how far they shifted; False weights all equally")
    smoothing: str = setting(
        "floor",
        'how unseen transitions are counted: "floor" (the authors\' code), "additive" (the paper\'s text) or '
        '"pseudocount"',
    )
    epsilon: float | None = setting(
        None,
        'the count of an unseen transition; None is 1e-4 for "floor", 1e-6 for "additive" and 0.1 for "pseudocount"',
    )
    length: str = setting(
        "transitions",
        'what log likelihoods are divided by: the number of "transitions" (the authors\' code) or "codes" (the '
        "paper's text)",
    )
    confidence: str = setting(
        "max",
        'the confidence of a pseudo-label: "max" probability (the paper\'s text) or "kl" divergence from the uniform '
        "distribution (the authors' code)",
    )
    top_ratio: float = setting(0.5, "share of the target rows in a batch, the most confident, that fine-tuning uses")
    adapt_stopping: str = setting(
        "source",
        'validate fine-tuning on held-out "source" rows (the paper), or also on trusted pseudo-"labels", so that it '
        "continues while the network still learns them",
    )

    def __post_init__(self) -> None:
        from transpl.markov import CONFIDENCE, LENGTHS, check_epsilon

        super().__post_init__()
        check_choice("smoothing", self.smoothing, ("floor", "additive", "pseudocount"))
        check_choice("length", self.length, LENGTHS)
        check_choice("confidence", self.confidence, CONFIDENCE)
        check_choice("channel_alignment", self.channel_alignment, (True, False))
        for name in ("sigma", "prior_temperature"):
            check_positive(name, getattr(self, name))
        if self.epsilon is not None:
            check_epsilon(self.smoothing, self.epsilon)
        self.adaptation()

    def adaptation(self) -> AdaptationSettings:
        from transpl.nn import STOPPING, AdaptationSettings

        check_choice("adapt_stopping", self.adapt_stopping, STOPPING)
        return AdaptationSettings(self.top_ratio, self.adapt_stopping)
