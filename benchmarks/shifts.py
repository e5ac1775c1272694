"""Known shifts put on real targets: how often each is found, what is undone by mistake, and what that does to accuracy.

python -m benchmarks.shifts --dataset ucihar wisdm --out shifts.csv
python -m benchmarks.shifts --dataset ucihar --channels total_acc_x total_acc_y total_acc_z
python -m benchmarks.shifts --dataset own --pairs 1-2 3-4

One row of the CSV is one search. Labels of the target serve to judge alone. Without --pairs, the development pairs of
docs/beyond.md are run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier

from benchmarks.development import PAIRS
from transpl import datasets
from transpl.council.shifts import TURNS, Shift, ShiftSearch, find_shift, find_triads, is_rotation_rate

PACES = (0.5, 0.8, 1.25, 2.0)
GRAVITY = 9.80665  # m/s²
DRAWS = {"turn": 6, "flip": 3, "swap": 2, "swap across triads": 1}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Case(NamedTuple):
    """A shift to simulate; `label` is its row in the summary."""

    label: str
    shift: Shift


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", nargs="+", default=["ucihar", "wisdm"])
    parser.add_argument("--pairs", nargs="*", default=[], help="as 1-17; default: the development pairs")
    parser.add_argument("--channels", nargs="*", default=[], help="these alone; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    for name in options.dataset:
        pairs = options.pairs or PAIRS.get(name, "").split()
        if not pairs:
            print(f"{name}: no development pairs; name some with --pairs")
            continue
        data = chosen(datasets.load(name), options.channels)
        for pair in pairs:
            rows += run_pair(data, pair, options.seed)
            print(f"{data.name} {pair}: {rows[-1]['seconds']:.2f} CPU s for the last search", flush=True)
    if not rows:
        return
    table = pd.DataFrame(rows)
    if options.out is not None:
        table.to_csv(options.out, index=False)
    print(summary(table).to_string())


def chosen(data: datasets.Dataset, channels: list[str]) -> datasets.Dataset:
    """The data set with these channels alone, under a name that says so."""
    if not channels:
        return data
    columns = [data.channel_names.index(channel) for channel in channels]
    name = f"{data.name} {channels[0]}..{channels[-1]}"
    return replace(data, name=name, X=data.X[:, columns], channel_names=tuple(channels))


def run_pair(data: datasets.Dataset, pair: str, seed: int) -> list[dict[str, object]]:
    ids = tuple(map(int, pair.split("-")))
    source, target = (data.domain(i) for i in ids)
    judge = Judge(source.X_train, source.y_train)
    untouched = judge.accuracy(target.X_train, target.X_test, target.y_test)
    rows = []
    for case in cases(data.channel_names, target.X_train, np.random.default_rng([seed, *ids])):
        suffered, tested = (simulated(case.shift, X) for X in (target.X_train, target.X_test))
        start = time.process_time()
        found = find_shift(source.X_train, source.y_train, suffered, channel_names=data.channel_names)
        seconds = time.process_time() - start
        blank = any(shift.dead for shift in found.shifts)
        undoer = Judge(found.undo_source(source.X_train), source.y_train) if blank else judge
        rows.append(
            {
                "dataset": data.name,
                "pair": pair,
                "case": case.label,
                "shift": case.shift.sentence(data.channel_names),
                "outcome": outcome(case.shift, found, target.X_train, suffered),
                "undone": " ".join(found.sentences(data.channel_names)),
                "untouched": untouched,
                "shifted": judge.accuracy(suffered, tested, target.y_test),
                "restored": undoer.accuracy(found.undo(suffered), found.undo(tested), target.y_test),
                "seconds": seconds,
            }
        )
    return rows


def cases(names: tuple[str, ...], target: np.ndarray, rng: np.random.Generator) -> Iterator[Case]:
    D = len(names)
    triads = find_triads(None, names, D)
    yield Case("none", Shift())
    for turn in rng.choice(len(TURNS) - 1, DRAWS["turn"], replace=False) + 1:
        yield Case("turn", Shift.turn(TURNS[turn], triads, D))
    for channel in rng.choice(D, DRAWS["flip"], replace=False).tolist():
        yield Case("flip", Shift.flip([channel], D))
    for triad in rng.choice(triads, DRAWS["swap"]):
        yield Case("swap", Shift.swap(*rng.choice(triad, 2, replace=False).tolist(), D))
    for _ in range(DRAWS["swap across triads"] if len(triads) > 1 else 0):
        one, other = rng.choice(triads, 2, replace=False)
        yield Case("swap across triads", Shift.swap(int(rng.choice(one)), int(rng.choice(other)), D))
    felt = [triad for triad in triads if not is_rotation_rate(triad, names)]
    for factor in (GRAVITY, 1 / GRAVITY):
        triad = rng.choice(felt)
        yield Case("unit", Shift("unit", factors=tuple(factor if d in triad else 1.0 for d in range(D))))
    for rate in PACES:
        yield Case(f"pace {rate:g}", Shift("pace", rate=rate))
    channel = int(rng.integers(D))
    yield Case("dead", Shift("dead", dead=(channel,), fill=(float(target[0, channel, 0]),)))


def simulated(shift: Shift, values: np.ndarray) -> np.ndarray:
    """Windows that suffered the shift, as long as they were: cut, or continued by their mirror image."""
    caused = shift.cause(values)
    spare = values.shape[2] - caused.shape[2]
    if spare > 0:
        return np.pad(caused, ((0, 0), (0, 0), (0, spare)), mode="reflect")
    return caused[:, :, -spare // 2 : -spare // 2 + values.shape[2]]


def outcome(true: Shift, found: ShiftSearch, before: np.ndarray, after: np.ndarray) -> str:
    """Exact: this shift and nothing else was undone. Missed: nothing was undone. Wrong: anything else was."""
    if true.kind == "pace":
        exact = [(shift.kind, shift.rate) for shift in found.shifts] == [("pace", true.rate)]
    elif true.kind == "dead":
        exact = [(shift.kind, shift.dead) for shift in found.shifts] == [("dead", true.dead)]
    else:
        exact = bool(np.allclose(found.undo(after), before, rtol=1e-4, atol=1e-5))
    return "exact" if exact else "wrong" if found.shifts else "missed"


class Judge:
    """Extremely randomised trees on simple statistics, each domain's standardised by its own mean and deviation."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        trees = ExtraTreesClassifier(300, min_samples_leaf=2, random_state=0)
        self.trees = trees.fit(standardised(statistics(X), statistics(X)), y)

    def accuracy(self, X: np.ndarray, tested: np.ndarray, y: np.ndarray) -> float:
        return float(self.trees.score(standardised(statistics(tested), statistics(X)), y))


