"""A benchmark folder with made-up scores: what `transpl bench` leaves, without the training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transpl.benchmark.plan import settings_without_seed
from transpl.benchmark.run_spec import RunSpec
from transpl.benchmark.store import Result, Store
from transpl.methods.registry import entries

CHANNELS = {"channel_distances": [0.05, 0.4], "channel_weights": [0.94, 0.02]}


def spec(
    method: str,
    pair: tuple[int, int] = (0, 1),
    seed: int = 0,
    *,
    dataset: str = "synthetic",
    data: str = "d" * 20,
    goal: str = "adapt",
    settings: Mapping[str, Any] | None = None,
    **changes: Any,
) -> RunSpec:
    """A run of a registered method with the paper's settings and `changes`, or of any with `settings`."""
    known = entries().get(method)
    chosen = dict(settings or {}) if known is None else settings_without_seed(known.settings(dataset, **changes))
    return RunSpec(dataset, data, *pair, method, seed, chosen, goal)


def result(of: RunSpec, accuracy: float, *, torch: str = "2.13") -> Result:
    """Scores that follow from the accuracy; a run that only labels has none on the test part."""
    test = {
        "accuracy": accuracy,
        "macro_f1": accuracy - 0.05,
        "balanced_accuracy": accuracy - 0.02,
        "calibration_error": (1 - accuracy) / 2,
    }
    labels = {"accuracy": accuracy - 0.1, "macro_f1": accuracy - 0.15, "balanced_accuracy": accuracy - 0.12}
    adapts = of.goal == "adapt"
    return Result(
        of.dataset,
        (of.source, of.target),
        of.method,
        of.seed,
        dict(of.settings),
        test=test if adapts else {},
        pseudo_labels={"initial": labels},
        seconds={"source": 9.0, "start": 0.5, **({"adapt": 2.0, "predict": 0.25} if adapts else {"label": 1.5})},
        epochs={"source": 7, "adapt": 3},
        details=dict(CHANNELS) if of.method == "transpl" else {},
        versions={"python": "3.12", "torch": torch},
    )


def bench(
    folder: Path,
    finished: Iterable[tuple[RunSpec, float]],
    failed: Iterable[tuple[RunSpec, str]] = (),
    not_run: Iterable[RunSpec] = (),
) -> Store:
    """Plan all of them, and leave results and failures."""
    store, finished, failed = Store(folder), list(finished), list(failed)
    store.plan([*(run for run, _ in finished), *(run for run, _ in failed), *not_run])
    for run, accuracy in finished:
        store.write(run, result(run, accuracy), {})
    for run, error in failed:
        store.fail(run, error, f"Traceback: {error}", 2)
    return store


def small_bench(folder: Path) -> Store:
    """Three methods on two pairs with two seeds, one of them with other settings too; two runs are missing."""
    runs = {
        (method, patch): [spec(method, pair, seed, patch_length=patch) for pair in ((0, 1), (1, 0)) for seed in (0, 1)]
        for method, patch in (("no-adapt", 8), ("softmax", 8), ("transpl", 8), ("transpl", 16))
    }
    accuracies = {("no-adapt", 8): 0.5, ("softmax", 8): 0.55, ("transpl", 8): 0.7, ("transpl", 16): 0.6}
    finished = [(run, accuracies[which] + 0.02 * run.seed + 0.1 * run.source) for which in runs for run in runs[which]]
    return bench(folder, finished[:-2], [(finished[-2][0], "TrainingDiverged: no finite loss.")], [finished[-1][0]])
