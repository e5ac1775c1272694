"""Write docs/results.md and the README's table from docs/results/*.csv, lines of `transpl bench --save-lines`.

python docs/generate_results.py
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import ascii_lowercase

import pandas as pd

from transpl._utils.files import write_text
from transpl.benchmark.paper_tables import paper_table
from transpl.benchmark.statistics import Statistics, signed_rank_p, statistics_over_pairs

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
PAGE, INTRODUCTION, FOLDER = HERE / "results.md", HERE / "results_intro.md", HERE / "results"
TITLES = {"ucihar": "UCIHAR", "wisdm": "WISDM", "hhar": "HHAR", "ptb": "PTB"}
RANKED = ("ucihar", "wisdm", "hhar"), ("ucihar", "wisdm", "hhar", "ptb")  # fewer methods were run on PTB
OURS, EARLIER = "transpl-plus", "transpl-plus-2025"
SHORT = {  # rows of the README's table
    "no-adapt": "no adaptation, the paper's network",
    "transpl": "TransPL as published",
    "no-adapt, CNN": "no adaptation, CNN",
    "adabn, CNN": "AdaBN, CNN",
    "cdan, CNN": "CDAN, CNN",
    "dirt-t, CNN": "DIRT-T, CNN",
    "features-linear": "logistic regression on statistics",
    "features-trees": "trees on statistics",
    "transpl-plus": "**TransPL here** (`transpl-plus`)",
    "transpl-plus-ws": "the same, class proportions known",
}
FIELD = {  # what AdaTime's own code gave on the same arrays, seed 0, last epoch: accuracy, macro-F1
    ("ucihar", "no-adapt, CNN"): (83.6, 83.6),
    ("ucihar", "cdan, CNN"): (90.4, 90.3),
    ("ucihar", "dirt-t, CNN"): (88.9, 88.8),
    ("wisdm", "no-adapt, CNN"): (68.2, 52.9),
    ("wisdm", "cdan, CNN"): (71.3, 50.2),
    ("hhar", "no-adapt, CNN"): (64.4, 59.7),
    ("ptb", "no-adapt, CNN"): (64.5, 44.2),
    ("ptb", "cdan, CNN"): (60.1, 41.3),
}
_KNOWS_MORE = ("target-only", "-ws", "-groups", EARLIER)  # not compared with the others
_NO_NETWORK = ("features-linear", "features-trees")
_METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "binary_f1": "F1 of class 1",
    "calibration_error": "ECE",
    "seconds": "seconds",
}
_WITH_SPREAD = ("accuracy", "macro_f1", "binary_f1")  # shown with their standard deviation over seeds


def main() -> None:
    """Write the page, and refill the README."""
    write_text(PAGE, page())
    print(f"wrote {PAGE}")
    write_text(README, refilled(README.read_text(encoding="utf-8")))


def refilled(readme: str) -> str:
    """Return the README with the table and the statement about ranks of these runs."""
    table = re.compile(r"\| accuracy / macro-F1 \(seeds\).*?\n(?=\n)", re.S)
    statement = re.compile(r"Over the 30 pairs of.*?(?=\n\n)", re.S)
    rest = re.search(r"\[All\s+methods,.*?(?=\n\n)", readme, re.S)
    assert rest is not None
    words = f"{headline()} {' '.join(rest[0].split())}"
    wrapped = textwrap.fill(words, 132, break_long_words=False, break_on_hyphens=False)
    return statement.sub(lambda _: wrapped, table.sub(lambda _: f"{short_table()}\n", readme, 1), 1)


def page() -> str:
    """The whole page as Markdown."""
    runs, parts, ablation = all_runs(), read(FOLDER / "parts.csv"), read(FOLDER / "ablation.csv")
    sections = [INTRODUCTION.read_text(encoding="utf-8").strip(), standings(runs), cross_check(runs)]
    for title, of_set in _by_dataset(runs):
        sections += [f"## {title}", table_of_means(of_set, "method"), not_run(of_set)]
        sections += [_against_each(of_set), _pair_by_pair(of_set)]
    for heading, of_parts, corner in (
        (f"{EARLIER}, each part removed alone", parts, "what is removed"),
        ("Channel alignment and class proportions", ablation, "method"),
    ):
        sections.append(f"## {heading}")
        for title, runs in _by_dataset(of_parts):
            sections += [f"{title}:", table_of_means(runs, corner)]
    return "\n\n".join(sections) + "\n"


def short_table() -> str:
    """The README's table: accuracy / macro-F1 where a row has all pairs of a set, with the number of seeds."""
    sets = dict(_by_dataset(all_runs()))

    def cell(row: str, of_set: pd.DataFrame) -> str:
        runs = of_set[of_set["row"] == row]
        if runs.empty or not _has_all_pairs(runs, of_set):
            return "not run"
        accuracy, macro_f1 = (mean_and_spread(runs, metric)[0] for metric in ("accuracy", "macro_f1"))
        return f"{accuracy:.1f} / {macro_f1:.1f} ({whole_seeds(runs)['seed'].nunique()})"

    lines = [[title, *(cell(row, of_set) for of_set in sets.values())] for row, title in SHORT.items()]
    return _markdown(["accuracy / macro-F1 (seeds)", *sets], lines)


