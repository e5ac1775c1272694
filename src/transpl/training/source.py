"""Source phase: the whole network on labelled source windows (paper, section 3)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from transpl.network import Network, NetworkSettings
from transpl.network.quantizer import perplexity
from transpl.training.devices import Execution, own_randomness, threads
from transpl.training.loop import History, LoopSettings, Objective, train
from transpl.training.rows import Rows, count, shuffled_batches, take


class SourceObjective(Objective):
    r"""L_src = L_ce + L_code + L_rec."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Rows) -> dict[str, Tensor]:
        output = self.network(batch["x"], batch.get("lengths"))
        cross_entropy = F.cross_entropy(output.logits, batch["y"])
        loss = cross_entropy + output.code_loss + output.reconstruction_loss
        return {
            "loss": loss,
            "cross_entropy": cross_entropy,
            "code": output.code_loss,
            "reconstruction": output.reconstruction_loss,
            "coarse_perplexity": perplexity(output.coarse_codes, self.network.settings.n_coarse),
        }

    def risk(self, batch: Rows) -> Tensor:
        return self.forward(batch)["loss"]

    def identity(self) -> str:
        return repr(self.network.settings)


def train_network(
    settings: NetworkSettings, rows: Rows, validation: Rows, loop: LoopSettings, execution: Execution, *, seed: int
) -> tuple[Network, History]:
    """Train a new network on source rows (x, y); returns it in eval mode on the CPU."""
    network = new_network(settings, rows, loop.batch_size, execution, seed)
    trained = train(SourceObjective(network), rows, validation, loop, execution, seed=seed, phase="source")
    network.load_state_dict(strip_prefix(trained.weights, "network."))
    return network.cpu().eval(), trained.history


def new_network(settings: NetworkSettings, rows: Rows, batch_size: int, execution: Execution, seed: int) -> Network:
    """Draw a network from `seed` and start its codebooks by k-means on the first mini-batch."""
    first = take(rows, next(shuffled_batches(count(rows), batch_size, seed, epoch=0)))
    with threads(execution.n_threads), own_randomness():
        torch.manual_seed(seed)
        network = Network(settings).float()
        network.start_codebooks(first["x"], first.get("lengths"), seed=seed)
    return network


def strip_prefix(weights: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Keep the entries under `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
