"""The one training loop. Every phase and method is an objective that it minimises.

Randomness is a function of (seed, epoch, rank) and of nothing else, so a run that is killed and
resumed at an epoch's end goes on exactly as if it had never stopped.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from transpl._utils.errors import check_choice, check_int, check_not_negative, check_positive
from transpl._utils.progress import progress_bar
from transpl.nn.checkpoint import Checkpoint, fingerprint
from transpl.nn.devices import Execution, own_environment, own_gradients, own_randomness, threads
from transpl.nn.early_stopping import EarlyStopping
from transpl.nn.rows import Data, Rows, count, epoch_batches, map_parts, ordered_batches, parts, take

History = list[dict[str, float]]


@dataclass(frozen=True)
class LoopSettings:
    """How an objective is minimised; AdamW throughout."""

    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    batch_size: int = 32
    max_epochs: int = 200
    check_every: int = 2
    patience: int = 2
    warmup_steps: int = 0
    keep: str = "best"  # weights: "best" on validation, with early stopping; or "last", all epochs

    def __post_init__(self) -> None:
        check_choice("keep", self.keep, ("best", "last"))
        for name in ("batch_size", "max_epochs", "check_every", "patience"):
            check_int(name, getattr(self, name), least=1)
        check_int("warmup_steps", self.warmup_steps, least=0)
        check_positive("learning_rate", self.learning_rate)
        check_not_negative("weight_decay", self.weight_decay)


class Trained(NamedTuple):
    """What training leaves: the best weights, and one plain record per epoch."""

    weights: dict[str, Tensor]
    history: History


class TrainingDiverged(RuntimeError):
    """The loss is no longer a number."""


class Objective(nn.Module, ABC):
    """What the loop minimises. Subclasses hold the parameters; `terms` names the losses that "loss" is made of."""

    terms: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def forward(self, batch: Rows) -> dict[str, Tensor]:
        """Return scalar losses of a training batch; "loss" is minimised, the others are recorded."""

    @abstractmethod
    def risk(self, batch: Rows) -> Tensor:
        """Return the scalar that validation watches, averaged over the rows of `batch`."""

    @abstractmethod
    def identity(self) -> str:
        """Return everything that decides the losses beside the weights; a checkpoint belongs to it."""

    def start_epoch(self, epoch: int) -> None:
        """Prepare an epoch, for instance by new pseudo-labels; a function of the weights, buffers and `epoch` alone."""

    def undecayed(self) -> list[nn.Parameter]:
        """Return the parameters that weight decay leaves alone."""
        return []


@own_gradients()
def train(
    objective: Objective,
    rows: Data,
    validation: Rows,
    settings: LoopSettings,
    execution: Execution,
    *,
    seed: int,
    phase: str,
) -> Trained:
    """Minimise `objective` on `rows` until its risk on `validation` stops falling; return the best weights.

    With several devices the same function runs on each rank; rank 0's result is returned.
    """
    checkpoint = None
    if execution.checkpoint_dir is not None:
        identity = (phase, settings, seed, execution.devices, objective.identity())
        job = fingerprint(*identity, rows=[*parts(rows), validation, objective.state_dict()])
        checkpoint = Checkpoint(execution.checkpoint_dir, phase, job)
    data, held_out = map_parts(_with_gradients, rows), {name: _with_gradients(x) for name, x in validation.items()}
    run = _Run(objective, data, held_out, settings, execution, checkpoint, seed, phase)
    with threads(execution.n_threads), own_randomness(), own_environment():
        weights, history = execution.fabric().launch(partial(_train_on_rank, run=run))
    return Trained({name: torch.from_numpy(value) for name, value in weights.items()}, history)


class _Run(NamedTuple):
    objective: Objective
    rows: Data
    validation: Rows
    settings: LoopSettings
    execution: Execution
    checkpoint: Checkpoint | None
    seed: int
    phase: str


def _train_on_rank(fabric: Fabric, run: _Run) -> tuple[dict[str, np.ndarray], History]:
    # Spawned ranks receive one objective in shared memory: each needs weights of its own.
    run = run._replace(objective=copy.deepcopy(run.objective))
    with threads(run.execution.n_threads):
        loop = _Loop(fabric, run)
        with progress_bar(
            run.phase, run.settings.max_epochs, shown=run.execution.progress and fabric.is_global_zero
        ) as report:
            while not loop.finished:
                record = loop.run_epoch()
                report(loop.epoch - 1, record.get("validation_loss"))
    # Arrays, not tensors: they cross process borders without shared-memory handles.
    return {name: tensor.numpy() for name, tensor in loop.stopping.best_weights.items()}, loop.history


class _Loop:
    """The loop's state on one rank."""

    def __init__(self, fabric: Fabric, run: _Run) -> None:
        self.fabric, self.run = fabric, run
        self.epoch, self.step = 0, 0
        self.history: History = []
        self.stopping = EarlyStopping(run.settings.patience, run.settings.keep)
        optimizer = new_optimizer(run.objective, run.settings)
        self.module, self.optimizer = fabric.setup(run.objective, optimizer)
        self.rows = map_parts(fabric.to_device, run.rows)
        self.validation = {name: fabric.to_device(tensor) for name, tensor in run.validation.items()}
        self._resume()

    @property
    def finished(self) -> bool:
        return self.epoch >= self.run.settings.max_epochs or self.stopping.exhausted

    def run_epoch(self) -> dict[str, float]:
        """Train one epoch, check the validation set when it is due, keep a checkpoint."""
        record = {"epoch": float(self.epoch), **self._train_epoch()}
        settings = self.run.settings
        last = self.epoch + 1 == settings.max_epochs
        due = last or (self.epoch + 1) % settings.check_every == 0
        if due:
            record["validation_loss"] = self._validate()
            self.stopping.update(record["validation_loss"], self.run.objective.state_dict())
        self.history.append(record)
        self.epoch += 1
        if due:
            self._save()
        return record

    def _train_epoch(self) -> dict[str, float]:
        run, rank, world = self.run, self.fabric.global_rank, self.fabric.world_size
        run.objective.start_epoch(self.epoch)
        torch.manual_seed(_mix(run.seed, self.epoch, rank))
        self.module.train()
        batches = epoch_batches(self.rows, run.settings.batch_size, run.seed, self.epoch, rank, world)
        recorded = [self._train_step(batch) for batch in batches]
        names = recorded[0].keys()
        means = torch.stack([torch.stack([losses[name] for name in names]) for losses in recorded]).mean(dim=0)
        result = dict(zip(names, means.tolist(), strict=True))
        if not math.isfinite(result["loss"]):
            raise _diverged(run.phase, self.epoch)
        return result

    def _train_step(self, batch: Rows) -> dict[str, Tensor]:
        self._warm_up()
        losses = self.module(batch)
        self.optimizer.zero_grad(set_to_none=True)
        self.fabric.backward(losses["loss"])
        self.optimizer.step()
        self.step += 1
        return {name: value.detach() for name, value in losses.items()}

    def _warm_up(self) -> None:
        settings = self.run.settings
        factor = min(1.0, (self.step + 1) / settings.warmup_steps) if settings.warmup_steps else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * factor

    @torch.no_grad()
    def _validate(self) -> float:
        # Every rank walks the whole validation set with the same weights, but running statistics differ: the first
        # rank's number decides for all, or some would stop while others wait for them.
        objective = self.run.objective
        objective.eval()
        n, total = count(self.validation), 0.0
        for index in ordered_batches(n, 8 * self.run.settings.batch_size):
            risk = objective.risk(take(self.validation, index.to(self.fabric.device)))
            total += float(risk) * len(index)
        total = self.fabric.broadcast(total)
        if not math.isfinite(total):
            raise _diverged(self.run.phase, self.epoch)
        return total / n

    def _save(self) -> None:
        if self.run.checkpoint is None or not self.fabric.is_global_zero:
            return
        state: dict[str, Any] = {
            "weights": self.run.objective.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "stopping": self.stopping.state(),
            "history": self.history,
            "epoch": self.epoch,
            "step": self.step,
        }
        self.run.checkpoint.save(state)

    def _resume(self) -> None:
        state = self.run.checkpoint.load() if self.run.checkpoint is not None else None
        if state is None:
            return
        self.run.objective.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.stopping = EarlyStopping.from_state(state["stopping"])
        self.history, self.epoch, self.step = state["history"], state["epoch"], state["step"]


def new_optimizer(objective: Objective, settings: LoopSettings) -> torch.optim.Optimizer:
    """AdamW; its fused form updates every parameter in one pass."""
    undecayed = objective.undecayed()
    spared = {id(parameter) for parameter in undecayed}
    decayed = [p for p in objective.parameters() if p.requires_grad and id(p) not in spared]
    groups: list[dict[str, Any]] = [{"params": decayed}]
    if undecayed:
        groups.append({"params": undecayed, "weight_decay": 0.0})
    return torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)


def _with_gradients(values: Tensor) -> Tensor:
    """Values that gradients may be computed from; those made in torch's inference mode are not."""
    return values.clone() if values.is_inference() else values


def _mix(seed: int, epoch: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, rank]).generate_state(1, np.uint64)[0])


def _diverged(phase: str, epoch: int) -> TrainingDiverged:
    return TrainingDiverged(
        f"{phase}: the loss is not a number in epoch {epoch}. "
        "Lower the learning rate, or rescale X to about unit variance."
    )
