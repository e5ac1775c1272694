"""ATT: asymmetric tri-training, two heads label the target for a third (Saito et al. 2017)."""

from __future__ import annotations

import copy
import logging
import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_fraction, check_int, check_not_negative
from transpl.methods.method_settings import AdaptSettings, setting
from transpl.methods.network_method import NetworkMethod
from transpl.methods.pseudo_labelling import check_probabilities
from transpl.methods.registry import register
from transpl.nn import (
    Backbone,
    Classifier,
    LoopSettings,
    Objective,
    Rows,
    finalize,
    freeze,
    in_batches,
    join_domains,
    label_tensor,
    labelled_rows,
    seeded_module,
    take,
    train,
    window_rows,
)
from transpl.nn.losses import weight_overlap
from transpl.windows import LearntRows, PseudoLabels, TargetInfo, Windows

_CANDIDATES = 3  # keeps the random choice of candidates apart from the order of the batches

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ATTSettings(AdaptSettings):
    """Settings of `ATT`."""

    pretrain_epochs: int = setting(5, "on the source alone, before the two heads label anything")
    rounds: int = setting(20, "how often the target is labelled")
    round_epochs: int = setting(5, "epochs of each round")
    threshold: float = setting(
        0.9,
        "a target row is learnt from if both heads agree and one is more confident than this",
    )
    overlap_weight: float = setting(0.01, "of the penalty that keeps the two heads apart")
    target_weight: float = setting(1.0, "of target rows; 0 keeps the source model")

    def __post_init__(self) -> None:
        for name in ("pretrain_epochs", "rounds", "round_epochs"):
            check_int(name, getattr(self, name), least=1)
        check_fraction("threshold", self.threshold, zero=True)
        check_not_negative("overlap_weight", self.overlap_weight)
        check_not_negative("target_weight", self.target_weight)
        super().__post_init__()

    def round_starting(self, epoch: int) -> int | None:
        """The round k = 0..rounds-1 that starts with this epoch, if one does."""
        k, epoch_of_round = divmod(epoch - self.pretrain_epochs, self.round_epochs)
        return k if k >= 0 and epoch_of_round == 0 else None

    def adapt_loop(self) -> LoopSettings:
        """A training of fixed length: the source's risk says nothing about a predictor that leaves the source."""
        epochs = min(self.pretrain_epochs + self.rounds * self.round_epochs, self.max_epochs)
        return self.loop(
            self.adapt_lr, self.adapt_patience, warmup_steps=self.warmup_steps, max_epochs=epochs, keep="last"
        )


class TriNetwork(Classifier):
    """Encoder F and predictor F_t of a trained network, with two new heads F_1 and F_2 of the predictor's shape.

    The two heads get different random weights; equal ones would stay equal.
    """

    def __init__(self, network: Backbone) -> None:
        super().__init__()
        self.network = network
        self.first, self.second = _new_like(network.head), _new_like(network.head)

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """F(x): x (B, D, T) -> z (B, d)."""
        return self.network.features(x, lengths)

    def logits(self, z: Tensor) -> Tensor:
        """F_t(z): z (B, d) -> class logits (B, K)."""
        return self.network.head(z)

    def head_probabilities(self, windows: Windows) -> NDArray[np.float64]:
        """p_1 and p_2 of every window, (2, n, K)."""

        def both(x: Tensor, lengths: Tensor | None) -> Tensor:
            z = self.network.features(x, lengths)
            return torch.stack([self.first(z), self.second(z)], dim=1).cpu().double().softmax(dim=-1)

        return in_batches(self, windows, both).swapaxes(0, 1)


