"""What every trained classifier can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Classifier(nn.Module, ABC):
    """A module that gives class logits; the network is one, a method may have its own."""

    @abstractmethod
    def classify(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T), lengths (B,) where windows are of unequal length -> class logits (B, K)."""
