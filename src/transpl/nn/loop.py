"""The one training loop. Every phase and method is an objective that it minimises.

Randomness is a function of (seed, epoch, rank) and of nothing else, so a run that is killed and resumed from a
checkpoint ends with exactly the weights of an uninterrupted run.
"""

from __future__ import annotations

import copy
import io
import logging
import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from transpl import __version__
from transpl._utils.clock import count_earlier
from transpl._utils.errors import check_choice, check_int, check_not_negative, check_positive, unreadable_file
from transpl._utils.files import replacing
from transpl._utils.hashing import hash_values
from transpl._utils.progress import progress_bar
from transpl.nn._cpu_kernels import cpu_kernels_enabled, use_cpu_kernels
from transpl.nn.devices import Execution, cpu_threads, isolated_rng, restored_environment, with_gradients
from transpl.nn.rows import Data, Rows, count, epoch_batches, map_parts, ordered_batches, parts, take

History = list[dict[str, float]]

_CHECKPOINT_FORMAT = "transpl-checkpoint-5"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoopSettings:
    """How an objective is minimised, always by AdamW.

    warmup_steps : steps over which the learning rate grows from 0
    check_every : epochs between two looks at the validation loss
    patience : looks without gain after which training stops
    keep : the "best" weights on validation, with early stopping; or the "last", after all epochs
    """

    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    batch_size: int = 32
    max_epochs: int = 200
    check_every: int = 2
    patience: int = 2
    warmup_steps: int = 0
    keep: str = "best"

    def __post_init__(self) -> None:
        check_choice("keep", self.keep, ("best", "last"))
        for name in ("batch_size", "max_epochs", "check_every", "patience"):
            check_int(name, getattr(self, name), least=1)
        check_int("warmup_steps", self.warmup_steps, least=0)
        check_positive("learning_rate", self.learning_rate)
        check_not_negative("weight_decay", self.weight_decay)


class TrainingResult(NamedTuple):
    """The weights that were kept, and one plain record per epoch."""

    weights: dict[str, Tensor]
    history: History


class TrainingDiverged(RuntimeError):
    """The loss is NaN or infinite."""


class Objective(nn.Module, ABC):
    """What the loop minimises. Subclasses hold the parameters; `terms` names the losses that add up to "loss"."""

    terms: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def forward(self, batch: Rows) -> dict[str, Tensor]:
        """Scalar losses of a training batch: "loss" is minimised, the others are recorded."""

    @abstractmethod
    def risk(self, batch: Rows) -> Tensor:
        """The scalar that validation watches, averaged over the rows of `batch`."""

    @abstractmethod
    def identity(self) -> str:
        """Everything but the weights that decides the losses; part of the name of a checkpoint."""

    def start_epoch(self, epoch: int) -> None:
        """Prepare an epoch, for instance by new pseudo-labels; may depend on weights, buffers and `epoch` only."""

    def undecayed(self) -> list[nn.Parameter]:
        """Parameters that are exempt from weight decay."""
        return []


