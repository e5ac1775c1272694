"""Saved results of an adaptation, made up: no network, no files."""

from __future__ import annotations

import numpy as np
import pandas as pd
from made_up_explanation import CHANNELS, CLASSES, SEATS, made_up, made_up_council

from transpl.markov import ShiftReport, Undone
from transpl.report.adaptation.saved_job import SavedJob

METRICS = {
    "before": {"windows": 12, "accuracy": 0.5, "macro_f1": 0.4},
    "after": {"windows": 12, "accuracy": 0.75, "macro_f1": 0.7},
    "pseudo_labels": {"windows": 9, "accuracy": 0.8, "macro_f1": 0.7},
    "confusion": {"labels": ["sit", "walk"], "counts": [[1, 0], [1, 10]]},
}


def summary(**change):
    shares = {"sit": 0.5, "stand": 0.25, "walk": 0.25}
    distances = zip(CHANNELS, (0.05, 0.4, 0.2, 0.1), (0.94, 0.02, 0.37, 0.78), strict=True)
    return {
        "transpl_version": "1",
        "written": "2026-01-01T00:00:00+00:00",
        "source": {"name": "ann", "windows": 1000, "class_shares": shares},
        "target": {"name": "bob", "windows": 2000},
        "test": {"windows": 12, "class_shares": shares, "true_class_shares": shares},
        "mode": "finetune",
        "prior": None,
        "classes": CLASSES.tolist(),
        "channels": [{"name": name, "distance": d, "weight": w} for name, d, w in distances],
        "sigma": 0.2,
        "codebook_usage": {"coarse": {"counts": [5, 0, 3, 1, 1], "perplexity": 1.9, "dead": [1]}},
        "decoded_codes": np.random.default_rng(0).normal(size=(5, 8)).tolist(),
        "history": {
            "source": [{"epoch": 0.0, "loss": 2.0}, {"epoch": 1.0, "loss": 1.0, "validation_loss": 1.5}],
            "adapt": [{"epoch": 0.0, "loss": 0.9, "validation_loss": 1.4}],
        },
        "seconds": {"source": 1.0, "adapt": 2.0},
        **change,
    }


TURNED, SWAPPED = "The device sits turned by 180 degrees about y: undone.", "acc_x and gyro are swapped: undone."


def council_summary(accuracy=0.87, **change):
    accuracies = np.linspace(0.5, 0.9, len(SEATS)).tolist()
    return summary(
        variant="plus",
        mode="markov",
        witnesses=[
            {"witness": witness, "view": view, "accuracy": known}
            for (witness, view), known in zip(SEATS, accuracies, strict=True)
        ],
        undone=[TURNED, SWAPPED],
        estimated_accuracy={"accuracy": accuracy, "low": accuracy - 0.08, "high": accuracy + 0.05},
        history={},
        **change,
    )


def saved_council(explanation=None, metrics=METRICS, **change):
    """Results of the council; see `saved`."""
    explanation = made_up_council(windows=np.arange(12)) if explanation is None else explanation
    undone = [Undone(TURNED, "turn", 21.5, 5.0), Undone(SWAPPED, "swap")]
    return saved(explanation, metrics, **{"summary": council_summary(), "shift": shift(undone=undone), **change})


def shift(channel_names=CHANNELS, classes=CLASSES, undone=()):
    rng = np.random.default_rng(1)
    D, n = len(channel_names), 5
    return ShiftReport(
        tuple(classes.tolist()),
        tuple(channel_names),
        rng.integers(0, 9, (D, n, n)),
        rng.integers(0, 9, (D, n, n)),
        rng.uniform(size=(D, n)),
        rng.uniform(size=D),
        np.array([0.5, 0.25, 0.25]),
        np.array([0.2, 0.3, 0.5]),
        tuple(undone),
    )


def predictions(p, classes=CLASSES, **columns):
    about = {"window": np.arange(len(p)), **columns, "label": classes[p.argmax(axis=1)], "confidence": p.max(axis=1)}
    return pd.DataFrame(about).join(pd.DataFrame(p, columns=[f"p_{name}" for name in classes]))


def saved(explanation=None, metrics=METRICS, **change):
    """Results in which the windows of `explanation` are all there are."""
    explanation = made_up(windows=np.arange(12)) if explanation is None else explanation
    fields = {
        "summary": summary(),
        "predictions": predictions(explanation.answers, explanation.classes),
        "metrics": metrics,
        "explanation": explanation,
        "shift": shift(),
    }
    return SavedJob(**{**fields, **change})
