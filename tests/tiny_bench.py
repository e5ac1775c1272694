"""A tiny data set, tiny networks and made-up results, for the tests of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from conftest import TINY

from transpl.benchmark.plan import Plan, rows_of
from transpl.benchmark.run_spec import RunSpec
from transpl.benchmark.store import Result, Store
from transpl.datasets import make_shifted
from transpl.datasets.prepared import save_prepared

CHANGES = {name: value for name, value in TINY.items() if name not in ("device", "variant")} | {
    "max_epochs": 2,
    "batch_size": 16,
}
SET = [word for name, value in CHANGES.items() for word in ("--set", f"{name}={value}")]

# A method that writes down every time it is asked to adapt; its file is given to --import.
COUNTED = '''
import os
from pathlib import Path

from transpl.methods.no_adapt import NoAdapt
from transpl.methods.registry import register


@register("counted", family="own", needs="source", reference="-")
class Counted(NoAdapt):
    """Does nothing, and says so."""

    def _adapt(self, target, prior):
        with Path(os.environ["COUNT_FILE"]).open("a") as file:
            file.write(f"{os.getpid()} {len(target)} {self.seed}\\n")
        super()._adapt(target, prior)
'''


def write_data(home: Path, name: str = "small", **changes: Any) -> None:
    """Put a small data set where `transpl.datasets.load` finds it."""
    sizes = {"n_train": 24, "n_test": 15, "length": 32, "n_channels": 2, "n_domains": 5, **changes}
    home.mkdir(parents=True, exist_ok=True)
    save_prepared(replace(make_shifted(**sizes), name=name), home / f"{name}.npz")


def plan(
    *methods: str,
    pairs: Sequence[tuple[int, int]] = ((0, 1),),
    seeds: Sequence[int] = (0,),
    dataset: str = "small",
    **changes: Any,
) -> Plan:
    return Plan(dataset, rows_of(methods or ("no-adapt",), {**CHANGES, **changes}), tuple(pairs), tuple(seeds))


def made_up(spec: RunSpec, accuracy: float = 0.5, **values: Any) -> Result:
    """A result with made-up scores."""
    scores = {"accuracy": accuracy, "macro_f1": accuracy / 2, "balanced_accuracy": 0.5, "calibration_error": 0.1}
    given = {
        "test": scores if spec.goal == "adapt" else {},
        "pseudo_labels": {"initial": {**scores, "accuracy": accuracy / 4}},
        "seconds": {"source": 10.0, "start": 0.1, "adapt": 4.0, "predict": 1.0},
        "risks": {"source_risk": 1.0, "target_oracle": 1.0},
        "versions": {"transpl": "0.1.0"},
        **values,
    }
    return Result(
        spec.dataset, (spec.source, spec.target), spec.method, spec.seed, dict(spec.settings), fingerprint="f", **given
    )


def keep(store: Store, spec: RunSpec, accuracy: float = 0.5, **values: Any) -> None:
    """Store a made-up result."""
    store.write(spec, made_up(spec, accuracy, **values), {"test_probabilities": np.zeros((2, 3))})


def half_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if ".part" in path.name]
