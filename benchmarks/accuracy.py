"""Accuracy and time of the paper's method on pairs of a data set, by its protocol; one line per run.

python -m benchmarks.accuracy --dataset ucihar --pairs 2-11 --seeds 0 1 2
python -m benchmarks.accuracy --dataset watch --demo --set adapt_stopping=labels
"""

from __future__ import annotations

import argparse
import ast

from transpl import TransPL, datasets, jobs
from transpl.jobs.target_summary import score


def main() -> None:
    options = parse()
    data = datasets.load(options.dataset)
    pairs = [tuple(map(int, pair.split("-"))) for pair in options.pairs] or data.pairs
    settings = {"max_epochs": 40, "source_lr": 2e-3, "adapt_lr": 2e-3} if options.demo else {}
    settings |= {"variant": "paper"} | {
        name: parse_value(value) for name, value in (change.split("=") for change in options.set)
    }
    print("pair   seed  before acc/mf1  pseudo acc/mf1  markov acc/mf1   after acc/mf1  epochs  seconds per stage")
    for source, target in pairs:
        job = jobs.from_dataset(data, source, target, all_source=options.demo)
        for seed in options.seeds:
            run(job, f"{source}-{target}", TransPL(random_state=seed, n_threads=1, device="cpu", **settings))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="ucihar")
    parser.add_argument("--pairs", nargs="*", default=[], help="as 2-11; default: all pairs of the set")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--demo", action="store_true", help="the settings of `transpl demo` instead of the paper's")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="other parameters of TransPL")
    return parser.parse_args()


def parse_value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


def run(job: jobs.Job, pair: str, model: TransPL) -> None:
    assert job.test is not None
    validation = () if job.validation is None else (job.validation.X, job.validation.y)
    model.fit(job.source.X, job.source.y, *validation)
    before = score(job.test.y, model.predict(job.test.X))
    model.adapt(job.target.X, mode="markov")
    pseudo = score(job.target.y, model.pseudo_label(job.target.X).labels)
    markov = score(job.test.y, model.predict(job.test.X))
    model.adapt(job.target.X)
    after = score(job.test.y, model.predict(job.test.X))
    scores = "  ".join(
        f"{100 * s['accuracy']:7.1f}/{100 * s['macro_f1']:4.1f} " for s in (before, pseudo, markov, after)
    )
    epochs = "+".join(str(len(records)) for records in model.history_.values())
    seconds = ", ".join(f"{stage} {value:.1f}" for stage, value in model.seconds_.items())
    print(f"{pair:<7}{model.random_state:>4}  {scores}  {epochs}  {seconds}", flush=True)


if __name__ == "__main__":
    main()
