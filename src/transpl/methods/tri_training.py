"""Asymmetric tri-training: two heads label the target for a third (Saito et al. 2017)."""

from __future__ import annotations

import copy
import logging
import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_fraction, check_int, check_not_negative
from transpl.methods.labelling import agreed, candidate_share, tri_training_labels
from transpl.nn import Classifier, Network, Objective, Rows, freeze, in_batches, label_tensor, take
from transpl.nn.losses import overlap
from transpl.windows import LearntRows, PseudoLabels, Windows

_DRAWS = 3  # keeps the draws of candidates apart from the order of the batches

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TriTraining:
    """What is minimised when: first `pretrain_epochs` on the source, then `rounds` of `round_epochs`.

    threshold : how sure one of two agreeing heads must be
    overlap_weight : lambda, of what the two heads have in common
    target_weight : alpha, of target rows
    """

    pretrain_epochs: int = 5
    rounds: int = 20
    round_epochs: int = 5
    threshold: float = 0.9
    overlap_weight: float = 0.01
    target_weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("pretrain_epochs", "rounds", "round_epochs"):
            check_int(name, getattr(self, name), least=1)
        check_fraction("threshold", self.threshold, zero=True)
        check_not_negative("overlap_weight", self.overlap_weight)
        check_not_negative("target_weight", self.target_weight)

    @property
    def epochs(self) -> int:
        """How many there are in all."""
        return self.pretrain_epochs + self.rounds * self.round_epochs

    def starting(self, epoch: int) -> int | None:
        """The round k = 0..rounds-1 that begins with this epoch, if one does."""
        k, into = divmod(epoch - self.pretrain_epochs, self.round_epochs)
        return k if k >= 0 and into == 0 else None


