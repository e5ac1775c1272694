"""What every trained classifier can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Classifier(nn.Module, ABC):
    """Features, and class logits from them; the network is one, a method may have its own."""

    @abstractmethod
    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T), lengths (B,) where windows are of unequal length -> z (B, width)."""

    @abstractmethod
    def logits(self, z: Tensor) -> Tensor:
        """z (B, width) -> (B, K)."""

    def classify(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T), lengths (B,) where windows are of unequal length -> class logits (B, K)."""
        return self.logits(self.features(x, lengths))