def all_runs() -> pd.DataFrame:
    """The runs of methods on the paper's network, on the field's CNN and without a network; rows say which."""
    beyond, shallow, cnn = (read(FOLDER / f"{name}.csv") for name in ("beyond", "shallow", "cnn"))
    cnn = cnn[cnn["backbone"] == "cnn"]  # the others have more seeds in shallow.csv
    return pd.concat([beyond, shallow, cnn.assign(row=cnn["row"] + ", CNN")])


def ranks(runs: pd.DataFrame, sets: Sequence[str]) -> Statistics:
    """Ranks in accuracy over the pairs of these sets, of the rows that have all of them.

    Rows that know more than the windows (class proportions, patients, labels) are left out.
    """
    chosen = runs[runs["dataset"].isin(sets)]
    by_set = [of_set for _, of_set in chosen.groupby("dataset")]
    complete = [{row for row, found in of_set.groupby("row") if _has_all_pairs(found, of_set)} for of_set in by_set]
    rows = {row for row in set.intersection(*complete) if not any(word in row for word in _KNOWS_MORE)}
    return statistics_over_pairs(
        {
            str(row): found.groupby(["dataset", "pair"])["accuracy"].mean().to_dict()
            for row, found in chosen[chosen["row"].isin(rows)].groupby("row")
        }
    )


def headline() -> str:
    """The README's sentences on who is first, and by how much."""
    runs = all_runs()
    return " ".join(_place_of_ours(ranks(runs, sets), sets) for sets in RANKED)


def _place_of_ours(found: Statistics, sets: Sequence[str]) -> str:
    place = found.methods.index(OURS) + 1
    apart = _apart(found)
    equals = [f"`{name}`" for name in found.methods if name not in {OURS, *apart}]
    tied = f", not from {', '.join(equals)}" if equals else ""
    return (
        f"Over the {len(found.pairs)} pairs of {_listed(sets)}, `{OURS}` has average rank "
        f"{found.average_ranks[place - 1]:.1f} in accuracy, number {place} of {len(found.methods)} methods; Nemenyi's "
        f"test tells it apart from {len(apart)} of them{tied}."
    )


def standings(runs: pd.DataFrame) -> str:
    """Everybody's rank, and which rows are not told apart."""
    sections = [
        "## Ranks over all pairs\n\nAverage ranks in accuracy, mean over a row's seeds, of the rows that have every "
        "pair. Rows that share a letter are not told apart: their ranks differ by less than the critical difference, "
        "by Nemenyi's test with ranks shuffled on every pair, at 5 % for all comparisons together. Methods that know "
        "more than the windows (class proportions, patients, labels) are left out."
    ]
    for sets in RANKED:
        found = ranks(runs, sets)
        lines = [
            [f"`{name}`", f"{rank:.2f}", " ".join(_letters(found, name))]
            for name, rank in zip(found.methods, found.average_ranks, strict=True)
        ]
        sections += [
            f"{len(found.pairs)} pairs of {_listed(sets)}, critical difference {found.critical_difference:.2f}:",
            _markdown(["method", "average rank", "not told apart"], lines),
        ]
    return "\n\n".join(sections)


def _letters(found: Statistics, name: str) -> list[str]:
    return [letter for letter, group in zip(ascii_lowercase, found.groups, strict=False) if name in group]


def _listed(sets: Sequence[str]) -> str:
    titles = [TITLES[name] for name in sets]
    return f"{', '.join(titles[:-1])} and {titles[-1]}"


def _apart(found: Statistics) -> set[str]:
    tests = [test for test in found.tests if test.significant and OURS in (test.first, test.second)]
    return {name for test in tests for name in (test.first, test.second)} - {OURS}


def cross_check(runs: pd.DataFrame) -> str:
    """Our CNN beside what AdaTime's own code gave on the same arrays."""
    lines = []
    for (dataset, row), figures in FIELD.items():
        of_set = runs[runs["dataset"] == dataset]
        of_row = of_set[of_set["row"] == row]
        done = not of_row.empty and _has_all_pairs(of_row, of_set)
        ours = [_mean(of_row, metric) if done else "not run" for metric in ("accuracy", "macro_f1")]
        seeds = str(whole_seeds(of_row)["seed"].nunique()) if done else ""
        gain = f"{mean_and_spread(of_row, 'accuracy')[0] - figures[0]:+.1f}" if done else ""
        lines.append([f"{TITLES[dataset]} `{row}`", *(f"{value:.1f}" for value in figures), *ours, gain, seeds])
    columns = ["", "AdaTime accuracy", "macro-F1", "ours accuracy", "macro-F1", "difference in accuracy", "seeds"]
    return (
        "## Beside AdaTime's own code\n\nSame arrays, last epoch. AdaTime: seed 0, the test part scaled by its own "
        "statistics. Ours: by those of the target's train part; ± is the standard deviation over seeds.\n\n"
        + _markdown(columns, lines)
    )


