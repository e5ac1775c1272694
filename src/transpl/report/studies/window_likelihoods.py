"""Why one target window gets its label, in one channel: the likelihood of its codes under every class."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl._utils.errors import invalid
from transpl.markov import channel_posteriors
from transpl.methods import PseudoLabels
from transpl.methods.transpl.vote import Codes
from transpl.report.studies.subject import Subject
from transpl.windows import Windows

CONFIDENT_SHARE = 0.25  # of the windows of a label
LEAST_WEIGHT = 0.5  # of a channel that counts, in shares of the largest weight


def likelihood_study(subject: Subject, window: int | None = None, channel: str | int | None = None) -> dict[str, Any]:
    """The signal and codes of a window in one channel, its likelihood under each class, and the classes' matrices.

    window : the number of a target window; by default a telling one, see `telling`
    channel : name or number; by default the one that tells most about that window
    """
    method, sides = subject.method, subject.windows
    settings, counts = method.settings, method.state.class_counts
    codes, labels = method.codes(sides.target), method.pseudo_label(sides.target)
    likelihoods = markov.log_likelihoods(codes, counts, settings.smoothing, settings.epsilon, settings.length)
    weights = method.channel_weights(subject.counts_of_target())
    rows = None if window is None else [_row_of(window, sides.target_rows)]
    channels = None if channel is None else [subject.channel(channel)]
    n, d = telling(codes, likelihoods, weights, labels, rows, channels)
    sequence = codes[n, d][codes[n, d] >= 0]
    return {
        "name": subject.name,
        "window": int(sides.target_rows[n]),
        "chosen_by_rule": window is None,
        "channel": subject.channel_names[d],
        "weight": float(weights[d]),
        "signal": _signal(sides.target, n, d),
        "patch_length": settings.patch_length,
        "codes": sequence.tolist(),
        "label": subject.class_names[labels.labels[n]],
        "probability": float(labels.probabilities[n].max()),
        "classes": _classes(subject, likelihoods[n, d]),
        "matrices": counts.probabilities("none")[:, d].tolist(),  # (K, n_c, n_c)
    }


def telling(
    codes: Codes,
    log_likelihoods: NDArray[np.float64],
    weights: NDArray[np.float64],
    labels: PseudoLabels,
    rows: list[int] | None = None,
    channels: list[int] | None = None,
) -> tuple[int, int]:
    """The window and channel with the most different transitions; no true label is asked.

    Looked at are windows among the most confident quarter of their label, in channels that by themselves give the same
    label and have at least half of the largest weight. Of equals, the window of higher confidence, then the first, is
    taken.

    codes : (n, D, N); log_likelihoods : (n, D, K); weights : (D,)
    rows, channels : choose among these only; the rule then orders them but leaves none out
    """
    agrees = log_likelihoods.argmax(axis=-1) == labels.labels[:, None]
    fit = agrees & (weights >= LEAST_WEIGHT * weights.max()) & _trusted(labels)[:, None]
    candidates = [
        (not fit[n, d], -_different_transitions(codes[n, d]), -labels.confidence[n], n, d)
        for n in (range(len(codes)) if rows is None else rows)
        for d in (range(codes.shape[1]) if channels is None else channels)
    ]
    *_, n, d = min(candidates)
    return n, d


def _trusted(labels: PseudoLabels) -> NDArray[np.bool_]:
    """Which windows are among the most confident of their label, (n,)."""
    trusted = np.zeros(len(labels.labels), np.bool_)
    for label in np.unique(labels.labels):
        rows = labels.labels == label
        trusted |= rows & (labels.confidence >= np.quantile(labels.confidence[rows], 1 - CONFIDENT_SHARE))
    return trusted


def _different_transitions(sequence: NDArray[np.integer]) -> int:
    real = sequence[sequence >= 0].tolist()
    return len(set(pairwise(real)))


def _row_of(window: int, target_rows: NDArray[np.int64]) -> int:
    found = np.flatnonzero(target_rows == window)
    if len(found):
        return int(found[0])
    few = ", ".join(str(row) for row in target_rows[:5])
    expected = f"one of the {len(target_rows)} target windows at hand ({few}, ... {target_rows[-1]})"
    raise invalid("window", expected=expected, got=window, advice="Choose one of these numbers.")


def _signal(windows: Windows, n: int, d: int) -> list[float]:
    return windows.values[n, d, : windows.lengths[n]].astype(np.float64).tolist()


def _classes(subject: Subject, log_likelihoods: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Per class the mean log likelihood of a transition (None: not in the source) and its share of the evidence."""
    shares = channel_posteriors(log_likelihoods[None, None])[0, 0]
    return [
        {"name": name, "log_likelihood": float(value) if np.isfinite(value) else None, "share": float(share)}
        for name, value, share in zip(subject.class_names, log_likelihoods, shares, strict=True)
    ]