class TriNetwork(Classifier):
    """Encoder F and predictor F_t of a trained network, with two new heads F_1, F_2 of the predictor's shape.

    The heads are drawn one after the other, for equal ones would never come apart.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.first, self.second = _new_like(network.head), _new_like(network.head)

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """F(x): x (B, D, T) -> z (B, d)."""
        return self.network.features(x, lengths)

    def logits(self, z: Tensor) -> Tensor:
        """F_t(z): z (B, d) -> class logits (B, K)."""
        return self.network.head(z)

    def opinions(self, windows: Windows) -> NDArray[np.float64]:
        """p_1 and p_2 of every window, (2, n, K)."""

        def both(x: Tensor, lengths: Tensor | None) -> Tensor:
            z = self.network.features(x, lengths)
            return torch.stack([self.first(z), self.second(z)], dim=1).cpu().double().softmax(dim=-1)

        return in_batches(self, windows, both).swapaxes(0, 1)


class TriTrainingObjective(Objective):
    r"""L = L_lab + \alpha L_t; T_l are the target rows that F_1 and F_2 agree on, of a random share of all.

    L_lab = (\sum_S + \alpha \sum_{T_l}) (CE(F_1) + CE(F_2)) / |S u T_l| + \lambda \sum_ij |W_1 W_2^T|_ij
    L_t = mean of CE(F_t) over T_l

    W are the first layers' weights. Round k draws (k + 1) / rounds of the target rows and makes T_l anew. While T_l
    is empty, before the rounds or where the heads agree on nothing, L_t is the mean over S instead: F_t would be left
    behind by an encoder that goes on learning. A batch of a round without rows of T_l has L_t = 0.
    The publication takes L_lab and L_t in turns, each in a step of its own; here every step takes their sum.

    target : the windows that rows of a batch with `is_target` belong to, by `target_row`
    """

    terms = ("labelling_cross_entropy", "overlap", "predictor_cross_entropy")

    def __init__(self, model: TriNetwork, settings: TriTraining, target: Windows, seed: int) -> None:
        super().__init__()
        self.model, self.settings, self.target, self.seed = model, settings, target, seed
        self.labels: Tensor
        self.chosen: Tensor
        self.first_opinions: Tensor
        n, K = len(target), model.network.settings.n_classes
        self.register_buffer("labels", torch.zeros(n, dtype=torch.int64))
        self.register_buffer("chosen", torch.zeros(n, dtype=torch.bool))  # T_l
        self.register_buffer("first_opinions", torch.full((2, n, K), math.nan, dtype=torch.float64))  # until round 0
        freeze(*model.network.code_modules())

    def start_epoch(self, epoch: int) -> None:
        k = self.settings.starting(epoch)
        if k is not None:
            self._label(k)

    def _label(self, k: int) -> None:
        """Make T_l anew for round k."""
        p1, p2 = opinions = self.model.opinions(self.target)
        chosen = candidates(len(self.target), k, self.settings.rounds, self.seed)
        chosen &= agreed(p1, p2, self.settings.threshold)
        if not chosen.any():
            _log.info("ATT: in round %d the heads agree on no row; the predictor learns from the source.", k)
        device = self.labels.device
        self.labels = label_tensor(tri_training_labels(p1, p2).labels).to(device)
        self.chosen = torch.from_numpy(chosen).to(device)
        if k == 0:
            self.first_opinions = torch.from_numpy(opinions.copy()).to(device)

    def first_labels(self) -> PseudoLabels | None:
        """The labels of all target rows that round 0 gave; None if training ended before it."""
        if bool(self.first_opinions.isnan().any()):
            return None
        return tri_training_labels(*self.first_opinions.cpu().numpy())

    def learnt_rows(self) -> LearntRows:
        """T_l as it is."""
        rows = np.flatnonzero(self.chosen.cpu().numpy())
        return LearntRows(rows, self.labels.cpu().numpy()[rows])

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        batch = self._labelled(batch)
        is_target, row = batch["is_target"], batch["target_row"]
        source, target = ~is_target, is_target & self.chosen[row]
        y = torch.where(is_target, self.labels[row], batch["y"])
        z = self.model.network.features(batch["x"], batch.get("lengths"))
        alpha, heads = self.settings.target_weight, self.model
        by_both = _row_losses(heads.first, z, y) + _row_losses(heads.second, z, y)
        labelling = ((source + alpha * target) * by_both).sum() / _count(source | target)
        taught, strength = (target, alpha) if bool(self.chosen.any()) else (source, 1.0)
        predictor = (taught * _row_losses(heads.network.head, z, y)).sum() / _count(taught)
        common = overlap(_first_weights(heads.first), _first_weights(heads.second))
        return {
            "loss": labelling + self.settings.overlap_weight * common + strength * predictor,
            "labelling_cross_entropy": labelling,
            "overlap": common,
            "predictor_cross_entropy": predictor,
            "coverage": self.chosen.float().mean(),
        }

    def _labelled(self, batch: Rows) -> Rows:
        """The rows of S and T_l; all if there are none, for the encoder needs some."""
        learnt = ~batch["is_target"] | self.chosen[batch["target_row"]]
        return take(batch, learnt) if bool(learnt.any()) else batch

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.model.classify(batch["x"], batch.get("lengths")), batch["y"])

    def identity(self) -> str:
        return repr((self.model.network.settings, self.settings, self.seed))


def candidates(n: int, k: int, rounds: int, seed: int) -> NDArray[np.bool_]:
    """The target rows that round k draws, a function of (seed, k); (n,), at least one."""
    size = max(1, round(candidate_share(k, rounds) * n))
    chosen = np.zeros(n, np.bool_)
    chosen[np.random.default_rng([seed, k, _DRAWS]).permutation(n)[:size]] = True
    return chosen


def _new_like(head: nn.Sequential) -> nn.Sequential:
    other = copy.deepcopy(head)
    for layer in other.modules():
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    return other


def _first_weights(head: nn.Sequential) -> Tensor:
    """W, (units, d)."""
    layer = head[0]
    assert isinstance(layer, nn.Linear)
    return layer.weight


def _row_losses(head: nn.Module, z: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(head(z), y, reduction="none")


def _count(rows: Tensor) -> Tensor:
    # At least 1: the mean over no rows is then 0, with a graph.
    return rows.sum().clamp(min=1)