class TriTrainingObjective(Objective):
    r"""L = L_lab + \alpha L_t; T_l are the target rows that F_1 and F_2 agree on, of a random share of all.

    L_lab = (\sum_S + \alpha \sum_{T_l}) (CE(F_1) + CE(F_2)) / |S u T_l| + \lambda \sum_ij |W_1 W_2^T|_ij
    L_t = mean of CE(F_t) over T_l

    W are the weights of the heads' first layers. Round k draws (k + 1) / rounds of the target rows and selects T_l
    again. While T_l is empty, before the rounds or where the heads never agree, L_t is the mean over S instead, so that
    F_t keeps up with the encoder. In a batch without rows of T_l, L_t is 0.

    The publication alternates steps on L_lab and L_t; here every step minimises their sum.

    target : the windows that rows with `is_target` belong to, by `target_row`
    """

    terms = ("labelling_cross_entropy", "overlap", "predictor_cross_entropy")

    def __init__(self, model: TriNetwork, settings: ATTSettings, target: Windows) -> None:
        super().__init__()
        self.model, self.settings, self.target = model, settings, target
        self.labels: Tensor
        self.chosen: Tensor
        self.first_probabilities: Tensor
        n, K = len(target), model.network.settings.n_classes
        self.register_buffer("labels", torch.zeros(n, dtype=torch.int64))
        self.register_buffer("chosen", torch.zeros(n, dtype=torch.bool))  # T_l
        unknown = torch.full((2, n, K), math.nan, dtype=torch.float64)  # until round 0
        self.register_buffer("first_probabilities", unknown)
        freeze(*model.network.code_modules())

    def start_epoch(self, epoch: int) -> None:
        """Label the target and select T_l again where a round starts."""
        k = self.settings.round_starting(epoch)
        if k is None:
            return
        p1, p2 = probabilities = self.model.head_probabilities(self.target)
        chosen = candidates(len(self.target), k, self.settings.rounds, self.settings.random_state)
        chosen &= agreed(p1, p2, self.settings.threshold)
        if not chosen.any():
            _log.info("ATT: in round %d the heads agree on no row; the predictor learns from the source.", k)
        device = self.labels.device
        self.labels = label_tensor(tri_training_labels(p1, p2).labels).to(device)
        self.chosen = torch.from_numpy(chosen).to(device)
        if k == 0:
            self.first_probabilities = torch.from_numpy(probabilities.copy()).to(device)

    def first_labels(self) -> PseudoLabels | None:
        """The labels that round 0 gave to all target rows; None if training ended before it."""
        if bool(self.first_probabilities.isnan().any()):
            return None
        return tri_training_labels(*self.first_probabilities.cpu().numpy())

    def learnt_rows(self) -> LearntRows:
        """The current T_l."""
        rows = np.flatnonzero(self.chosen.cpu().numpy())
        return LearntRows(rows, self.labels.cpu().numpy()[rows])

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        # S and T_l only; but all rows if there are none of these, since the encoder needs some.
        used = ~batch["is_target"] | self.chosen[batch["target_row"]]
        batch = take(batch, used) if bool(used.any()) else batch
        is_target, row = batch["is_target"], batch["target_row"]
        source, target = ~is_target, is_target & self.chosen[row]
        y = torch.where(is_target, self.labels[row], batch["y"])
        z = self.model.network.features(batch["x"], batch.get("lengths"))

        def row_losses(head: nn.Module) -> Tensor:
            return F.cross_entropy(head(z), y, reduction="none")

        alpha, model = self.settings.target_weight, self.model
        by_both = row_losses(model.first) + row_losses(model.second)
        labelling = ((source + alpha * target) * by_both).sum() / _count(source | target)
        learnt, weight = (target, alpha) if bool(self.chosen.any()) else (source, 1.0)
        predictor = (learnt * row_losses(model.network.head)).sum() / _count(learnt)
        common = weight_overlap(_first_weights(model.first), _first_weights(model.second))
        return {
            "loss": labelling + self.settings.overlap_weight * common + weight * predictor,
            "labelling_cross_entropy": labelling,
            "overlap": common,
            "predictor_cross_entropy": predictor,
            "coverage": self.chosen.float().mean(),
        }

    def risk(self, batch: Rows) -> Tensor:
        return F.cross_entropy(self.model.classify(batch["x"], batch.get("lengths")), batch["y"])

    def identity(self) -> str:
        return repr((self.model.network.settings, self.settings))


