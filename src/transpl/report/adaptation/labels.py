"""The labels: how many of each, how sure, and how right where that is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from transpl.report import plots
from transpl.report.adaptation.html import chart
from transpl.report.adaptation.saved import Saved

SOURCE, GIVEN, VOTED, ESTIMATED = "source", "target, as you said", "target, estimated by the vote", "target, estimated"
LABELLED, TRUE = "target, as labelled", "target, true"
_COLOURS = {
    SOURCE: plots.GREY,
    GIVEN: plots.PURPLE,
    VOTED: plots.SKY,
    ESTIMATED: plots.SKY,
    LABELLED: plots.BLUE,
    TRUE: plots.ORANGE,
}


def labels_section(saved: Saved) -> list[str]:
    """Class proportions, confidence and, if the truth is known, which class was taken for which."""
    return [
        "<section><h2>What labels the target got</h2>",
        *_proportions(saved),
        *_sureness(saved),
        *_confusion(saved.metrics),
        "</section>",
    ]


def class_proportions(saved: Saved) -> dict[str, dict[str, float]]:
    """Class shares by where they come from, those that are known."""
    summary, shift = saved.summary, saved.shift
    prior = summary["prior"] and {name: summary["prior"].get(name, 0.0) for name in saved.classes}
    voted = (
        None
        if shift is None or shift.target_shares is None
        else dict(zip(shift.classes, shift.target_shares, strict=True))
    )
    found = {
        SOURCE: summary["source"]["class_shares"],
        GIVEN: prior,
        ESTIMATED if saved.of_council else VOTED: voted,
        LABELLED: summary["test"]["class_shares"],
        TRUE: summary["test"]["true_class_shares"],
    }
    return {name: shares for name, shares in found.items() if shares}


def _proportions(saved: Saved) -> list[str]:
    words = [
        "How often each class occurs, in percent of windows. A large difference from source to target is a shift too."
    ]
    series = class_proportions(saved)
    adapted_to, labelled = saved.summary["target"]["windows"], saved.summary["test"]["windows"]
    if VOTED in series or ESTIMATED in series:
        estimate = "The vote's estimate is the mean of its" if VOTED in series else "The estimate is the mean of the"
        words.append(f"{estimate} probabilities.")
        if adapted_to != labelled:
            words.append(f"It is of the {adapted_to:,} windows adapted to, the labels are of the other {labelled:,}.")
    nobody = [name for name, share in series[LABELLED].items() if not share]
    if nobody:
        words.append(f"No window was labelled {_listed(nobody)}: look whether that can be.")
    return chart("class-shares", plots.class_shares(saved.classes, series, _COLOURS), " ".join(words))


def _sureness(saved: Saved) -> list[str]:
    confidence, K = saved.confidence, len(saved.classes)
    half = min(99, int(100 * np.median(confidence)))  # nothing is more than 100 %
    words = [
        f"How sure the labels are: half of them more than {half} %. With {K} classes, {100 / K:.0f} % is a guess.",
        "Sure is not right: where the target differs much from the source, wrong labels are sure too.",
    ]
    changed = saved.summary["test"].get("changed")
    if changed is not None:
        words.append(f"Adaptation changed {changed:,} of {len(confidence):,} labels.")
    return chart("confidence", plots.confidence_histogram(confidence, K), " ".join(words))


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _confusion(metrics: dict[str, Any] | None) -> list[str]:
    if metrics is None or "confusion" not in metrics:
        return []
    words = (
        "Which class was taken for which, in windows: a row per true class, a column per label. On the diagonal is "
        "what is right. True labels were used for this and the scores only."
    )
    found = metrics["confusion"]
    return chart("confusion", plots.confusion(found["labels"], found["counts"]), words)