class Checkpoint:
    """The state of an unfinished training on disk, in a file named after its job.

    Another version of transpl or torch may compute other numbers, so its checkpoints are ignored.
    """

    def __init__(self, folder: Path, phase: str, fingerprint: str) -> None:
        self.path = folder / f"{phase}-{fingerprint[:16]}.ckpt"
        self.header = {
            "format": _CHECKPOINT_FORMAT,
            "versions": {"transpl": __version__, "torch": str(torch.__version__)},
            "fingerprint": fingerprint,
        }

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file by this state."""
        buffer = io.BytesIO()  # torch reports a full disk as a wrong file position; `write_bytes` as a full disk
        torch.save({**self.header, **state}, buffer)
        with replacing(self.path) as part:
            part.write_bytes(buffer.getbuffer())

    def load(self) -> dict[str, Any] | None:
        """Return the stored state, or None if there is no file or another version wrote it."""
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
            same_version = all(state.get(key) == self.header[key] for key in ("format", "versions"))
            if state["fingerprint"] != self.header["fingerprint"]:
                raise ValueError("another job")
        except Exception as error:  # torch.load raises many kinds for a damaged file
            problem = f"damaged checkpoint ({type(error).__name__})"
            raise unreadable_file(self.path, problem=problem, advice="Delete it to restart the training.") from None
        if not same_version:
            _log.warning("%s: written by another version of transpl or torch; training restarts.", self.path)
            return None
        return dict(state)


def fingerprint(*settings: object, rows: list[Rows]) -> str:
    """Return a digest of settings (by their repr) and of every value of the data."""
    named = [part for group in rows for name in sorted(group) for part in (name, group[name].contiguous().numpy())]
    return hash_values(repr(settings), *named)


@dataclass
class EarlyStopping:
    """Keeps the best weights, and decides when to stop.

    patience : checks in a row without improvement until `exhausted`
    keep : the "best" weights or, for a training of fixed length, the "last"
    """

    patience: int
    keep: str = "best"
    best: float = math.inf
    checks_without_gain: int = 0
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def update(self, value: float, weights: dict[str, Tensor]) -> None:
        """Record a check; better (or simply later) weights are copied."""
        if value < self.best or self.keep == "last":
            self.best, self.checks_without_gain = value, 0
            self.best_weights = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
        else:
            self.checks_without_gain += 1

    @property
    def exhausted(self) -> bool:
        return self.checks_without_gain >= self.patience


@with_gradients()
def train(
    objective: Objective,
    rows: Data,
    validation: Rows,
    settings: LoopSettings,
    execution: Execution,
    *,
    seed: int,
    phase: str,
) -> TrainingResult:
    """Minimise `objective` on `rows` until its risk on `validation` stops falling; return the best weights.

    Several devices run the same loop, one rank each; the result is rank 0's.
    """
    checkpoint = None
    if execution.checkpoint_dir is not None:
        job = fingerprint(
            phase,
            settings,
            seed,
            execution.devices,
            cpu_kernels_enabled(),
            objective.identity(),
            rows=[*parts(rows), validation, objective.state_dict()],
        )
        checkpoint = Checkpoint(execution.checkpoint_dir, phase, job)
    data, held_out = map_parts(_differentiable, rows), {name: _differentiable(x) for name, x in validation.items()}
    run = _Run(objective, data, held_out, settings, execution, checkpoint, seed, phase, cpu_kernels_enabled())
    with cpu_threads(execution.n_threads), isolated_rng(), restored_environment():
        weights, history, earlier = execution.fabric().launch(partial(_train_on_rank, run=run))
    count_earlier(earlier)
    return TrainingResult({name: torch.from_numpy(value) for name, value in weights.items()}, history)


class _Run(NamedTuple):
    objective: Objective
    rows: Data
    validation: Rows
    settings: LoopSettings
    execution: Execution
    checkpoint: Checkpoint | None
    seed: int
    phase: str
    cpu_kernels: bool = True


def _train_on_rank(fabric: Fabric, run: _Run) -> tuple[dict[str, np.ndarray], History, float]:
    # Spawned ranks share the memory of one objective, but each needs its own weights.
    run = run._replace(objective=copy.deepcopy(run.objective))
    with cpu_threads(run.execution.n_threads), use_cpu_kernels(run.cpu_kernels):
        loop = _Loop(fabric, run)
        with progress_bar(
            run.phase, run.settings.max_epochs, shown=run.execution.progress and fabric.is_global_zero
        ) as report:
            while not loop.finished:
                record = loop.run_epoch()
                report(loop.epoch - 1, record.get("validation_loss"))
    # Arrays, not tensors: they cross process borders without shared-memory handles.
    weights = {name: tensor.numpy() for name, tensor in loop.stopping.best_weights.items()}
    return weights, loop.history, loop.earlier


class _Loop:
    """The loop's state on one rank."""

    def __init__(self, fabric: Fabric, run: _Run) -> None:
        self.fabric, self.run = fabric, run
        self.epoch, self.step = 0, 0
        self.start, self.earlier = time.perf_counter(), 0.0  # seconds of the processes before this one
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
        # All ranks have the same weights but their own running statistics: rank 0's loss decides for all, or some
        # would stop while others wait for them.
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
            "stopping": dict(vars(self.stopping)),
            "history": self.history,
            "epoch": self.epoch,
            "step": self.step,
            "seconds": self.earlier + time.perf_counter() - self.start,
        }
        self.run.checkpoint.save(state)

    def _resume(self) -> None:
        state = self.run.checkpoint.load() if self.run.checkpoint is not None else None
        if state is None:
            return
        self.run.objective.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.stopping = EarlyStopping(**state["stopping"])
        self.history, self.epoch, self.step = state["history"], state["epoch"], state["step"]
        self.earlier = state["seconds"]


def new_optimizer(objective: Objective, settings: LoopSettings) -> torch.optim.Optimizer:
    """AdamW in its fused form, which updates all parameters in one pass."""
    undecayed = objective.undecayed()
    exempt = {id(parameter) for parameter in undecayed}
    decayed = [p for p in objective.parameters() if p.requires_grad and id(p) not in exempt]
    groups: list[dict[str, Any]] = [{"params": decayed}]
    if undecayed:
        groups.append({"params": undecayed, "weight_decay": 0.0})
    return torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)


def _differentiable(values: Tensor) -> Tensor:
    """A copy of values that were made in torch's inference mode, as no gradient can be computed from these."""
    return values.clone() if values.is_inference() else values


def _mix(seed: int, epoch: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, rank]).generate_state(1, np.uint64)[0])


def _diverged(phase: str, epoch: int) -> TrainingDiverged:
    return TrainingDiverged(
        f"{phase}: the loss is not a number in epoch {epoch}. "
        "Lower the learning rate, or rescale X to about unit variance."
    )