@register(
    "att",
    family="pseudo-labels",
    needs="source, target",
    reference="Saito et al. 2017, Asymmetric tri-training for unsupervised domain adaptation",
)
class ATT(NetworkMethod):
    """Two heads label what they agree on, a third learns from these labels alone.

        L = CE(F_1) + CE(F_2) on source and labelled rows + w_o |W_1 W_2^T| + CE(F_t) on labelled rows

    The third head F_t predicts. It starts as the trained head of the source model, which fits the encoder, instead of
    random weights. After `adapt`, `label_record` holds both heads' labels of all target rows: "initial" after the
    epochs on the source, and "final" unless training ended with them. The history's "coverage" is the share of target
    rows that is learnt from, and `learnt_rows` are those of the last round.
    """

    Settings = ATTSettings
    settings: ATTSettings

    def pseudo_label(self, target: Windows) -> PseudoLabels:
        """Label windows by the two heads; before there are any, by the source model."""
        if not isinstance(self.classifier, TriNetwork):
            return super().pseudo_label(target)
        self.check_target(target)
        with self.on_device(self.classifier):
            return tri_training_labels(*self.classifier.head_probabilities(target))

    def _adapt(self, target: Windows, info: TargetInfo) -> None:
        if self.settings.target_weight == 0:
            self.classifier = self.source.network
            self.label_record = {"initial": self.pseudo_label(target)}
            return
        objective = self._objective(target)
        trained = train(
            objective,
            join_domains(labelled_rows(self.source.source), _unlabelled(target)),
            labelled_rows(self.source.validation),
            self.settings.adapt_loop(),
            self.execution,
            seed=self.seed,
            phase="adapt",
        )
        objective.load_state_dict(trained.weights)
        self.adapt_history["adapt"] = trained.history
        self.classifier = finalize(objective.model)
        first, last = objective.first_labels(), self.pseudo_label(target)
        self.label_record = {"initial": last} if first is None else {"initial": first, "final": last}
        self.learnt_rows = objective.learnt_rows()

    def _objective(self, target: Windows) -> TriTrainingObjective:
        model = seeded_module(self.seed + 1, TriNetwork, copy.deepcopy(self.source.network))
        return TriTrainingObjective(model, self.settings, target.in_memory())


def agreed(p1: ArrayLike, p2: ArrayLike, threshold: float = 0.9) -> NDArray[np.bool_]:
    r"""argmax p1_i = argmax p2_i and max(max_k p1_ik, max_k p2_ik) > threshold; p1, p2 (n, K), returns (n,)."""
    first, second = check_probabilities(p1), check_probabilities(p2)
    return _same_class(first, second) & (np.maximum(first, second).max(axis=1) > threshold)


def tri_training_labels(p1: ArrayLike, p2: ArrayLike) -> PseudoLabels:
    r"""\hat y_i = argmax_k (p1_ik + p2_ik); confidence max(max_k p1_ik, max_k p2_ik) if both agree, else 0.

    p1, p2 : (n, K) of the two labelling heads
    returns : a label for every row, with probabilities (p1 + p2) / 2
    """
    first, second = check_probabilities(p1), check_probabilities(p2)
    mean, larger = (first + second) / 2, np.maximum(first, second).max(axis=1)
    return PseudoLabels(mean.argmax(axis=1), np.where(_same_class(first, second), larger, 0.0), mean)


def candidates(n: int, k: int, rounds: int, seed: int) -> NDArray[np.bool_]:
    """The min(1, (k + 1) / rounds) n target rows that round k draws, a function of (seed, k); (n,), at least one."""
    size = max(1, round(min(1.0, (k + 1) / rounds) * n))
    chosen = np.zeros(n, np.bool_)
    chosen[np.random.default_rng([seed, k, _CANDIDATES]).permutation(n)[:size]] = True
    return chosen


def _same_class(p1: NDArray[np.float64], p2: NDArray[np.float64]) -> NDArray[np.bool_]:
    return p1.argmax(axis=1) == p2.argmax(axis=1)


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


def _count(rows: Tensor) -> Tensor:
    # At least 1: the mean over no rows is then 0, with a graph.
    return rows.sum().clamp(min=1)


def _unlabelled(target: Windows) -> Rows:
    """Target rows with placeholders for labels and confidences."""
    n = len(target)
    return {**window_rows(target.in_memory()), "y": torch.zeros(n, dtype=torch.int64), "confidence": torch.zeros(n)}
