"""A tiny source model for the tests of single methods."""

from __future__ import annotations

from conftest import TINY, make_waves

from transpl.methods import Labelled, SourceModel
from transpl.methods.method_settings import SourceSettings
from transpl.nn import Execution
from transpl.windows import as_windows

K = 3
CPU = Execution(device="cpu")
SHAPE = {name: value for name, value in TINY.items() if name not in ("device", "max_epochs", "variant")}
SHORT = {**SHAPE, "max_epochs": 3, "check_every": 1, "batch_size": 8, "source_lr": 1e-2}


def waves(n: int, seed: int, **shift: float) -> Labelled:
    X, y = make_waves(n, seed, n_classes=K, **shift)
    return Labelled(as_windows(X), y, K)


TARGET = waves(20, 2, gain=1.5, offset=0.3).windows


def source_model(**changes: object) -> SourceModel:
    return SourceModel(waves(30, 0), waves(12, 1), SourceSettings(**{**SHORT, **changes}), CPU)
