"""Adaptation phase: source rows with labels, target rows with trusted pseudo-labels (paper, section 4.2)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn import functional as F

from transpl.errors import one_of
from transpl.network import Network
from transpl.network.quantizer import perplexity
from transpl.training.devices import Execution
from transpl.training.loop import History, LoopSettings, Objective, train
from transpl.training.loss_weights import LearnableWeights
from transpl.training.rows import Rows, count, take
from transpl.training.source import strip_prefix

STOPPING = ("source", "labels")


class AdaptationObjective(Objective):
    r"""L_trg = \lambda_1 (CE_source + CE_target) + \lambda_2 (L_code + L_rec), \lambda learnable.

    CE_target is taken over the `top_ratio` most confident target rows of the batch (at least one). Of several
    devices each chooses among, and averages over, the rows of its own part of the batch.
    Validation watches CE + L_code + L_rec, without weights, of the rows it is given.
    """

    def __init__(self, network: Network, top_ratio: float) -> None:
        super().__init__()
        self.network = network
        self.top_ratio = top_ratio
        self.weights = LearnableWeights(2)

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        output = self.network(batch["x"], batch.get("lengths"))
        is_target = batch["is_target"]
        row_losses = F.cross_entropy(output.logits, batch["y"], reduction="none")
        trusted = most_confident(batch["confidence"][is_target], self.top_ratio)
        source = _mean(row_losses[~is_target])
        target = _mean(row_losses[is_target][trusted])
        vq = output.code_loss + output.reconstruction_loss
        return {
            "loss": self.weights(torch.stack([source + target, vq])),
            "source_cross_entropy": source,
            "target_cross_entropy": target,
            "code": output.code_loss,
            "reconstruction": output.reconstruction_loss,
            "coarse_perplexity": perplexity(output.coarse_codes, self.network.settings.n_coarse),
        }

    def risk(self, batch: Rows) -> Tensor:
        output = self.network(batch["x"], batch.get("lengths"))
        return F.cross_entropy(output.logits, batch["y"]) + output.code_loss + output.reconstruction_loss

    def identity(self) -> str:
        return repr((self.network.settings, self.top_ratio))


def adapt_network(
    network: Network,
    source: Rows,
    target: Rows,
    validation: Rows,
    top_ratio: float,
    loop: LoopSettings,
    execution: Execution,
    *,
    seed: int,
    stopping: str = "source",
) -> tuple[Network, History]:
    """Fine-tune a copy of `network`.

    source : rows (x, y); target : rows (x, y = pseudo-label, confidence); validation : source rows (x, y)
    stopping : validation watches held-out "source" rows only (the paper), or also the `top_ratio` most confident
        target rows with their pseudo-"labels", so that training goes on while it learns them
    """
    one_of("stopping", stopping, STOPPING)
    objective = AdaptationObjective(copy.deepcopy(network), top_ratio)
    rows = joined(source, target)
    if stopping == "labels":
        validation = joined(validation, take(target, most_confident(target["confidence"], top_ratio)))
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="adapt")
    adapted = objective.network
    adapted.load_state_dict(strip_prefix(trained.weights, "network."))
    return adapted.cpu().eval(), trained.history


def joined(source: Rows, target: Rows) -> Rows:
    """One set of rows: source, then target, told apart by `is_target`."""
    n_source, n_target = count(source), count(target)
    time = max(source["x"].shape[2], target["x"].shape[2])
    rows = {
        "x": torch.cat([_pad(source["x"], time), _pad(target["x"], time)]),
        "y": torch.cat([source["y"], target["y"]]),
        "confidence": torch.cat([torch.ones(n_source, dtype=torch.float32), target["confidence"]]),
        "is_target": torch.arange(n_source + n_target) >= n_source,
    }
    lengths = torch.cat([_lengths(source), _lengths(target)])
    return {**rows, "lengths": lengths} if bool((lengths < time).any()) else rows


def most_confident(confidence: Tensor, ratio: float) -> Tensor:
    """Indices of the `ratio` share of rows with the highest confidence, at least one if there are any."""
    n = len(confidence)
    return torch.argsort(confidence, descending=True, stable=True)[: max(1, int(ratio * n)) if n else 0]


def _mean(losses: Tensor) -> Tensor:
    # An empty sum keeps the graph and is zero, where an empty mean would be NaN.
    return losses.sum() / max(1, len(losses))


def _pad(x: Tensor, time: int) -> Tensor:
    return F.pad(x, (0, time - x.shape[2]))


def _lengths(rows: Rows) -> Tensor:
    return rows.get("lengths", torch.full((count(rows),), rows["x"].shape[2]))
