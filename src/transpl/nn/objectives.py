"""The two training phases and their losses: source (paper, section 3) and adaptation (section 4.2)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_fraction
from transpl.nn.devices import Execution, cpu_threads, isolated_rng, with_gradients
from transpl.nn.loop import History, LoopSettings, Objective, train
from transpl.nn.model import Backbone, BackboneSettings, Network
from transpl.nn.quantizer import perplexity
from transpl.nn.rows import Rows, count, floor_share, shuffled_batches, take

STOPPING = ("source", "labels")
CERTAIN = math.inf  # the confidence of a known label
_MIN_SQUARE = 1e-4

_Module = TypeVar("_Module", bound=nn.Module)
_Backbone = TypeVar("_Backbone", bound=Backbone)


class LearnableWeights(nn.Module):
    r"""L = \sum_i L_i / (2 s_i^2) + log(1 + s_i^2), L_i >= 0, s_i learnable from 1, s_i^2 at least 1e-4.

    Kendall et al. 2018, in the form of the TransPL authors. For a constant L_i the best s_i^2 is
    (L_i + \sqrt{L_i^2 + 8 L_i}) / 4.
    """

    def __init__(self, n_losses: int) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.ones(n_losses))

    def forward(self, losses: Tensor) -> Tensor:
        """losses (n_losses,) -> ()."""
        squares = _floored(self.s).square()
        return (losses / (2 * squares) + torch.log1p(squares)).sum()


class Weighting(nn.Module):
    r"""L = \sum_i w_i L_i, the w_i by name, fixed or learnt as in `LearnableWeights`."""

    def __init__(self, fixed: Mapping[str, float], learnt: Sequence[str] = ()) -> None:
        super().__init__()
        self.fixed, self.learnt = dict(fixed), tuple(learnt)
        # Not an empty parameter: several devices wait for a gradient of every parameter.
        self.scales = LearnableWeights(len(self.learnt)) if self.learnt else None

    def forward(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Scalars by name -> their weighted sum, ()."""
        fixed = [weight * losses[name] for name, weight in self.fixed.items()]
        if self.scales is None:
            return reduce(torch.add, fixed)
        learnt = self.scales(torch.stack([losses[name] for name in self.learnt]))
        return reduce(torch.add, [*fixed, learnt])

    def extra_repr(self) -> str:
        return f"fixed={self.fixed}, learnt={self.learnt}"


def _floored(s: Tensor) -> Tensor:
    """Keep |s| at 0.01 or more but pass the gradient through, so that even an s of 0 can grow again."""
    now = s.detach()
    floored = torch.copysign(now.abs().clamp(min=_MIN_SQUARE**0.5), now)
    return s + (floored - now)


@dataclass(frozen=True)
class SourceLoss:
    """The terms of the source loss.

    codes : train the codes too (L_code + L_rec), not only encoder and class head
    label_smoothing : of the cross entropy
    """

    codes: bool = True
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        check_choice("codes", self.codes, (True, False))
        check_fraction("label_smoothing", self.label_smoothing, zero=True)


class SourceObjective(Objective):
    r"""L_src = L_ce + L_code + L_rec, the last two if codes are trained."""

    terms = ("cross_entropy", "code", "reconstruction")

    def __init__(self, network: Backbone, loss: SourceLoss | None = None) -> None:
        super().__init__()
        self.network = network
        self.source_loss = SourceLoss() if loss is None else loss
        if not self.source_loss.codes:
            freeze(*network.code_modules())

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        losses = class_and_code_losses(self.network, batch, self.source_loss)
        record = {"loss": losses.total(), **losses.terms}
        if losses.codes is not None:
            assert isinstance(self.network, Network)
            record["coarse_perplexity"] = perplexity(losses.codes, self.network.settings.n_coarse)
        return record

    def risk(self, batch: Rows) -> Tensor:
        return class_and_code_losses(self.network, batch, SourceLoss(self.source_loss.codes)).total()

    def identity(self) -> str:
        return repr((self.network.settings, self.source_loss))


class SourceLosses(NamedTuple):
    """The terms of the source loss for a batch, and the network outputs they were computed from."""

    features: Tensor  # (B, d)
    logits: Tensor  # (B, K)
    codes: Tensor | None  # (B, D, N), coarse
    terms: dict[str, Tensor]

    def total(self) -> Tensor:
        """The sum of the terms; ()."""
        return reduce(torch.add, self.terms.values())


