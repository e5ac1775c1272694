"""Speed: a training step and an encoder pass against their bare matrix products and stock layers; labelling against
encoding and a plain Python loop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from transpl.markov import TransitionCounts, channel_weights, label_probabilities, log_likelihoods
from transpl.nn import Network, NetworkSettings
from transpl.nn.inference import coarse_codes
from transpl.nn.layers import Layer
from transpl.nn.loop import LoopSettings, new_optimizer
from transpl.nn.objectives import SourceObjective
from transpl.windows import as_windows

BATCH, CHANNELS, TIME = 32, 9, 128


class StockLayer(nn.Module):
    """PyTorch's own layer in the place of ours."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu", batch_first=True)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        return self.layer(x)


def measure_steps(rounds: int = 15) -> dict[str, float]:
    torch.manual_seed(0)
    batch = {"x": torch.randn(BATCH, CHANNELS, TIME), "y": torch.randint(0, 6, (BATCH,))}
    network, stock = Network(NetworkSettings(n_classes=6)), with_stock_layers(Network(NetworkSettings(n_classes=6)))
    products = matrix_products(network, batch["x"])
    encoder_only = matrix_products(network, batch["x"], lambda: network.encode(batch["x"]))
    seconds = interleaved(
        {
            "step": train_step(network, batch),
            "stock_step": train_step(stock, batch),
            "step_floor": lambda: multiply(products, backward=True),
            "encode": lambda: encode(network, batch["x"]),
            "encode_floor": lambda: multiply(encoder_only, backward=False),
        },
        rounds,
    )
    return {
        "step_over_floor": seconds["step"] / seconds["step_floor"],
        "step_over_stock": seconds["step"] / seconds["stock_step"],
        "encode_over_floor": seconds["encode"] / seconds["encode_floor"],
        "step_milliseconds": 1e3 * seconds["step"],
    }


def with_stock_layers(network: Network) -> Network:
    settings = network.settings
    for transformer in (network.encoder, network.decoder):
        transformer.layers = nn.ModuleList(
            StockLayer(settings.width, settings.n_heads, settings.dropout) for _ in transformer.layers
        )
        transformer.dropout = nn.Dropout(settings.dropout)
    return network


def train_step(network: Network, batch: dict[str, Tensor]) -> Callable[[], None]:
    objective = SourceObjective(network).train()
    optimizer = new_optimizer(objective, LoopSettings())

    def step() -> None:
        loss = objective(batch)["loss"]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


@torch.no_grad()
def encode(network: Network, x: Tensor) -> None:
    network.eval()
    network.encode(x)
    network.train()


Product = tuple[Tensor, Tensor]


def matrix_products(network: Network, x: Tensor, call: Callable[[], object] | None = None) -> list[Product]:
    """Operands of every matrix product of a forward pass."""
    found: list[Product] = []

    def linear(module: nn.Linear, inputs: tuple[Tensor, ...], _: Tensor) -> None:
        found.append(_random_product(inputs[0].numel() // module.in_features, module.in_features, module.out_features))

    def layer(module: Layer, inputs: tuple[Tensor, ...], _: Tensor) -> None:
        found.extend(_products_of_layer(*inputs[0].shape, module.attention.n_heads))

    hooks = [m.register_forward_hook(layer) for m in network.modules() if isinstance(m, Layer)]
    hooks += [m.register_forward_hook(linear) for m in network.modules() if isinstance(m, nn.Linear)]
    with torch.no_grad():
        (call or (lambda: network(x)))()
    for hook in hooks:
        hook.remove()
    return found


def _products_of_layer(S: int, L: int, d: int, n_heads: int) -> list[Product]:
    """Projections of queries, keys and values, scores, mixing, output, and the feed-forward pair."""
    scores = (torch.randn(S * n_heads, L, d // n_heads), torch.randn(S * n_heads, d // n_heads, L))
    mixing = (torch.randn(S * n_heads, L, L), torch.randn(S * n_heads, L, d // n_heads))
    linear = [_random_product(S * L, k, n) for k, n in ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))]
    return [scores, mixing, *linear]


def _random_product(rows: int, inner: int, columns: int) -> Product:
    return torch.randn(rows, inner), torch.randn(inner, columns)


def multiply(products: list[Product], *, backward: bool) -> None:
    for a, b in products:
        c = a @ b
        if backward:
            _ = c @ b.mT
            _ = a.mT @ c


# Counting and labelling

WINDOWS, CLASSES, CODES = 256, 6, 8


def measure_labelling(rounds: int = 5) -> dict[str, float]:
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    network = Network(NetworkSettings(n_classes=CLASSES))
    windows = as_windows(rng.normal(size=(WINDOWS, CHANNELS, TIME)))
    codes = rng.integers(0, CODES, (WINDOWS, CHANNELS, TIME // 8))
    counts = TransitionCounts.from_codes(codes, CODES, rng.integers(0, CLASSES, WINDOWS), CLASSES)

    def label() -> None:
        TransitionCounts.from_codes(codes, CODES)
        label_probabilities(log_likelihoods(codes, counts), channel_weights(np.full(CHANNELS, 0.1), 0.2))

    seconds = interleaved(
        {
            "encode": lambda: coarse_codes(network, windows),
            "label": label,
            "likelihood": lambda: log_likelihoods(codes[:20], counts),
            "loop_likelihood": lambda: loop_likelihood(codes[:20], counts),
        },
        rounds,
    )
    return {
        "label_share_of_encode": seconds["label"] / seconds["encode"],
        "loop_over_likelihood": seconds["loop_likelihood"] / seconds["likelihood"],
    }


def loop_likelihood(codes: np.ndarray, counts: TransitionCounts) -> list[float]:
    """The plain alternative: one Python step per window, channel, class and transition."""
    p = counts.probabilities()
    return [
        sum(math.log(p[k, d, i, j]) for i, j in pairwise(row)) / (len(row) - 1)
        for window in codes
        for d, row in enumerate(window)
        for k in range(len(p))
    ]


def interleaved(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each task; tasks take turns, so that a noisy minute hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}
