"""A class head that knows which channel is which."""

from __future__ import annotations

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import skip_init

from transpl.network.classifier import Classifier
from transpl.network.network import Network


class ChannelHead(Classifier):
    r"""logits = W (c_1, ..., c_D) + b on the summaries c_d of a network that stays as it is.

    The network's own head sees the mean of the c_d: to it, a quiet x axis with a lively y axis is the same as the
    opposite. What the codes of single channels tell, it cannot learn; this head can.
    """

    def __init__(self, network: Network, n_channels: int) -> None:
        super().__init__()
        settings = network.settings
        self.network = network
        # Its weights always come from elsewhere: none are drawn, and the caller's random numbers stay as they are.
        self.linear = skip_init(nn.Linear, n_channels * settings.width, settings.n_classes)  # type: ignore[no-untyped-call]

    @classmethod
    def of(cls, network: Network, W: NDArray, b: NDArray) -> ChannelHead:
        """The head with these weights, W (K, D d) and b (K,)."""
        head = cls(network, W.shape[1] // network.settings.width)
        head.linear.load_state_dict({"weight": torch.from_numpy(W), "bias": torch.from_numpy(b)})
        return head.eval()

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T) -> the summaries of all channels, side by side (B, D d)."""
        return self.network.encode(x, lengths).summary.flatten(1)

    def logits(self, z: Tensor) -> Tensor:
        """z (B, D d) -> class logits (B, K)."""
        return self.linear(z)
