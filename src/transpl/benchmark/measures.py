"""What is told of a finished run: names, headings, and what is better; alike in tables and on the leaderboard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A number that a finished run may have; scores are in percent, times in seconds.

    better : "higher", "lower", or "none" where no row is best
    heading : over a column of a table, where tables have it
    """

    name: str
    label: str
    what: str
    better: str = "higher"
    unit: str = "%"
    decimals: int = 1
    heading: str = ""


METRICS = (
    Metric("accuracy", "accuracy", "windows of the target's test part that are labelled rightly", heading="Acc"),
    Metric(
        "macro_f1", "macro-F1", "on the target's test part, over classes present in truth or predictions", heading="MF1"
    ),
    Metric(
        "binary_f1",
        "F1 of class 1",
        "on the target's test part, of the second of two classes",
        heading="F1 of class 1",
    ),
    Metric("balanced_accuracy", "balanced accuracy", "mean over classes of the share labelled rightly"),
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
        "none",  # to do nothing is always the fastest
        "s",
        heading="Seconds",
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}
