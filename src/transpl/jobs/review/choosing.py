"""Which windows to ask a person about."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray


def least_confident(labels: ArrayLike, confidence: ArrayLike, n: int, *, spread: bool = False) -> NDArray[np.int64]:
    """Positions of the n least confident windows, least confident first; of equal ones the first.

    spread : the least confident of every label first, then the second ones, and so on: no label fills the list
    """
    table = pd.DataFrame({"label": np.asarray(labels), "confidence": np.asarray(confidence, dtype=np.float64)})
    table = table.sort_values("confidence", kind="stable")
    if spread:
        turn = table.groupby("label").cumcount()
        table = table.loc[turn.sort_values(kind="stable").index]
    return table.index.to_numpy(np.int64)[:n]
