"""Explanations from drawn codes and counts, without any network."""

from __future__ import annotations

import json

import numpy as np
from scipy.special import softmax

from transpl.council import CouncilExplanation
from transpl.markov import Explanation, TransitionCounts, class_log_probabilities
from transpl.markov.nearest import SourceCodes, nearest_windows

CLASSES = np.array(["sit", "stand", "walk"])
CHANNELS = ("acc_x", "acc_y", "acc_z", "gyro")
SEATS = tuple((witness, view) for view in ("recorded", "standardised") for witness in ("codes", "linear", "trees"))
QUANTITIES = ("mean", "deviation", "energy in band 1 of 11")


def draw_codes(rng, n, D=4, N=9, n_codes=5, *, ragged=False):
    codes = rng.integers(0, n_codes, (n, D, N)).astype(np.int8)
    if ragged:
        for row, length in enumerate(rng.integers(2, N + 1, n)):
            codes[row, :, length:] = -1
    return codes


def made_up(
    seed=0,
    n=12,
    *,
    ragged=False,
    smoothing="floor",
    weights=(0.9, 0.5, 0.7, 0.1),
    absent=None,
    **change,
):
    rng = np.random.default_rng(seed)
    D, K = len(weights), len(CLASSES)
    known = draw_codes(rng, 40, D)
    y = rng.integers(0, K, 40)
    y[y == absent] = 0
    counts = TransitionCounts.from_codes(known, 5, y, K)
    codes, weights = draw_codes(rng, n, D, ragged=ragged), np.array(weights)
    answers = rng.dirichlet(np.ones(K), n)
    shares = weights / weights.sum() if weights.max() > 1e-6 else np.full(D, 1 / D)
    fields = {
        "classes": CLASSES,
        "channel_names": CHANNELS[:D],
        "codes": codes,
        "log_probabilities": class_log_probabilities(counts, smoothing),
        "distances": 0.2 * np.sqrt(-np.log(weights)),
        "weights": weights,
        "shares": shares,
        "answers": answers,
        "mode": "finetune",
        "patch_length": 8,
        "windows": np.arange(100, 100 + n),
        "signals": rng.normal(size=(n, D, 75)).astype(np.float32),
        "nearest": nearest_windows(codes, SourceCodes.numbered(known, y, K), shares, CLASSES, 3),
    }
    return Explanation(**{**fields, **change})


def made_up_council(seed=0, n=12, *, ragged=False, absent=None, linear=True, seats=SEATS, **change):
    """What a council might say; its answers are the sums of its parts unless given."""
    rng = np.random.default_rng(seed)
    D, K, S = len(CHANNELS), len(CLASSES), len(seats)
    known, y = draw_codes(rng, 40, D), rng.integers(0, K, 40)
    y[y == absent] = 0
    counts = TransitionCounts.from_codes(known, 5, y, K)
    codes, weights = draw_codes(rng, n, D, ragged=ragged), np.array([0.9, 0.5, 0.7, 0.1])
    seat_answers = rng.dirichlet(0.7 * np.ones(K), (n, S))
    names = tuple((channel, quantity) for quantity in QUANTITIES for channel in CHANNELS)
    fields = {
        "classes": CLASSES,
        "channel_names": CHANNELS,
        "seats": seats,
        "evidence": rng.uniform(0.1, 0.8, (S, 1)) * np.log(seat_answers + 1e-3),
        "bias": np.log(rng.dirichlet(9 * np.ones(K))),
        "rest": rng.normal(size=(n, K)) * (rng.uniform(size=(n, 1)) < 0.3),
        "seat_answers": seat_answers,
        "accuracies": rng.uniform(0.4, 0.95, S),
        "mode": "markov",
        "patch_length": 8,
        "windows": np.arange(100, 100 + n),
        "signals": rng.normal(size=(n, D, 75)).astype(np.float32),
        "nearest": nearest_windows(codes, SourceCodes.numbered(known, y, K), weights / weights.sum(), CLASSES, 3),
        "distances": 0.2 * np.sqrt(-np.log(weights)),
        "weights": weights,
        "codes": codes,
        "code_log_probabilities": class_log_probabilities(counts, "additive"),
    }
    if linear:
        fields |= {
            "features": rng.normal(size=(n, len(names))).astype(np.float32),
            "feature_weights": rng.normal(size=(K, len(names))),
            "feature_bias": rng.normal(size=K),
            "feature_names": names,
            "linear_view": "standardised",
        }
    fields |= change
    fields.setdefault("answers", softmax(fields["evidence"].sum(axis=1) + fields["bias"] + fields["rest"], axis=1))
    return CouncilExplanation(**fields)


def edit_saved(path, change):
    """Change arrays (None removes one) and plain facts of a saved explanation."""
    arrays = dict(np.load(path))
    about = json.loads(arrays["about"].tobytes())
    for name, value in change.items():
        (arrays if isinstance(value, np.ndarray | None) else about)[name] = value
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
