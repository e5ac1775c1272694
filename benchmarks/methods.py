"""Methods side by side on pairs of a data set, one JSON line per run; goes on where it was interrupted.

python -m benchmarks.methods --dataset ucihar --pairs 2-11 6-23 --methods all --seeds 0 --out runs.jsonl
python -m benchmarks.methods --dataset wisdm --methods deepcoral --preset adatime --set max_epochs=40 --out wisdm.jsonl
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import parse_value
from transpl import datasets
from transpl.benchmark import Result, compare, settings_of
from transpl.methods.registry import names
from transpl.training import Execution


def main(words: list[str] | None = None) -> None:
    options = parse(words)
    data = datasets.load(options.dataset)
    pairs = [tuple(map(int, pair.split("-"))) for pair in options.pairs] or data.pairs
    methods = list(names()) if options.methods == ["all"] else options.methods
    changes = {name: parse_value(value) for name, value in (change.split("=", 1) for change in options.set)}
    done = {key(result): result for result in finished(options.out)}
    wanted = []
    for seed in options.seeds:
        settings = settings_of(methods, data.name, seed, options.preset, changes)
        for pair in pairs:
            runs = {name: key(Result(data.name, pair, name, seed, asdict(settings[name]))) for name in methods}
            wanted += runs.values()
            missing = [name for name, run in runs.items() if run not in done]
            for result in compare(data, pair, missing, seed, Execution("cpu", n_threads=1), options.preset, changes):
                append(options.out, result)
                print(line(result), flush=True)
                done[key(result)] = result
    print("\n" + table(done[run] for run in wanted))


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="ucihar")
    parser.add_argument("--pairs", nargs="*", default=[], help="as 2-11; default: all pairs of the set")
    parser.add_argument("--methods", nargs="+", default=["all"], help="names, or all; see `transpl methods`")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument(
        "--preset", default="paper", help="for the methods that have it; the others: the paper's values"
    )
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="for the methods that have the field"
    )
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines to append to")
    return parser.parse_args(words)


def key(result: Result) -> str:
    """What a run is, whatever came of it."""
    what = result.as_dict()
    return json.dumps([what[name] for name in ("dataset", "pair", "method", "seed", "settings")], sort_keys=True)


def finished(path: Path) -> Iterable[Result]:
    """The runs of a file that have scores; a last line that was cut off is dropped from the file."""
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    results = [Result.from_dict(json.loads(each)) for each in whole.splitlines()]
    return [result for result in results if result.error is None]


def append(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result.as_dict()) + "\n")


def line(result: Result) -> str:
    run = f"{result.pair[0]}-{result.pair[1]}".ljust(7) + f"{result.seed:>3}  {result.method:<12}"
    if result.error is not None:
        return f"{run}{result.error}"
    scores = " ".join(f"{part:>6}" for part in numbers([result]))
    return f"{run}{scores}  {'+'.join(map(str, result.epochs.values()))} epochs"


def table(results: Iterable[Result]) -> str:
    """Means over pairs and seeds as Markdown; a method with failed runs shows how many it is the mean of."""
    by_method: dict[str, list[Result]] = {}
    for result in results:
        by_method.setdefault(result.method, []).append(result)
    rows: list[list[Any]] = [["method", "runs", "accuracy", "macro-F1", "pseudo-labels", "seconds"], ["---"] * 6]
    for method, runs in by_method.items():
        scored = [run for run in runs if run.error is None]
        count = str(len(runs)) if len(scored) == len(runs) else f"{len(scored)} of {len(runs)}"
        rows.append([method, count, *(numbers(scored) if scored else ["-"] * 4)])
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def numbers(runs: list[Result]) -> list[str]:
    """Accuracy, macro-F1 and the accuracy of the first pseudo-labels in %, and the seconds of all stages."""
    values = [
        (
            100 * run.test["accuracy"],
            100 * run.test["macro_f1"],
            100 * run.pseudo_labels["initial"]["accuracy"],
            sum(run.seconds.values()),
        )
        for run in runs
    ]
    return [f"{mean:.1f}" for mean in np.mean(values, axis=0)]


if __name__ == "__main__":
    main()
