"""Adaptation phase: source rows with labels, target rows with trusted pseudo-labels (paper, section 4.2)."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_fraction
from transpl._utils.shares import at_most
from transpl.nn.devices import Execution, own_gradients
from transpl.nn.loop import History, LoopSettings, Objective, train
from transpl.nn.loss_weights import LearnableWeights
from transpl.nn.model import Network
from transpl.nn.quantizer import perplexity
from transpl.nn.rows import Rows, count, take
from transpl.nn.source import SourceLoss, class_and_code_losses, freeze, ready, strip_prefix

STOPPING = ("source", "labels")
CERTAIN = math.inf  # the confidence of a label that is known


class Teacher(Protocol):
    """What changes from epoch to epoch; by itself nothing does. Its repr tells apart what changes differently."""

    def weight(self, epoch: int) -> float:
        """The weight alpha of the target's cross entropy."""

    def labels(self, network: Network, epoch: int) -> tuple[Tensor, Tensor] | None:
        """New labels (n,) and confidences (n,) of all target rows, or None to keep the old ones."""


@dataclass(frozen=True)
class AdaptationSettings:
    """top_ratio : the share of a batch's target rows, the most confident, that is learnt from
    stopping : validation watches held-out "source" rows only (the paper), or also the `top_ratio` most confident
        target rows with their pseudo-"labels", so that training goes on while it learns them
    codes : train the codes too (L_code + L_rec of all rows)
    """

    top_ratio: float = 0.5
    stopping: str = "source"
    codes: bool = True

    def __post_init__(self) -> None:
        check_choice("stopping", self.stopping, STOPPING)
        check_choice("codes", self.codes, (True, False))
        check_fraction("top_ratio", self.top_ratio, one=True)


