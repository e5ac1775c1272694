"""What every adaptation method takes and gives. Target labels are not reachable from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transpl.windows import Windows


@dataclass(frozen=True)
class Labelled:
    """Windows with class indices 0..K-1."""

    windows: Windows
    y: NDArray[np.int64]


class PseudoLabels(NamedTuple):
    """Labels given to unlabelled windows."""

    labels: NDArray  # (n,)
    confidence: NDArray[np.float64]  # (n,), for ranking
    probabilities: NDArray[np.float64]  # (n, K), rows sum to 1


class Method(Protocol):
    """The life of a method: learn the source, adapt to a target, predict."""

    def fit_source(self, source: Labelled, validation: Labelled, n_classes: int) -> None: ...

    def adapt(self, target: Windows, prior: NDArray[np.float64] | None = None) -> None: ...

    def pseudo_label(self, target: Windows, prior: NDArray[np.float64] | None = None) -> PseudoLabels: ...

    def predict_proba(self, windows: Windows) -> NDArray[np.float64]: ...
