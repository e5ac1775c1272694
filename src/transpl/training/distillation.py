"""Adaptation that learns the vote itself: every target window, with the probabilities the vote gave it."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn import functional as F

from transpl.network import Network
from transpl.training.adaptation import joined
from transpl.training.devices import Execution
from transpl.training.loop import History, LoopSettings, Objective, train
from transpl.training.rows import Rows
from transpl.training.source import freeze, ready, strip_prefix


class DistillationObjective(Objective):
    r"""L = - mean_S \sum_k [k = y] log p_k - mean_T \sum_k v_k log p_k.

    S are the source rows of a batch, T its target rows, v their votes. Encoder and head are trained; the codes, which
    the votes were made of, stay. Validation watches the cross entropy of source rows, for the record: it does not say
    how well the target is learnt.
    """

    terms = ("source_cross_entropy", "target_cross_entropy")

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        freeze(*network.code_modules())

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        log_p = self.network.classify(batch["x"], batch.get("lengths")).log_softmax(dim=-1)
        row_losses = -(batch["votes"] * log_p).sum(dim=1)
        target = batch["is_target"].to(row_losses)
        losses = [(rows * row_losses).sum() / rows.sum().clamp(min=1) for rows in (1 - target, target)]
        return {"loss": losses[0] + losses[1], **dict(zip(self.terms, losses, strict=True))}

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.network.classify(batch["x"], batch.get("lengths")), batch["y"])

    def identity(self) -> str:
        return repr(self.network.settings)


def distil_network(
    network: Network,
    source: Rows,
    target: Rows,
    validation: Rows,
    loop: LoopSettings,
    execution: Execution,
    *,
    seed: int,
) -> tuple[Network, History]:
    """Fine-tune a copy of `network`.

    source : rows (x, y); target : rows (x, votes), votes (n, K); validation : source rows (x, y)
    """
    objective = DistillationObjective(copy.deepcopy(network))
    votes = target["votes"]
    unlabelled = {**target, "y": votes.argmax(dim=1), "confidence": torch.ones(len(votes))}
    true = F.one_hot(source["y"], votes.shape[1]).to(votes)
    rows = {**joined(source, unlabelled), "votes": torch.cat([true, votes])}
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="adapt")
    adapted = objective.network
    adapted.load_state_dict(strip_prefix(trained.weights, "network."))
    return ready(adapted), trained.history
