"""Source phase: the whole network on labelled source windows (paper, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_fraction
from transpl.nn.devices import Execution, own_gradients, own_randomness, threads
from transpl.nn.loop import History, LoopSettings, Objective, train
from transpl.nn.model import Network, NetworkSettings
from transpl.nn.quantizer import perplexity
from transpl.nn.rows import Rows, count, shuffled_batches, take

_Module = TypeVar("_Module", bound=nn.Module)


@dataclass(frozen=True)
class SourceLoss:
    """codes : train the codes too (L_code + L_rec), not only the class head
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

    def __init__(self, network: Network, loss: SourceLoss | None = None) -> None:
        super().__init__()
        self.network = network
        self.source_loss = SourceLoss() if loss is None else loss
        if not self.source_loss.codes:
            freeze(*network.code_modules())

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        losses = class_and_code_losses(self.network, batch, self.source_loss)
        recorded = {} if losses.codes is None else {"coarse_perplexity": self._perplexity(losses.codes)}
        return {"loss": losses.total(), **losses.terms, **recorded}

    def _perplexity(self, codes: Tensor) -> Tensor:
        return perplexity(codes, self.network.settings.n_coarse)

    def risk(self, batch: Rows) -> Tensor:
        return class_and_code_losses(self.network, batch, SourceLoss(self.source_loss.codes)).total()

    def identity(self) -> str:
        return repr((self.network.settings, self.source_loss))


class Losses(NamedTuple):
    """The source loss of a batch, and what it was made of."""

    features: Tensor  # (B, d)
    logits: Tensor  # (B, K)
    codes: Tensor | None  # (B, D, N), coarse
    terms: dict[str, Tensor]

    def total(self) -> Tensor:
        """The sum of the terms; ()."""
        return reduce(torch.add, self.terms.values())


def class_and_code_losses(network: Network, batch: Rows, loss: SourceLoss) -> Losses:
    """L_ce and, if codes are trained, L_code and L_rec of rows (x, y)."""
    x, lengths = batch["x"], batch.get("lengths")
    if not loss.codes:
        z = network.features(x, lengths)
        logits = network.head(z)
        return Losses(z, logits, None, {"cross_entropy": _cross_entropy(logits, batch, loss)})
    output = network(x, lengths)
    terms = {
        "cross_entropy": _cross_entropy(output.logits, batch, loss),
        "code": output.code_loss,
        "reconstruction": output.reconstruction_loss,
    }
    return Losses(output.features, output.logits, output.coarse_codes, terms)


def _cross_entropy(logits: Tensor, batch: Rows, loss: SourceLoss) -> Tensor:
    return F.cross_entropy(logits, batch["y"], label_smoothing=loss.label_smoothing)


@own_gradients()
def train_network(
    settings: NetworkSettings,
    rows: Rows,
    validation: Rows,
    loop: LoopSettings,
    execution: Execution,
    *,
    seed: int,
    loss: SourceLoss | None = None,
) -> tuple[Network, History]:
    """Train a new network on source rows (x, y); returns it in eval mode on the CPU."""
    network = new_network(settings, rows, loop.batch_size, execution, seed)
    objective = SourceObjective(network, loss)
    trained = train(objective, rows, validation, loop, execution, seed=seed, phase="source")
    network.load_state_dict(strip_prefix(trained.weights, "network."))
    return ready(network), trained.history


def freeze(*modules: nn.Module) -> None:
    """Leave the weights of these modules as they are."""
    for module in modules:
        module.requires_grad_(False)


def ready(module: _Module) -> _Module:
    """A trained module at rest: on the CPU, in eval mode, nothing frozen."""
    return module.requires_grad_(True).cpu().eval()


def new_network(settings: NetworkSettings, rows: Rows, batch_size: int, execution: Execution, seed: int) -> Network:
    """Draw a network from `seed` and start its codebooks by k-means on the first mini-batch."""
    first = take(rows, next(shuffled_batches(count(rows), batch_size, seed, epoch=0)))
    with threads(execution.n_threads), own_randomness(), own_gradients():
        torch.manual_seed(seed)
        network = Network(settings).float()
        network.start_codebooks(first["x"], first.get("lengths"), seed=seed)
    return network


def strip_prefix(weights: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Keep the entries under `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
