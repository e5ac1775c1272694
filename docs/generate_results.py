"""Write docs/results.md from the runs in docs/results/*.csv, which `transpl table --runs` wrote.

python docs/generate_results.py
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from transpl._utils.files import write_text
from transpl.benchmark.statistics import signed_rank_p

HERE = Path(__file__).parent
PAGE, INTRODUCTION, FOLDER = HERE / "results.md", HERE / "results_intro.md", HERE / "results"
TITLES = {"ucihar": "UCIHAR", "wisdm": "WISDM", "hhar": "HHAR", "ptb": "PTB"}
OURS, EARLIER = "transpl-plus", "transpl-plus-2025"
SHORT = {  # rows of the README's table
    "no-adapt": "no adaptation",
    "softmax": "Softmax",
    "shot": "SHOT",
    "t2pl": "T2PL",
    "transpl": "TransPL, fine-tuned",
    "transpl-markov": "its labels as the classifier (`transpl-markov`)",
    "transpl-plus": "`transpl-plus`",
    "transpl-plus-ws": "with known class proportions (`transpl-plus-ws`)",
    "transpl-plus-groups": "with known patients (`transpl-plus-groups`)",
    "transpl-plus-2025": "the earlier `transpl-plus`, replaced",
    "transpl-plus-2025-ws": "the same with known class proportions",
}
_METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "binary_f1": "F1 of class 1",
    "calibration_error": "ECE",
    "seconds": "seconds",
}
_SPREAD = ("accuracy", "macro_f1", "binary_f1")  # shown with their standard deviation over seeds


@dataclass(frozen=True)
class Run:
    """A line of a file."""

    dataset: str
    row: str
    pair: str
    seed: int
    scores: dict[str, float]


def main() -> None:
    """Write the page."""
    write_text(PAGE, page())
    print(f"wrote {PAGE}")


def page() -> str:
    """The whole page as Markdown."""
    beyond, parts, ablation = (read(FOLDER / f"{name}.csv") for name in ("beyond", "parts", "ablation"))
    sections = [INTRODUCTION.read_text(encoding="utf-8").strip()]
    for dataset in _datasets(beyond):
        runs = [run for run in beyond if run.dataset == dataset]
        sections += [f"## {TITLES[dataset]}", _means(runs, "method"), _against(runs), _pair_by_pair(runs)]
    sections += [f"## {EARLIER}, each part removed alone", *_titled(parts, "what is removed")]
    sections += ["## Channel alignment and class proportions", *_titled(ablation, "method")]
    return "\n\n".join(sections) + "\n"


def short_table() -> str:
    """The README's table: accuracy / macro-F1 where a row has all pairs of a set, with the number of seeds."""
    runs = read(FOLDER / "beyond.csv")
    by_set = {TITLES[name]: [run for run in runs if run.dataset == name] for name in _datasets(runs)}
    lines = [[title, *(_short(row, of_set) for of_set in by_set.values())] for row, title in SHORT.items()]
    return _table(["accuracy / macro-F1 (seeds)", *by_set], [line for line in lines if any(line[1:])])


def read(path: Path) -> list[Run]:
    """The runs of a file, in its order."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [_run(line) for line in csv.DictReader(stream)]


def mean_and_spread(runs: Sequence[Run], metric: str) -> tuple[float, float | None]:
    """Mean over the pairs of a seed, then mean and standard deviation over seeds, None with one of them.

    A seed that has fewer pairs than another does not count.
    """
    means = [fmean(run.scores[metric] for run in of_seed) for of_seed in _whole_seeds(runs)]
    return fmean(means), stdev(means) if len(means) > 1 else None


def _whole_seeds(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of each seed that has as many pairs as any."""
    by_seed: dict[int, list[Run]] = {}
    for run in runs:
        by_seed.setdefault(run.seed, []).append(run)
    most = max(map(len, by_seed.values()))
    return [of_seed for of_seed in by_seed.values() if len(of_seed) == most]


def _has_all_pairs(runs: Sequence[Run], of_set: Sequence[Run]) -> bool:
    """A mean over some of the pairs is not to be compared with one over all."""
    return len(_whole_seeds(runs)[0]) == len({run.pair for run in of_set})


