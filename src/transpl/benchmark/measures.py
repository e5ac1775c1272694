"""What tables and the leaderboard show of a finished run, and means of it over pairs and seeds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from transpl._utils.errors import invalid
from transpl.benchmark.store import Result


@dataclass(frozen=True)
class Metric:
    """A number of a finished run; scores are in percent, times in seconds.

    better : "higher", "lower", or "none" where no row is best
    heading : of its column in the paper's tables
    """

    name: str
    label: str
    what: str
    better: str = "higher"
    unit: str = "%"
    decimals: int = 1
    heading: str = ""


METRICS = (
    Metric("accuracy", "accuracy", "windows of the target's test part with the right label", heading="Acc"),
    Metric(
        "macro_f1", "macro-F1", "on the target's test part, over classes present in truth or predictions", heading="MF1"
    ),
    Metric(
        "binary_f1",
        "F1 of class 1",
        "on the target's test part, of the second of two classes",
        heading="F1 of class 1",
    ),
    Metric("balanced_accuracy", "balanced accuracy", "mean over classes of the share with the right label"),
    Metric("label_accuracy", "pseudo-label accuracy", "pseudo-labels of the target's train part that are right"),
    Metric("label_macro_f1", "pseudo-label macro-F1", "of the pseudo-labels of the target's train part"),
    Metric("mse", "reconstruction error", "mean square between windows and decoded codes", "lower", "", 3, "MSE"),
    Metric("dead_codes", "dead codes", "codes of the codebooks that are never used", "lower", heading="Dead %"),
    Metric(
        "calibration_error",
        "calibration error",
        "gap between confidence and accuracy on the test part",
        "lower",
        heading="ECE",
    ),
    Metric(
        "seconds",
        "seconds",
        "of adaptation, per run on one thread, without the source model",
        "none",  # doing nothing is always fastest
        "s",
        heading="Seconds",
    ),
)
METRIC_BY_NAME = {metric.name: metric for metric in METRICS}


def part_scores(part: str, result: Result) -> dict[str, float]:
    """Scores on the target's "test" part, or of the initial pseudo-"labels" of its train part."""
    return result.test if part == "test" else result.pseudo_labels.get("initial", {})


def metric_value(part: str, result: Result, metric: str) -> float:
    """A metric of a run, scores in percent; part : as in `part_scores`."""
    if not has_metric(metric, result):
        expected = "runs that recorded it"
        raise invalid("metric", expected=expected, got=repr(metric), advice="Read the folder of the runs.")
    if metric == "mse":
        return float(result.details["reconstruction_error"])
    if metric == "seconds":
        return result.seconds["adapt"]
    if metric == "dead_codes":
        codebooks = result.details["codebooks"].values()
        return 100 * sum(book["dead"] for book in codebooks) / sum(book["codes"] for book in codebooks)
    scores = part_scores(part, result)
    if metric not in scores:
        expected, got = f"a score of {result.dataset} ({', '.join(scores)})", repr(metric)
        raise invalid("metric", expected=expected, got=got, advice="Choose one of these.")
    return 100 * scores[metric]


def has_metric(metric: str, result: Result) -> bool:
    """False for numbers that a run need not have, or that a line of it does not keep (see `run_lines`)."""
    needed = {"mse": "reconstruction_error", "dead_codes": "codebooks"}
    if metric in needed:
        return needed[metric] in result.details
    return metric != "seconds" or "adapt" in result.seconds


@dataclass(frozen=True)
class Spread:
    """Mean over `n` runs; standard deviation over seeds, None with one seed."""

    mean: float
    std: float | None
    n: int


def spread_over_seeds(values: Iterable[tuple[int, float]]) -> Spread:
    """Of one or more (seed, score): the mean of each seed first, then mean and standard deviation over seeds."""
    by_seed: dict[int, list[float]] = {}
    for seed, value in values:
        by_seed.setdefault(seed, []).append(value)
    means = [float(np.mean(found)) for found in by_seed.values()]
    std = float(np.std(means, ddof=1)) if len(means) > 1 else None
    return Spread(float(np.mean(means)), std, sum(map(len, by_seed.values())))


BySeed = Mapping[Hashable, Mapping[int, float]]  # pair -> seed -> score


def means_over_equal_seeds(scores: Mapping[str, BySeed]) -> dict[str, dict[Hashable, float | None]]:
    """{row: {pair: mean over seeds}}; None where a row lacks a seed that another row has on this pair."""
    seeds: dict[Hashable, set[int]] = {}
    for by_pair in scores.values():
        for pair, by_seed in by_pair.items():
            seeds.setdefault(pair, set()).update(by_seed)
    return {
        row: {
            pair: float(np.mean(list(by_seed.values()))) if by_seed and set(by_seed) == seeds[pair] else None
            for pair, by_seed in by_pair.items()
        }
        for row, by_pair in scores.items()
    }
