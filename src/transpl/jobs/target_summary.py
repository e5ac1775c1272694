"""What summary.json and metrics.json say of a target: scores, class shares, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl import TransPL, __version__
from transpl._utils.metrics import accuracy, macro_f1
from transpl.estimator.validation import to_python

if TYPE_CHECKING:
    from transpl.jobs.target import AdaptTask

NO_LABEL = ""
ESTIMATE = "estimated_accuracy"  # key of metrics.json and summary.json
_USUAL, _HARDLY_ANY = 0.05, 0.01  # shares of a class in the source, and among the labels of a target that lacks it
LOW_ACCURACY = 0.6  # estimated; below it a person should label some windows
_DIGITS = 6  # of shapes that are only drawn
MAX_NAMES = 10  # classes in a warning


def scores_of(
    target_truth: NDArray | None,
    target_answers: NDArray | None,
    test_truth: NDArray | None,
    before: NDArray,
    labels: NDArray,
) -> dict[str, Any]:
    """What can be scored, as metrics.json has it."""
    scores: dict[str, Any] = {}
    if target_truth is not None and target_answers is not None:
        scores["pseudo_labels"] = score(target_truth, target_answers)
    if test_truth is not None:
        scores |= {"before": score(test_truth, before), "after": score(test_truth, labels)}
        scores["confusion"] = _confusion(test_truth, labels)
    return scores


def estimated_accuracy(model: TransPL) -> dict[str, float] | None:
    """Accuracy of an adapted model, estimated without labels, as plain values; None for a variant without it."""
    found = model.fitted_method().estimate
    return None if found is None else {name: float(value) for name, value in found._asdict().items()}


def score(truth: NDArray, labels: NDArray) -> dict[str, float]:
    """Accuracy and macro-F1 on the windows whose truth is known, and how many these are."""
    a, b = _known(truth, labels)
    return {"windows": len(a), "accuracy": accuracy(a, b), "macro_f1": macro_f1(a, b)}


def class_shares(labels: NDArray, classes: NDArray) -> dict[str, float]:
    """The share of each class among the known labels."""
    text, _ = _known(labels, labels)
    return {str(name): float((text == str(name)).mean()) for name in classes}


def warnings_about(
    shares: dict[str, float],
    source_shares: dict[str, float] | None,
    estimate: dict[str, float] | None,
    lacks_classes: bool,
    unread: Sequence[str] = (),
) -> list[str]:
    """Why a person should look before relying on the labels, in sentences.

    Parameters
    ----------
    shares
        of each class among the labels
    source_shares
        of each class in the source; None if unknown
    estimate
        accuracy, low and high, estimated without labels
    lacks_classes
        whether the method noticed that the target lacks classes
    unread
        channels without a vote, because all their pieces look alike
    """
    usual = source_shares or dict.fromkeys(shares, 1.0)
    absent = [name for name, share in shares.items() if share < _HARDLY_ANY and usual.get(name, 0.0) >= _USUAL]
    found = []
    if absent:
        found.append(f"hardly any window is labelled {', '.join(absent[:MAX_NAMES])}")
    elif lacks_classes:
        found.append("the target may lack classes of the source")
    if found:
        found[0] += "; where a target lacks classes, others are mistaken for them, and all estimates are too high"
    if unread:
        found.append(f"the codes tell nothing about {', '.join(unread[:MAX_NAMES])}, which had no vote")
    if estimate is not None and estimate["accuracy"] < LOW_ACCURACY:
        found.append(f"the estimated accuracy is low, {100 * estimate['accuracy']:.0f} %")
    return found


def summary_of(
    model: TransPL, task: AdaptTask, labels: NDArray, truth: NDArray | None, before: NDArray, unread: list[str]
) -> dict[str, Any]:
    """All that the report says beside the scores, as plain values."""
    method, prior = model.fitted_method(), task.prior
    if prior is not None and not isinstance(prior, dict):
        prior = {str(k): float(share) for k, share in zip(model.classes_, np.asarray(prior), strict=True)}
    shares, estimate = class_shares(labels, model.classes_), estimated_accuracy(model)
    return {
        "transpl_version": __version__,
        "warnings": warnings_about(shares, task.source.get("class_shares"), estimate, method.lacks_classes, unread),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": task.source,
        "target": {
            "name": task.name,
            "windows": len(task.target.X),
            "labels_given": len(task.few_labels or {}),
        },
        "test": {
            "windows": len(labels),
            "class_shares": shares,
            "true_class_shares": None if truth is None else class_shares(truth, model.classes_),
            "changed": int((before != labels).sum()),
        },
        "variant": model.variant,
        "mode": model.mode_,
        **({} if estimate is None else _council_summary(model, task.channel_names, estimate)),
        "prior": prior,
        "classes": [str(name) for name in model.classes_],
        "channels": _channel_summary(model, task.channel_names),
        "sigma": to_python(model.sigma),
        "codebook_usage": {
            book: {"counts": usage.counts.tolist(), "perplexity": usage.perplexity, "dead": usage.dead}
            for book, usage in model.codebook_usage_.items()
        },
        "decoded_codes": method.decoded_codes["coarse"].round(_DIGITS).tolist(),
        "history": model.history_,
        "seconds": model.seconds_,
    }


def _council_summary(model: TransPL, channel_names: tuple[str, ...], estimate: dict[str, float]) -> dict[str, Any]:
    method = model.fitted_method()
    witnesses = [
        {"witness": each.witness, "view": each.view, "accuracy": float(each.accuracy)} for each in method.standings()
    ]
    return {ESTIMATE: estimate, "undone": list(method.undone(channel_names)), "witnesses": witnesses}


def _channel_summary(model: TransPL, channel_names: tuple[str, ...]) -> list[dict[str, Any]]:
    distances = model.channel_distances_  # computed once: it takes longest
    weights = model.fitted_method().weights_from(distances)
    return [
        {"name": name, "distance": float(distance), "weight": float(weight)}
        for name, distance, weight in zip(channel_names, distances, weights, strict=True)
    ]


def _confusion(truth: NDArray, labels: NDArray) -> dict[str, Any]:
    """How often each true class (row) got each label (column)."""
    table = pd.crosstab(*_known(truth, labels))
    names = np.union1d(table.index, table.columns)
    counts = table.reindex(index=names, columns=names, fill_value=0)
    return {"labels": names.tolist(), "counts": counts.to_numpy(int).tolist()}


def _known(truth: NDArray, labels: NDArray) -> tuple[NDArray, NDArray]:
    """Both as text, where the truth is known."""
    known = truth.astype(str) != NO_LABEL
    return truth[known].astype(str), labels[known].astype(str)
