"""The labels: how many of each class, how sure, how right if that is known."""

from __future__ import annotations

import numpy as np

from transpl._utils.wording import listed
from transpl.report import plots
from transpl.report.adaptation.saved_job import SavedJob
from transpl.report.html_parts import chart

LABELS = "target, labels"
_COLOURS = {
    "source": plots.GREY,
    "target, as you said": plots.PURPLE,
    LABELS: plots.BLUE,
    "target, true": plots.ORANGE,
}


def label_section(saved: SavedJob) -> list[str]:
    """Class proportions, confidence and, if the truth is known, which class was taken for which."""
    parts = ['<section id="labels"><h2>How many labels of each class</h2>', *_proportions(saved), *_confidence(saved)]
    if saved.metrics is not None and "confusion" in saved.metrics:
        found = saved.metrics["confusion"]
        words = (
            "Which class was taken for which, in windows: a row per true class, a column per label. Right labels are "
            "on the diagonal. The true labels were used only for this and for the scores."
        )
        parts += chart("confusion", plots.confusion(found["labels"], found["counts"]), words)
    return [*parts, "</section>"]


def class_proportions(saved: SavedJob) -> dict[str, dict[str, float]]:
    """Class shares by where they come from, as far as they are known; those of the target are of the same windows."""
    summary, prior = saved.summary, saved.summary["prior"]
    found = {
        "source": summary["source"]["class_shares"],
        "target, as you said": prior and {name: prior.get(name, 0.0) for name in saved.classes},
        LABELS: summary["test"]["class_shares"],
        "target, true": summary["test"]["true_class_shares"],
    }
    return {name: shares for name, shares in found.items() if shares}


def _proportions(saved: SavedJob) -> list[str]:
    words = [
        "How often each class occurs, in percent of windows; the bars of the target are all of the same "
        f"{len(saved.predictions):,}. A large difference from source to target is a shift too.",
    ]
    series = class_proportions(saved)
    missing = [name for name, share in series[LABELS].items() if not share]
    if missing:
        words.append(f"No window was labelled {listed(missing, 'or')}: check whether that can be right.")
    figure = plots.class_share_bars(saved.classes, series, _COLOURS, say_none=LABELS)
    return chart("class-shares", figure, " ".join(words))


def _confidence(saved: SavedJob) -> list[str]:
    confidence, K = saved.confidence, len(saved.classes)
    half = min(99, int(100 * np.median(confidence)))  # nothing is more than 100 %
    words = [
        f"How sure the labels are: half of them more than {half} %. With {K} classes, {100 / K:.0f} % is a guess.",
        "A sure label is not always right: if the target differs much from the source, wrong labels can be sure too.",
    ]
    changed = saved.summary["test"].get("changed")
    if changed is not None:
        words.append(f"Adaptation changed {changed:,} of {len(confidence):,} labels.")
    return chart("confidence", plots.confidence_histogram(confidence, K), " ".join(words))