class AdaptationObjective(Objective):
    r"""L_trg = \lambda_1 (CE_source + \alpha CE_target) + \lambda_2 (L_code + L_rec), \lambda learnable.

    CE_target is taken over the `top_ratio` most confident target rows of the batch (at least one, and at least those
    whose label is CERTAIN). Of several devices each chooses among, and averages over, the rows of its own part of the
    batch.
    Validation watches \lambda_1 CE + \lambda_2 (L_code + L_rec) of the rows it is given, as the authors' code does:
    while the weights still settle, it falls, and training goes on. Without them, the source's own cross entropy, low
    from the start, ended adaptation before the network had learnt its pseudo-labels.

    teacher : sets alpha (else 1) and gives new labels before an epoch; these are kept by row
    target : the rows that it labels, with their first labels
    """

    terms = ("source_cross_entropy", "target_cross_entropy", "code", "reconstruction")

    def __init__(
        self,
        network: Network,
        settings: AdaptationSettings,
        teacher: Teacher | None = None,
        target: Rows | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.settings = settings
        self.teacher = teacher
        self.target_weight = 1.0
        self.weights = LearnableWeights(2 if settings.codes else 1)
        self.labels: Tensor
        self.confidence: Tensor
        if target is not None:
            self.register_buffer("labels", target["y"].clone())
            self.register_buffer("confidence", target["confidence"].clone())
        if not settings.codes:
            freeze(*network.code_modules())

    def start_epoch(self, epoch: int) -> None:
        if self.teacher is None:
            return
        self.target_weight = self.teacher.weight(epoch)
        new = self.teacher.labels(self.network, epoch)
        if new is not None:
            self.labels, self.confidence = (values.to(self.labels.device) for values in new)

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        is_target = batch["is_target"]
        y, confidence = self._labels(batch)
        logits, vq, recorded = self._pass(batch)
        row_losses = F.cross_entropy(logits, y, reduction="none")
        trusted = most_confident(confidence[is_target], self.settings.top_ratio)
        source = _mean(row_losses[~is_target])
        target = _mean(row_losses[is_target][trusted])
        learnt = source + target if self.target_weight == 1 else source + self.target_weight * target
        return {
            "loss": self._weighed(learnt, vq),
            "source_cross_entropy": source,
            "target_cross_entropy": target,
            **vq,
            **recorded,
        }

    def _labels(self, batch: Rows) -> tuple[Tensor, Tensor]:
        """Labels and confidence of a batch, (B,): those it came with, or the target's newest."""
        if self.teacher is None:
            return batch["y"], batch["confidence"]
        is_target, row = batch["is_target"], batch["target_row"]
        return (
            torch.where(is_target, self.labels[row], batch["y"]),
            torch.where(is_target, self.confidence[row], batch["confidence"]),
        )

    def _pass(self, batch: Rows) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Logits (B, K); if codes are trained also their losses, and what is worth recording about them."""
        if not self.settings.codes:
            return self.network.classify(batch["x"], batch.get("lengths")), {}, {}
        output = self.network(batch["x"], batch.get("lengths"))
        losses = {"code": output.code_loss, "reconstruction": output.reconstruction_loss}
        used = perplexity(output.coarse_codes, self.network.settings.n_coarse)
        return output.logits, losses, {"coarse_perplexity": used}

    def risk(self, batch: Rows) -> Tensor:
        terms = class_and_code_losses(self.network, batch, SourceLoss(self.settings.codes)).terms
        return self._weighed(terms.pop("cross_entropy"), terms)

    def _weighed(self, cross_entropy: Tensor, codes: dict[str, Tensor]) -> Tensor:
        r"""\lambda_1 CE + \lambda_2 (L_code + L_rec); ()."""
        code_loss = [reduce(torch.add, codes.values())] if codes else []
        return self.weights(torch.stack([cross_entropy, *code_loss]))

    def identity(self) -> str:
        return repr((self.network.settings, self.settings, self.teacher))


@own_gradients()
def adapt_network(
    network: Network,
    source: Rows,
    target: Rows,
    validation: Rows,
    settings: AdaptationSettings,
    loop: LoopSettings,
    execution: Execution,
    *,
    seed: int,
    teacher: Teacher | None = None,
) -> tuple[Network, History]:
    """Fine-tune a copy of `network`.

    source : rows (x, y); target : rows (x, y = pseudo-label, confidence); validation : source rows (x, y)
    teacher : see `AdaptationObjective`
    """
    objective = AdaptationObjective(copy.deepcopy(network), settings, teacher, target)
    rows = joined(source, target)
    if settings.stopping == "labels":
        validation = joined(validation, take(target, most_confident(target["confidence"], settings.top_ratio)))
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="adapt")
    adapted = objective.network
    adapted.load_state_dict(strip_prefix(trained.weights, "network."))
    return ready(adapted), trained.history


def joined(source: Rows, target: Rows) -> Rows:
    """One set of rows: source, then target, told apart by `is_target`."""
    n_source, n_target = count(source), count(target)
    time = max(source["x"].shape[2], target["x"].shape[2])
    rows = {
        "x": torch.cat([_pad(source["x"], time), _pad(target["x"], time)]),
        "y": torch.cat([source["y"], target["y"]]),
        "confidence": torch.cat([torch.ones(n_source, dtype=torch.float32), target["confidence"]]),
        "is_target": torch.arange(n_source + n_target) >= n_source,
        "target_row": (torch.arange(n_source + n_target) - n_source).clamp(min=0),
    }
    lengths = torch.cat([_lengths(source), _lengths(target)])
    return {**rows, "lengths": lengths} if bool((lengths < time).any()) else rows


def most_confident(confidence: Tensor, ratio: float) -> Tensor:
    """Indices of the `ratio` share of rows with the highest confidence, at least one and all that are CERTAIN."""
    n, certain = len(confidence), int((confidence == CERTAIN).sum())
    return torch.argsort(confidence, descending=True, stable=True)[: max(1, certain, at_most(ratio, n)) if n else 0]


def _mean(losses: Tensor) -> Tensor:
    # An empty sum keeps the graph and is zero, where an empty mean would be NaN.
    return losses.sum() / max(1, len(losses))


def _pad(x: Tensor, time: int) -> Tensor:
    return F.pad(x, (0, time - x.shape[2]))


def _lengths(rows: Rows) -> Tensor:
    return rows.get("lengths", torch.full((count(rows),), rows["x"].shape[2]))
