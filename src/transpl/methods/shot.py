"""SHOT: the features move to a classifier that stays, on target rows alone (Liang et al. 2020)."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_int, check_not_negative
from transpl.methods.labelling import shot_labels
from transpl.methods.labelling.shot_labels import CONFIDENCE
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import MethodAsTeacher, PseudoLabelMethod, PseudoLabelSettings, as_tensors
from transpl.methods.registry import register
from transpl.methods.source_model import SourceModel
from transpl.nn import (
    LoopSettings,
    Network,
    Objective,
    Rows,
    SourceLoss,
    Teacher,
    class_probabilities,
    count,
    finalize,
    freeze,
    head_outputs,
    labelled_rows,
    train,
    window_rows,
)
from transpl.nn.losses import diversity, mean_entropy_of
from transpl.windows import PseudoLabels, TargetInfo, Windows

LEAST_FOR_DIVERSITY = 8  # rows: fewer say nothing about how often classes occur

_LEAST = 1e-12  # a class that a float32 softmax gives 0 is not impossible

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SHOTSettings(PseudoLabelSettings):
    """Settings of SHOT."""

    entropy_weight: float = setting(
        1.0,
        "of the terms of `SHOTObjective`; with all at 0 there is nothing to learn, the source model "
        "stays. Diversity assumes that classes are about equally frequent in the target",
    )
    diversity_weight: float = setting(
        1.0,
        "of the terms of `SHOTObjective`; with all at 0 there is nothing to learn, the source model "
        "stays. Diversity assumes that classes are about equally frequent in the target",
    )
    label_weight: float = setting(
        0.3,
        "of the terms of `SHOTObjective`; with all at 0 there is nothing to learn, the source model "
        "stays. Diversity assumes that classes are about equally frequent in the target",
    )
    adapt_epochs: int = setting(
        15,
        "the length of the training, for no validation tells when to stop; at most `max_epochs`",
    )
    freeze_head: bool = setting(
        False,
        "the whole head stays, and rows are compared by z; else its last layer, and by what that layer sees",
    )
    confidence: str = setting("distance", 'by "distance" to the centroids, or by the "entropy" of p')
    source_guard: bool = setting(
        True,
        "keep the source model if the adapted one is worse than it and than a uniform guess, CE > ln K, "
        "on held-out source",
    )
    label_smoothing: float = setting(0.0, "of the source phase; 0.1 as published takes a source model of its own")
    with_source: bool = setting(
        False,
        "learn SHOT's labels as the other methods learn theirs, with source rows. Then `top_ratio`, "
        "`adapt_stopping`, `target_weight` and `codes` count, which play no part otherwise; and the three "
        "weights above, `adapt_epochs` and `source_guard` play none, nor is anything frozen",
    )
    relabel: str = "each epoch"

    def __post_init__(self) -> None:
        check_int("adapt_epochs", self.adapt_epochs, least=1)
        for name in ("freeze_head", "source_guard", "with_source"):
            check_choice(name, getattr(self, name), (True, False))
        super().__post_init__()
        for term in SHOTObjective.terms:
            check_not_negative(f"{term}_weight", getattr(self, f"{term}_weight"))
        check_choice("confidence", self.confidence, CONFIDENCE)
        self.source_loss()

    def source_loss(self) -> SourceLoss:
        return SourceLoss(label_smoothing=self.label_smoothing)

    def weights(self) -> dict[str, float]:
        """The weights of the terms, by their names."""
        return {term: float(getattr(self, f"{term}_weight")) for term in SHOTObjective.terms}

    def adapt_loop(self) -> LoopSettings:
        if self.with_source:
            return super().adapt_loop()
        fixed_length = {"max_epochs": min(self.adapt_epochs, self.max_epochs), "keep": "last"}
        return self.loop(self.adapt_lr, self.adapt_patience, warmup_steps=self.warmup_steps, **fixed_length)


class SHOTObjective(Objective):
    r"""L = w_e (1/n) \sum_i H(p_i) - w_d H(\bar p) + w_l CE(p, \hat y), \bar p = (1/n) \sum_i p_i.

    Of batches with fewer than 8 rows H(\bar p) is left out. Validation watches the cross entropy of source rows, for
    the record: it does not say how well the target is learnt.

    weights : w_e, w_d and w_l, by the names in `terms`
    teacher : gives the new \hat y before an epoch, of rows as `row` numbers them; `labels` (n,) are the first
    """

    terms = ("entropy", "diversity", "label")

    def __init__(
        self, network: Network, weights: Mapping[str, float], teacher: Teacher, labels: Tensor, *, freeze_head: bool
    ) -> None:
        super().__init__()
        self.network, self.weights, self.teacher = network, dict(weights), teacher
        self.freeze_head = freeze_head
        self.labels: Tensor
        self.register_buffer("labels", labels)
        freeze(*network.code_modules(), network.head if freeze_head else network.head[-1])

    def start_epoch(self, epoch: int) -> None:
        new = self.teacher.labels(self.network, epoch)
        if new is not None:
            self.labels = new[0].to(self.labels.device)

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        logits = self.network.classify(batch["x"], batch.get("lengths"))
        p = logits.softmax(dim=-1)
        terms = {
            "entropy": mean_entropy_of(p),
            "diversity": diversity(p) if len(p) >= LEAST_FOR_DIVERSITY else p.new_zeros(()),
            "label": F.cross_entropy(logits, self.labels[batch["row"]]),
        }
        w = self.weights
        loss = w["entropy"] * terms["entropy"] - w["diversity"] * terms["diversity"] + w["label"] * terms["label"]
        return {"loss": loss, **terms}

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.network.classify(batch["x"], batch.get("lengths")), batch["y"])

    def identity(self) -> str:
        return repr((self.network.settings, self.weights, self.teacher, self.freeze_head))


@register(
    "shot",
    family="pseudo-labels",
    needs="source, target",
    reference="Liang, Hu and Feng 2020, Do we really need to access the source data? Source hypothesis transfer",
)
class SHOT(PseudoLabelMethod):
    """Labels by centroids of the target; features are trained to be certain and diverse under a fixed last layer."""

    Settings = SHOTSettings
    settings: SHOTSettings

    def source_for(self, model: SourceModel) -> SourceModel:
        return model.with_loss(self.settings.source_loss())

    def label(self, network: Network, target: Windows) -> PseudoLabels:
        seen = head_outputs(network, target)
        g = seen.z if self.settings.freeze_head else seen.hidden
        return shot_labels(g, seen.probabilities, self.settings.confidence)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        if self.settings.with_source:
            super()._adapt(target, info)
            return
        labels = self.pseudo_label(target)
        network = self.source.network if not any(self.settings.weights().values()) else self._moved(target, labels)
        self.classifier = network
        self.label_record = {"initial": labels, "final": self._label_with(network, target)}

    def _moved(self, target: Windows, labels: PseudoLabels) -> Network:
        """A copy of the source network trained on the target alone; the source's own if the guard holds it back."""
        settings, model = self.settings, self.source
        rows = window_rows(target.in_memory())
        rows["row"] = torch.arange(count(rows))
        objective = SHOTObjective(
            copy.deepcopy(model.network),
            settings.weights(),
            MethodAsTeacher(self, target),
            as_tensors(labels)[0],
            freeze_head=settings.freeze_head,
        )
        loop, validation = settings.adapt_loop(), labelled_rows(model.validation)
        trained = train(objective, rows, validation, loop, self.execution, seed=self.seed, phase="adapt")
        self.adapt_history["adapt"] = trained.history
        objective.load_state_dict(trained.weights)
        if settings.source_guard and self._lost_the_source(trained.history[-1]["validation_loss"]):
            return model.network
        return finalize(objective.network)

    def _lost_the_source(self, cross_entropy: float) -> bool:
        """Whether a model with this cross entropy on held-out source tells less than a guess, and once told more."""
        bound = max(math.log(self.n_classes), self._source_cross_entropy())
        held_back = cross_entropy > bound
        self.details["source_guard"] = {"held_back": held_back, "cross_entropy": cross_entropy, "bound": bound}
        if held_back:
            _log.info(
                "SHOT: source cross entropy %.3f, before or of a guess %.3f; the source model stays.",
                cross_entropy,
                bound,
            )
        return held_back

    def _source_cross_entropy(self) -> float:
        """Of the source model itself, on held-out source."""
        network, held_out = self.source.network, self.source.validation
        with self.on_device(network):
            p = class_probabilities(network, held_out.windows)
        return float(-np.log(np.maximum(p[np.arange(len(p)), held_out.y], _LEAST)).mean())
