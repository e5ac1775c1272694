"""The council on the development pairs of docs/beyond.md: how good it is, and how good it believes it is.

python -m benchmarks.development --dataset ucihar wisdm hhar ptb --seeds 3 --out development.csv
python -m benchmarks.development --dataset ucihar --turn --out turned.csv

One row of the CSV is one pair with one seed; rows that the file has already are not run again. Labels of the target
judge alone. With --turn the target's sensors are turned by one of the 23 turns of the cube, another for each pair.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from transpl import datasets
from transpl._utils.metrics import accuracy, calibration_error, macro_f1
from transpl.council import Council, CouncilAnswer, CouncilSettings
from transpl.council.shifts import TURNS, Shift, find_triads
from transpl.jobs import check_order
from transpl.windows import Labelled, Windows, as_windows

# No target of the paper's pairs is a target here, except in HHAR, where all nine users are.
PAIRS = {
    "ucihar": "1-17 4-24 4-28 7-10 10-12 12-25 14-4 14-6 19-14 26-1 26-21 28-15",
    "wisdm": "5-25 5-33 6-14 6-28 9-0 10-29 13-10 25-35 29-2 29-6 33-22 35-13",
    "hhar": "2-0 5-1 4-2 6-3 8-4 1-5 4-6 3-7 7-8",
    "ptb": "1-2 3-2 4-2",
}
NO_AXES = {"ptb"}  # leads named vx, vy, vz belong to no sensor that could turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", nargs="+", default=list(PAIRS), choices=list(PAIRS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--turn", action="store_true", help="turn the target's sensors first")
    parser.add_argument("--witnesses", nargs="+", default=list(CouncilSettings.witnesses))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = pd.read_csv(options.out).to_dict("records") if options.out.is_file() else []
    done = {(row["dataset"], row["pair"], row["seed"]) for row in rows}
    for name in options.dataset:
        for at, pair in enumerate(PAIRS[name].split()):
            for seed in range(options.seeds):
                if (name, pair, seed) in done:
                    continue
                turn = 1 + 7 * at % 23 if options.turn else 0
                rows.append(judged(name, pair, seed, turn, tuple(options.witnesses)))
                pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.4f")
    print(summary(pd.DataFrame(rows)).to_string())


def judged(name: str, pair: str, seed: int, turn: int, witnesses: tuple[str, ...]) -> dict[str, Any]:
    """One pair with one seed; `turn` is a number of `TURNS`, 0 turns nothing."""
    data = datasets.load(name)
    here, there = (data.domain(int(number)) for number in pair.split("-"))
    names = None if name in NO_AXES else tuple(data.channel_names)
    source = Labelled(as_windows(here.X_train), here.y_train, len(data.class_names))
    target, test = (turned(X, names, turn) for X in (there.X_train, there.X_test))
    start = time.process_time()
    council = Council(CouncilSettings(witnesses=witnesses, channel_names=names, random_state=seed)).learn(source)
    before = council.predict(test).probabilities
    adapted = council.adapt(source, target)
    heard = council.predict(test)
    seconds = time.process_time() - start
    assert council.estimate is not None
    assert council.shifts is not None
    return {
        "dataset": name,
        "pair": pair,
        "seed": seed,
        "turn": turn,
        **scores(there.y_test, before, "before_"),
        **scores(there.y_test, heard.probabilities),
        **ranking(there.y_test, heard.probabilities, council.source_shares),
        "labels_accuracy": accuracy(there.y_train, adapted.probabilities.argmax(axis=1)),
        "estimated": council.estimate.accuracy,
        "low": council.estimate.low,
        "high": council.estimate.high,
        **rivals(adapted),
        "undone": " ".join(council.shifts.sentences(names)) if council.shifts.shifts else "",
        "cpu_seconds": seconds,
    }


def turned(X: np.ndarray, names: tuple[str, ...] | None, turn: int) -> Windows:
    if turn == 0:
        return as_windows(X)
    triads = find_triads(None, names, X.shape[1])
    return as_windows(Shift.turn(TURNS[turn], triads, X.shape[1]).cause(np.asarray(X, np.float32)))


def scores(y: np.ndarray, probabilities: np.ndarray, prefix: str = "") -> dict[str, float]:
    labels = probabilities.argmax(axis=1)
    return {
        f"{prefix}accuracy": accuracy(y, labels),
        f"{prefix}macro_f1": macro_f1(y, labels),
        f"{prefix}ece": calibration_error(y, probabilities),
    }


def ranking(y: np.ndarray, probabilities: np.ndarray, shares: np.ndarray) -> dict[str, float]:
    """AUROC for telling right labels from wrong ones: of the confidence and of the order in which to check them."""
    right = probabilities.argmax(axis=1) == y
    if right.all() or not right.any():
        return {}
    place = np.argsort(check_order(probabilities, shares))
    return {
        "auroc_confidence": roc_auc_score(right, probabilities.max(axis=1)),
        "auroc_check": roc_auc_score(right, place),
    }


def rivals(heard: CouncilAnswer) -> dict[str, float]:
    """Simpler signs of how good the labels are."""
    named, labels = heard.seat_answers.argmax(axis=2), heard.probabilities.argmax(axis=1)
    return {
        "mean_confidence": float(heard.seat_answers.mean(axis=1).max(axis=1).mean()),
        "agreement": float((named == labels[:, None]).mean()),
    }


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means by data set in %; `off_*` is how far a sign is from the truth, `r_*` its correlation with it."""
    found = {}
    for name, of in rows.groupby("dataset", sort=False):
        means = 100 * of[["before_accuracy", "accuracy", "macro_f1", "ece", "labels_accuracy"]].mean()
        signs = {}
        for sign in ("estimated", "mean_confidence", "agreement"):
            signs[f"off_{sign}"] = 100 * (of[sign] - of["accuracy"]).abs().mean()
            signs[f"r_{sign}"] = of[sign].corr(of["accuracy"])
        inside = 100 * ((of["low"] <= of["accuracy"]) & (of["accuracy"] <= of["high"])).mean()
        harmed = int((of["accuracy"] < of["before_accuracy"] - 0.02).sum())
        found[name] = {**means, **signs, "in_interval": inside, "harmed": harmed, "runs": len(of)} | {
            "undone": int((of["undone"].fillna("") != "").sum()),
            "cpu_seconds": of["cpu_seconds"].mean(),
            **of.filter(like="auroc_").mean(),
        }
    return pd.DataFrame(found).round(2)


if __name__ == "__main__":
    main()