def class_and_code_losses(network: Backbone, batch: Rows, loss: SourceLoss) -> SourceLosses:
    """L_ce of rows (x, y) and, if codes are trained and the backbone has them, L_code and L_rec."""
    x, lengths = batch["x"], batch.get("lengths")
    if not (loss.codes and isinstance(network, Network)):
        z = network.features(x, lengths)
        logits = network.head(z)
        codes, code_terms = None, {}
    else:
        output = network(x, lengths)
        z, logits, codes = output.features, output.logits, output.coarse_codes
        code_terms = {"code": output.code_loss, "reconstruction": output.reconstruction_loss}
    cross_entropy = F.cross_entropy(logits, batch["y"], label_smoothing=loss.label_smoothing)
    return SourceLosses(z, logits, codes, {"cross_entropy": cross_entropy, **code_terms})


@with_gradients()
def train_network(
    shape: BackboneSettings,
    rows: Rows,
    validation: Rows,
    loop: LoopSettings,
    execution: Execution,
    *,
    seed: int,
    loss: SourceLoss | None = None,
) -> tuple[Backbone, History]:
    """Train a new network on source rows (x, y); it is returned in eval mode on the CPU."""
    network = new_network(shape, rows, loop.batch_size, execution, seed)
    objective = SourceObjective(network, loss)
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="source")
    objective.load_state_dict(trained.weights)
    return finalize(network), trained.history


def freeze(*modules: nn.Module) -> None:
    """Exclude the weights of these modules from training."""
    for module in modules:
        module.requires_grad_(False)


def finalize(module: _Module) -> _Module:
    """Put a trained module on the CPU and in eval mode, with nothing frozen."""
    return module.requires_grad_(True).cpu().eval()


def new_network(shape: BackboneSettings, rows: Rows, batch_size: int, execution: Execution, seed: int) -> Backbone:
    """A network with random weights from `seed`, its codebooks started by k-means on the first mini-batch."""
    first = take(rows, next(shuffled_batches(count(rows), batch_size, seed, epoch=0)))
    with cpu_threads(execution.n_threads), isolated_rng(), with_gradients():
        torch.manual_seed(seed)
        network = shape.build().float()
        network.start_from(first["x"], first.get("lengths"), seed=seed)
    return network


def seeded_module(seed: int, build: Callable[..., _Module], *arguments: object) -> _Module:
    """Build a module whose random weights depend on `seed` alone, not on what was drawn before."""
    with isolated_rng(), with_gradients():
        torch.manual_seed(seed)
        return build(*arguments)


class Teacher(Protocol):
    """Changes the target's weight and labels from epoch to epoch. Its repr is part of the name of a checkpoint."""

    def weight(self, epoch: int) -> float:
        """The weight alpha of the target's cross entropy in an epoch."""

    def labels(self, network: Backbone, epoch: int) -> tuple[Tensor, Tensor] | None:
        """New labels (n,) and confidences (n,) of all target rows, or None to keep the old ones."""