def read(path: Path) -> pd.DataFrame:
    """The runs of a file, in its order: data set, row, pair, seed, and a column per metric."""
    return pd.read_csv(path)


def whole_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the seeds that have as many pairs as any seed."""
    sizes = runs.groupby("seed").size()
    return runs[runs["seed"].map(sizes) == sizes.max()]


def mean_and_spread(runs: pd.DataFrame, metric: str) -> tuple[float, float | None]:
    """Mean over the pairs of each whole seed, then mean and standard deviation over seeds (None with one seed)."""
    means = whole_seeds(runs).groupby("seed", sort=False)[metric].mean()
    return means.mean(), means.std() if len(means) > 1 else None


def table_of_means(runs: pd.DataFrame, corner: str) -> str:
    """A line per row; a row that lacks pairs has no means, which would not be comparable."""
    metrics = [name for name in _METRICS if name in runs and pd.notna(runs[name].iloc[0])]
    lines = []
    for row, of_row in runs.groupby("row", sort=False):
        complete, whole = _has_all_pairs(of_row, runs), whole_seeds(of_row)
        size = f"{whole['seed'].nunique()} x {whole['pair'].nunique()}"
        rest = len(of_row) - len(whole)
        lines.append(
            [
                f"`{row}`",
                *(_mean(of_row, metric) if complete else "" for metric in metrics),
                size + (f" (and {rest} runs not counted)" if rest else ""),
            ]
        )
    return _markdown([corner, *(_METRICS[metric] for metric in metrics), "seeds x pairs"], lines)


def not_run(of_set: pd.DataFrame) -> str:
    """The rows of the tables `full`, `beyond` and `cnn` that lack pairs of a set."""
    dataset = of_set["dataset"].iloc[0]
    planned = [row.label for name in ("full", "beyond") for row in paper_table(name).rows(dataset)]
    planned += [
        row.label if row.method in _NO_NETWORK else f"{row.label}, CNN" for row in paper_table("cnn").rows(dataset)
    ]
    complete = {row for row, runs in of_set.groupby("row") if _has_all_pairs(runs, of_set)}
    missing = [f"`{row}`" for row in dict.fromkeys(planned) if row not in complete]
    return f"Not run on every pair: {', '.join(missing)}." if missing else "Every planned row has every pair."


def _by_dataset(runs: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, title in TITLES.items():
        if (runs["dataset"] == name).any():
            yield title, runs[runs["dataset"] == name]


def _has_all_pairs(runs: pd.DataFrame, of_set: pd.DataFrame) -> bool:
    return whole_seeds(runs)["pair"].nunique() == of_set["pair"].nunique()


def _mean(runs: pd.DataFrame, metric: str) -> str:
    mean, spread = mean_and_spread(runs, metric)
    return f"{mean:.1f} ± {spread:.1f}" if spread is not None and metric in _WITH_SPREAD else f"{mean:.1f}"


def _against_each(runs: pd.DataFrame) -> str:
    """Our method and every other row on the pairs and seeds that both have."""
    name = OURS if OURS in set(runs["row"]) else EARLIER
    ours = runs[runs["row"] == name]
    lines = []
    for row, others in runs[runs["row"] != name].groupby("row", sort=False):
        both = ours.merge(others, on=["pair", "seed"], suffixes=("", "_other"))
        gains = (both["accuracy"] - both["accuracy_other"]).groupby(both["pair"], sort=False).mean()
        better, worse = (gains > 0).sum(), (gains < 0).sum()
        lines.append([f"`{row}`", f"{gains.mean():+.1f}", str(better), str(worse), f"{signed_rank_p(gains):.3f}"])
    table = _markdown(["against", "difference", "pairs better", "worse", "Wilcoxon's p"], lines)
    return f"`{name}` against each, accuracy over pairs (mean of the seeds that both have):\n\n{table}"


def _pair_by_pair(runs: pd.DataFrame) -> str:
    means = runs.pivot_table("accuracy", "row", "pair", sort=False)
    means = means.reindex(index=runs["row"].unique(), columns=runs["pair"].unique())
    lines = [
        [f"`{row}`", *("" if pd.isna(value) else f"{value:.1f}" for value in values)]
        for row, values in zip(means.index, means.to_numpy(), strict=True)
    ]
    return "Accuracy pair by pair, mean over seeds:\n\n" + _markdown(["method", *means.columns], lines)


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---", *["--:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