def _run(line: dict[str, str]) -> Run:
    dataset, row, pair, seed = (line.pop(name) for name in ("dataset", "row", "pair", "seed"))
    return Run(dataset, row, pair, int(seed), {name: float(value) for name, value in line.items() if value})


def _titled(runs: Sequence[Run], corner: str) -> Iterator[str]:
    for dataset in _datasets(runs):
        yield f"{TITLES[dataset]}:"
        yield _means([run for run in runs if run.dataset == dataset], corner)


def _datasets(runs: Sequence[Run]) -> list[str]:
    there = {run.dataset for run in runs}
    return [name for name in TITLES if name in there]


def _rows(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.row, []).append(run)
    return found


def _short(row: str, of_set: Sequence[Run]) -> str:
    runs = [run for run in of_set if run.row == row]
    if not runs or not _has_all_pairs(runs, of_set):
        return ""
    scores = " / ".join(f"{mean_and_spread(runs, metric)[0]:.1f}" for metric in ("accuracy", "macro_f1"))
    return f"{scores} ({len(_whole_seeds(runs))})"


def _means(runs: Sequence[Run], corner: str) -> str:
    metrics = [name for name in _METRICS if name in runs[0].scores]
    lines = [
        [
            f"`{row}`",
            *(_shown(of_row, metric) if _has_all_pairs(of_row, runs) else "" for metric in metrics),
            _how_many(of_row),
        ]
        for row, of_row in _rows(runs).items()
    ]
    return _table([corner, *(_METRICS[metric] for metric in metrics), "seeds x pairs"], lines)


def _shown(runs: Sequence[Run], metric: str) -> str:
    mean, spread = mean_and_spread(runs, metric)
    return f"{mean:.1f} ± {spread:.1f}" if spread is not None and metric in _SPREAD else f"{mean:.1f}"


def _how_many(runs: Sequence[Run]) -> str:
    """As "3 x 10", and how many runs of seeds that lack pairs were left out."""
    whole = _whole_seeds(runs)
    rest = len(runs) - len(whole) * len(whole[0])
    return f"{len(whole)} x {len(whole[0])}" + (f" (and {rest} runs not counted)" if rest else "")


def _against(runs: Sequence[Run]) -> str:
    """Our method and every other row on the pairs and seeds that both have."""
    rows = _rows(runs)
    ours = OURS if OURS in rows else EARLIER
    lines = [_compared(row, rows[ours], others) for row, others in rows.items() if row != ours]
    return f"`{ours}` against each, accuracy over pairs (mean of the seeds that both have):\n\n" + _table(
        ["against", "difference", "pairs better", "worse", "Wilcoxon's p"], lines
    )


def _compared(row: str, ours: Sequence[Run], others: Sequence[Run]) -> list[str]:
    theirs = {(run.pair, run.seed): run.scores["accuracy"] for run in others}
    gains: dict[str, list[float]] = {}
    for run in ours:
        if (run.pair, run.seed) in theirs:
            gains.setdefault(run.pair, []).append(run.scores["accuracy"] - theirs[run.pair, run.seed])
    per_pair = [fmean(values) for values in gains.values()]
    better, worse = sum(gain > 0 for gain in per_pair), sum(gain < 0 for gain in per_pair)
    return [f"`{row}`", f"{fmean(per_pair):+.1f}", str(better), str(worse), f"{signed_rank_p(per_pair):.3f}"]


def _pair_by_pair(runs: Sequence[Run]) -> str:
    pairs = list(dict.fromkeys(run.pair for run in runs))
    lines = [
        [f"`{row}`", *(_mean_accuracy([run for run in of_row if run.pair == pair]) for pair in pairs)]
        for row, of_row in _rows(runs).items()
    ]
    return "Accuracy pair by pair, mean over seeds:\n\n" + _table(["method", *pairs], lines)


def _mean_accuracy(runs: Sequence[Run]) -> str:
    return f"{fmean(run.scores['accuracy'] for run in runs):.1f}" if runs else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---", *["--:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