@dataclass(frozen=True)
class AdaptationSettings:
    """How the source network is fine-tuned on pseudo-labelled target rows.

    top_ratio : the share of a batch's target rows, the most confident, that is learnt from
    stopping : validate on held-out "source" rows only (the paper), or also on the `top_ratio` most confident target
        rows with their pseudo-"labels", so that training continues while it learns them
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

    CE_target is the mean over the `top_ratio` most confident target rows of the batch (at least one, and all whose
    label is CERTAIN). With several devices each selects and averages within its own part of the batch.

    Validation watches \lambda_1 CE + \lambda_2 (L_code + L_rec), as the authors' code does: the risk falls while the
    weights settle, so training continues. The source's cross entropy alone is low from the start, and would end
    adaptation before the network has learnt its pseudo-labels.

    teacher : sets alpha (1 without a teacher) and may replace the target's labels before an epoch
    target : the target rows with their first labels
    """

    terms = ("source_cross_entropy", "target_cross_entropy", "code", "reconstruction")

    def __init__(
        self,
        network: Backbone,
        settings: AdaptationSettings,
        teacher: Teacher | None = None,
        target: Rows | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.settings = settings
        self.teacher = teacher
        self.target_weight = 1.0
        self.codes = settings.codes and isinstance(network, Network)
        self.weights = LearnableWeights(2 if self.codes else 1)
        self.labels: Tensor
        self.confidence: Tensor
        if target is not None:
            self.register_buffer("labels", target["y"].clone())
            self.register_buffer("confidence", target["confidence"].clone())
        if not self.codes:
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
        logits, code_losses, recorded = self._compute(batch)
        row_losses = F.cross_entropy(logits, y, reduction="none")
        trusted = most_confident(confidence[is_target], self.settings.top_ratio)
        source = _mean(row_losses[~is_target])
        target = _mean(row_losses[is_target][trusted])
        cross_entropy = source + target if self.target_weight == 1 else source + self.target_weight * target
        return {
            "loss": self._weighted(cross_entropy, code_losses),
            "source_cross_entropy": source,
            "target_cross_entropy": target,
            **code_losses,
            **recorded,
        }

    def _labels(self, batch: Rows) -> tuple[Tensor, Tensor]:
        """Labels and confidence of a batch, (B,): its own, or for target rows the teacher's newest."""
        if self.teacher is None:
            return batch["y"], batch["confidence"]
        is_target, row = batch["is_target"], batch["target_row"]
        return (
            torch.where(is_target, self.labels[row], batch["y"]),
            torch.where(is_target, self.confidence[row], batch["confidence"]),
        )

    def _compute(self, batch: Rows) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Logits (B, K) and, if codes are trained, their losses and their perplexity."""
        if not (self.codes and isinstance(self.network, Network)):
            return self.network.classify(batch["x"], batch.get("lengths")), {}, {}
        output = self.network(batch["x"], batch.get("lengths"))
        losses = {"code": output.code_loss, "reconstruction": output.reconstruction_loss}
        used = perplexity(output.coarse_codes, self.network.settings.n_coarse)
        return output.logits, losses, {"coarse_perplexity": used}

    def risk(self, batch: Rows) -> Tensor:
        terms = class_and_code_losses(self.network, batch, SourceLoss(self.codes)).terms
        return self._weighted(terms.pop("cross_entropy"), terms)

    def _weighted(self, cross_entropy: Tensor, codes: dict[str, Tensor]) -> Tensor:
        r"""\lambda_1 CE + \lambda_2 (L_code + L_rec); ()."""
        code_loss = [reduce(torch.add, codes.values())] if codes else []
        return self.weights(torch.stack([cross_entropy, *code_loss]))

    def identity(self) -> str:
        return repr((self.network.settings, self.settings, self.teacher))


@with_gradients()
def adapt_network(
    network: _Backbone,
    source: Rows,
    target: Rows,
    validation: Rows,
    settings: AdaptationSettings,
    loop: LoopSettings,
    execution: Execution,
    *,
    seed: int,
    teacher: Teacher | None = None,
) -> tuple[_Backbone, History]:
    """Fine-tune a copy of `network`.

    source, validation : rows (x, y)
    target : rows (x, y = pseudo-label, confidence)
    teacher : see `AdaptationObjective`
    """
    copied = copy.deepcopy(network)
    objective = AdaptationObjective(copied, settings, teacher, target)
    rows = join_domains(source, target)
    if settings.stopping == "labels":
        validation = join_domains(validation, take(target, most_confident(target["confidence"], settings.top_ratio)))
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="adapt")
    objective.load_state_dict(trained.weights)
    return finalize(copied), trained.history


def join_domains(source: Rows, target: Rows) -> Rows:
    """Source rows, then target rows, marked by `is_target`."""
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
    """Indices of the most confident rows, a share `ratio` of all: at least one, and all that are CERTAIN."""
    n, certain = len(confidence), int((confidence == CERTAIN).sum())
    return torch.argsort(confidence, descending=True, stable=True)[: max(1, certain, floor_share(ratio, n)) if n else 0]


def _mean(losses: Tensor) -> Tensor:
    # An empty sum keeps the graph and is zero, where an empty mean would be NaN.
    return losses.sum() / max(1, len(losses))


def _pad(x: Tensor, time: int) -> Tensor:
    return F.pad(x, (0, time - x.shape[2]))


def _lengths(rows: Rows) -> Tensor:
    return rows.get("lengths", torch.full((count(rows),), rows["x"].shape[2]))
