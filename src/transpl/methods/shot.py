"""SHOT: trains the features under a fixed last layer, on target rows alone (Liang et al. 2020)."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.special import entr, softmax
from torch import Tensor
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_int, check_not_negative
from transpl.methods.method_settings import setting
from transpl.methods.pseudo_labelling import (
    MethodAsTeacher,
    PseudoLabelMethod,
    PseudoLabelSettings,
    as_tensors,
    check_features,
    check_probabilities,
    cosine_distances,
    refined_centroids,
    unit_rows,
)
from transpl.methods.registry import register
from transpl.methods.source_model import SourceModel
from transpl.nn import (
    Backbone,
    LoopSettings,
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

CONFIDENCE = ("distance", "entropy")
TEMPERATURE = 0.1
MIN_ROWS_FOR_DIVERSITY = 8  # fewer say nothing about how often classes occur

_MIN_PROBABILITY = 1e-12  # where a float32 softmax gives 0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SHOTSettings(PseudoLabelSettings):
    """Settings of `SHOT`."""

    entropy_weight: float = setting(
        1.0, "of the mean entropy of predictions; if this and the next two are 0, the source model is kept"
    )
    diversity_weight: float = setting(
        1.0, "of the entropy of the mean prediction; assumes that classes are about equally frequent in the target"
    )
    label_weight: float = setting(0.3, "of the cross entropy with SHOT's labels")
    adapt_epochs: int = setting(
        15,
        "the length of the training, as no validation says when to stop; at most `max_epochs`",
    )
    freeze_head: bool = setting(
        False,
        "freeze the whole head, and compare rows by z; else only its last layer, and compare by its input",
    )
    confidence: str = setting("distance", 'by "distance" to the centroids, or by the "entropy" of p')
    source_guard: bool = setting(
        True,
        "keep the source model if the adapted one is worse on held-out source than the source model and "
        "than a uniform guess, CE > ln K",
    )
    label_smoothing: float = setting(0.0, "of the source phase; the published 0.1 needs a separate source model")
    with_source: bool = setting(
        False,
        "learn SHOT's labels as the other methods learn theirs, with source rows. Then `top_ratio`, "
        "`adapt_stopping`, `target_weight` and `codes` apply, which are ignored otherwise; the three "
        "weights above, `adapt_epochs` and `source_guard` are ignored, and nothing is frozen",
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
    r"""The loss of `SHOT`. Batches with fewer than 8 rows have no diversity term.

    Validation watches the cross entropy of source rows, for the record only: it does not tell how well the target is
    learnt.

    weights : of the terms, by the names in `terms`
    teacher : gives new labels before an epoch, indexed by `row`; `labels` (n,) are the first
    """

    terms = ("entropy", "diversity", "label")

    def __init__(
        self, network: Backbone, weights: Mapping[str, float], teacher: Teacher, labels: Tensor, *, freeze_head: bool
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
            "diversity": diversity(p) if len(p) >= MIN_ROWS_FOR_DIVERSITY else p.new_zeros(()),
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
    """Labels by centroids of the target; features are trained to be certain and diverse under a fixed last layer.

        L = w_e mean_i H(p_i) - w_d H(mean_i p_i) + w_l CE(p, y)

    p are the predictions for target rows, y their labels by the nearest centroid, renewed before each epoch.
    """

    Settings = SHOTSettings
    settings: SHOTSettings

    def source_for(self, model: SourceModel) -> SourceModel:
        return model.with_loss(self.settings.source_loss())

    def label(self, network: Backbone, target: Windows) -> PseudoLabels:
        seen = head_outputs(network, target)
        g = seen.z if self.settings.freeze_head else seen.hidden
        return shot_labels(g, seen.probabilities, self.settings.confidence)

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        if self.settings.with_source:
            super()._adapt(target, info)
            return
        labels = self.pseudo_label(target)
        network = (
            self.source.network
            if not any(self.settings.weights().values())
            else self._trained_on_target(target, labels)
        )
        self.classifier = network
        self.label_record = {"initial": labels, "final": self._label_with(network, target)}

    def _trained_on_target(self, target: Windows, labels: PseudoLabels) -> Backbone:
        """A copy of the source network trained on the target alone, or the source network if the guard keeps it."""
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
        """Whether this cross entropy on held-out source is worse than a guess, and than that of the source model."""
        network, held_out = self.source.network, self.source.validation
        with self.on_device(network):
            p = class_probabilities(network, held_out.windows)
        before = float(-np.log(np.maximum(p[np.arange(len(p)), held_out.y], _MIN_PROBABILITY)).mean())
        bound = max(math.log(self.n_classes), before)
        held_back = cross_entropy > bound
        self.details["source_guard"] = {"held_back": held_back, "cross_entropy": cross_entropy, "bound": bound}
        if held_back:
            _log.info("SHOT: source cross entropy %.3f is above %.3f; the source model is kept.", cross_entropy, bound)
        return held_back


def shot_labels(g: ArrayLike, p: ArrayLike, confidence: str = "distance") -> PseudoLabels:
    r"""\hat y_i = argmin_k D_ik, D the cosine distance of [g_i, 1] to the refined centroids; q_i = softmax(-D_i / 0.1).

    g : (n, d) features; p : (n, K) of the head
    confidence : "distance" takes max_k q_ik, "entropy" takes 1 - H(p_i) / ln K
    returns : labels among argmax p, with probabilities q
    """
    features = check_features(g)
    unit = unit_rows(np.hstack([features, np.ones((len(features), 1))]))
    head = check_probabilities(p, len(unit))
    D = cosine_distances(unit, refined_centroids(unit, head))
    q = softmax(-D / TEMPERATURE, axis=1)
    if confidence == "distance":
        return PseudoLabels(D.argmin(axis=1), q.max(axis=1), q)
    return PseudoLabels(D.argmin(axis=1), 1.0 - entr(head).sum(axis=1) / np.log(max(head.shape[1], 2)), q)