def statistics(X: np.ndarray) -> np.ndarray:
    """Mean, deviation, deviation of differences, quantiles, spectrum and products of channels, (n, columns)."""
    values = X.astype(np.float64)
    _, D, T = values.shape
    centred = values - values.mean(axis=2, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, axis=2))[:, :, 1:] ** 2
    edges = np.unique(np.geomspace(1, spectrum.shape[2], 9).astype(int)) - 1
    columns = [values.mean(axis=2), values.std(axis=2), np.diff(values, axis=2).std(axis=2)]
    columns += list(np.quantile(values, QUANTILES, axis=2))
    columns += list(np.log(np.add.reduceat(spectrum, edges, axis=2) + 1e-6).transpose(2, 0, 1))
    products = np.einsum("nct,ndt->ncd", centred, centred)[:, *np.triu_indices(D, 1)] / T
    return np.concatenate([*columns, products], axis=1)


def standardised(rows: np.ndarray, by: np.ndarray) -> np.ndarray:
    deviation = by.std(axis=0)
    return (rows - by.mean(axis=0)) / np.where(deviation > 1e-8, deviation, 1.0)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Shares of outcomes, mean accuracies in % and mean CPU seconds for each data set and kind of shift."""
    groups = table.groupby(["dataset", "case"], sort=False)
    shares = groups["outcome"].value_counts(normalize=True).unstack(fill_value=0.0)
    shares = shares.reindex(columns=["exact", "missed", "wrong"], fill_value=0.0)
    means = groups[["untouched", "shifted", "restored"]].mean()
    return (
        pd.concat([groups.size().rename("n"), 100 * shares, 100 * means], axis=1)
        .round(1)
        .join(groups["seconds"].mean().round(2))
    )


if __name__ == "__main__":
    main()
