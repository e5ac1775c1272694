"""Stop when the validation loss no longer falls, and keep the best weights; or never stop, and keep the last."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass
class EarlyStopping:
    """patience : how many checks in a row may bring no improvement before `exhausted`
    keep : the "best" weights, or, for a training of fixed length, the "last"
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

    def state(self) -> dict[str, Any]:
        """Everything that a resumed run needs."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> EarlyStopping:
        return cls(**state)
