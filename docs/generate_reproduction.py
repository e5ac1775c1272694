"""Write docs/reproduction.md: every figure of the paper's tables beside the runs in docs/results/*.csv.

python docs/generate_reproduction.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from transpl._utils.files import write_text
from transpl.benchmark.measures import Spread, spread_over_seeds
from transpl.benchmark.paper_tables import paper_table
from transpl.benchmark.plan import Row
from transpl.benchmark.published import AVERAGE, PublishedFigure, published_figures
from transpl.datasets.pairs import PUBLISHED

HERE = Path(__file__).parent
PAGE, INTRODUCTION, NOTES = (
    HERE / "reproduction.md",
    HERE / "reproduction_intro.md",
    HERE / "results" / "reproduction_notes.md",
)
RESULTS = HERE / "results"

TITLES = {"ucihar": "UCIHAR", "wisdm": "WISDM", "hhar": "HHAR", "ptb": "PTB"}
TABLES = {
    "full": "Adaptation (Table 1)",
    "pseudo": "Pseudo-labels of the target's train part",
    "weak": "Weak supervision",
    "ablation": "Ablation",
    "patch": "Patch lengths",
    "codebook": "Sizes of the codebooks",
}
# Files with the runs of each table, all with the paper's encoder and settings.
FILES = {
    "full": ("full", "beyond"),
    "weak": ("weak", "full", "beyond", "ablation"),
    "ablation": ("ablation",),
    "pseudo": ("pseudo",),
    "patch": ("patch",),
    "codebook": ("codebook",),
    "pairs": ("full", "beyond"),
}
CNN_FILES = ("cnn",)
SECONDS_OF = {"patch-transformer": ("full", "beyond"), "cnn": CNN_FILES}
WANTED = (  # title, table, seeds
    ("CNN, seed 0", "cnn", (0,)),
    ("CNN, seeds 1 and 2", "cnn", (1, 2)),
    *((f"{title}, seed 0", table, (0,)) for table, title in TABLES.items()),
)
NO_TRAINING = ("no-adapt", "target-only", "adabn", "features-", "transpl-markov", "transpl-plus")  # in seconds
METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "binary_f1": "F1 of class 1",
    "mse": "MSE",
    "dead_codes": "dead codes",
}
OTHER_DATA = {"hhar", "ptb"}  # ours are parts of what the paper used
LEAST_TOLERANCE = 2.0  # points

REPRODUCED, DIFFERS, NOT_COMPARABLE, CONTRADICTORY, NOT_RUN = (
    "reproduced",
    "differs",
    "other data",
    "print in doubt",
    "not run",
)
STATUSES = (REPRODUCED, DIFFERS, NOT_COMPARABLE, CONTRADICTORY, NOT_RUN)


class LedgerCell(NamedTuple):
    """A published figure, what our runs say, and what follows."""

    figure: PublishedFigure
    ours: Spread | None
    seeds: int
    status: str

    @property
    def text(self) -> str:
        """Published, ours with its spread, the difference, the status."""
        published = f"{self.figure.value:g}"
        if self.ours is None:
            return f"{published}; {self.status}"
        spread = "" if self.ours.std is None else f" ± {self.ours.std:.1f}"
        difference = self.ours.mean - self.figure.value
        return f"{published}; {self.ours.mean:.1f}{spread} ({difference:+.1f}), {self.status}"


def main() -> None:
    """Write the page."""
    write_text(PAGE, page())
    print(f"wrote {PAGE}")


def page() -> str:
    """The whole page as Markdown."""
    cells = ledger()
    sections = [INTRODUCTION.read_text(encoding="utf-8").strip(), summary(cells)]
    sections += ["## What is missing", what_is_missing()]
    sections += ["## Why figures differ, method by method", NOTES.read_text(encoding="utf-8").strip()]
    for table, title in TABLES.items():
        sections.append(f"## {title}")
        for dataset, of_set in _by_dataset([cell for cell in cells if cell.figure.key.table == table]):
            sections += [f"{TITLES[dataset]}:", _by_row(of_set)]
    sections.append("## Every pair (appendix)")
    for dataset, of_set in _by_dataset([cell for cell in cells if cell.figure.key.table == "pairs"]):
        for metric in ("accuracy", "macro_f1"):
            of_metric = [cell for cell in of_set if cell.figure.key.metric == metric]
            sections += [f"{TITLES[dataset]}, {METRICS[metric]}:", _by_pair(of_metric)]
    return "\n\n".join(sections) + "\n"


def ledger() -> list[LedgerCell]:
    """Every published figure with our runs, in the order of print."""
    figures = [figure for figure in published_figures().values() if not figure.key.metric.endswith("_gain")]
    usual = usual_spreads(read_runs(list(dict.fromkeys(name for names in FILES.values() for name in names))))
    cells = {}
    for table, names in FILES.items():
        runs = read_runs(names)
        by_row = {(str(place[0]), str(place[1])): found for place, found in runs.groupby(["dataset", "row"])}
        nothing = runs.iloc[:0]
        pairs = runs.groupby("dataset")["pair"].nunique().to_dict()
        for figure in (figure for figure in figures if figure.key.table == table):
            of_row = by_row.get((figure.key.dataset, figure.key.row), nothing)
            cells[figure.key] = make_cell(figure, of_row, pairs.get(figure.key.dataset, 0), usual)
    return [cells[figure.key] for figure in figures]


def read_runs(names: Sequence[str]) -> pd.DataFrame:
    """The runs of some files, each once; files that do not exist yet have none."""
    found = [pd.read_csv(path) for name in names if (path := RESULTS / f"{name}.csv").exists()]
    columns = ["dataset", "row", "pair", "seed"]
    if not found:
        return pd.DataFrame(columns=columns)
    return pd.concat(found).astype({"row": str}).drop_duplicates(columns)


def usual_spreads(runs: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(data set, metric) -> root mean square over rows of the standard deviation over seeds of a row's mean."""
    found = {}
    for metric in METRICS:
        for dataset, of_set in runs.groupby("dataset") if metric in runs else ():
            deviations = [
                spread.std
                for _, of_row in of_set.groupby("row")
                if (spread := _spread(of_row, metric)) is not None and spread.std is not None
            ]
            if deviations:
                found[str(dataset), metric] = float(pd.Series(deviations).pow(2).mean() ** 0.5)
    return found


def make_cell(
    figure: PublishedFigure, runs: pd.DataFrame, n_pairs: int, usual: Mapping[tuple[str, str], float]
) -> LedgerCell:
    """Compare a figure with the runs of its row; an average needs every pair of the set."""
    key, metric = figure.key, figure.measures
    chosen = _whole_seeds(runs, n_pairs) if key.pair == AVERAGE else runs[runs["pair"] == key.pair]
    ours = _spread(chosen, metric)
    return LedgerCell(figure, ours, chosen["seed"].nunique(), status_of(figure, ours, usual.get((key.dataset, metric))))


def status_of(figure: PublishedFigure, ours: Spread | None, usual: float | None) -> str:
    """What a reader may conclude.

    usual : the spread over seeds of rows like this one, for a row with a single seed
    """
    if ours is None:
        return NOT_RUN
    if any(doubt.kind == "wrong" and doubt.measures is None for doubt in figure.doubts):
        return CONTRADICTORY
    if figure.key.dataset in OTHER_DATA:
        return NOT_COMPARABLE
    spread = ours.std if ours.std is not None else usual or 0.0
    close = abs(ours.mean - figure.value) <= max(LEAST_TOLERANCE, 2 * spread)
    return REPRODUCED if close else DIFFERS


def summary(cells: Sequence[LedgerCell]) -> str:
    """How many figures have which status, by table."""
    lines = []
    for table, title in {**TABLES, "pairs": "Every pair (appendix)"}.items():
        counts = Counter(cell.status for cell in cells if cell.figure.key.table == table)
        lines.append([title, *(str(counts[status]) for status in STATUSES), str(counts.total())])
    return _markdown(["figures", *STATUSES, "all"], lines)


class PlannedRun(NamedTuple):
    """A run of a table, whether or not it was made."""

    network: str
    dataset: str
    row: Row
    source: int
    target: int
    seed: int

    @property
    def work(self) -> tuple[object, ...]:
        """What tables share: equal for runs that are one and the same."""
        changes = tuple(sorted(self.row.changes.items()))
        return self.network, self.dataset, self.row.method, changes, self.row.goal, self.source, self.target, self.seed

    @property
    def source_network(self) -> tuple[object, ...]:
        """Equal for runs that start from one source network."""
        changes = tuple(sorted(each for each in self.row.changes.items() if each[0] != "channel_alignment"))
        return self.network, self.dataset, changes, self.source, self.seed


def what_is_missing() -> str:
    """How many runs of each table are missing, and how long they would take."""
    lines, total, counted = [], 0.0, set()
    seconds = {network: read_runs(names) for network, names in SECONDS_OF.items()}
    on_paper_network = seconds["patch-transformer"]
    pace = on_paper_network[on_paper_network["row"] == "softmax"].groupby("dataset")["seconds"].mean().to_dict()
    for title, table, seeds in WANTED:
        made = read_runs(CNN_FILES if table == "cnn" else FILES[table])
        finished = set(zip(made["dataset"], made["row"], made["pair"], made["seed"], strict=True))
        planned = planned_runs(table, seeds)
        missing = [
            run
            for run in planned
            if (run.dataset, run.row.label, f"{run.source}-{run.target}", run.seed) not in finished
        ]
        new = [run for run in missing if run.work not in counted]
        sources = {run.source_network: run for run in new if run.source_network not in counted}
        hours = sum(seconds_of(run, seconds[run.network], pace) for run in new) / 3600
        hours += sum(source_seconds(run, seconds[run.network], pace) for run in sources.values()) / 3600
        counted |= {run.work for run in new} | set(sources)
        total += hours
        lines.append([title, str(len(planned)), str(len(missing)), f"{hours:.1f}"])
    lines.append(["all", "", "", f"{total:.1f}"])
    return (
        "Hours of one core, by the seconds of the finished runs of a row on the same data or, scaled, on the other "
        "sets; of a row without any, by the mean of the rows that train the same network. Training a source network "
        "counts as much as `softmax`, which trains it once more, and is counted once for all runs that share it; so "
        "are runs that tables share, in the first of them.\n\n"
        + _markdown(["runs", "planned", "missing", "hours"], lines)
    )


def planned_runs(table: str, seeds: Sequence[int]) -> list[PlannedRun]:
    """Every run of a table on the published pairs."""
    plan = paper_table(table)
    network = "cnn" if plan.preset == "cnn" else "patch-transformer"
    return [
        PlannedRun(network, dataset, row, source, target, seed)
        for dataset in plan.datasets
        for row in plan.rows(dataset)
        for source, target in PUBLISHED[dataset]
        for seed in seeds
    ]


def seconds_of(run: PlannedRun, finished: pd.DataFrame, pace: Mapping[str, float]) -> float:
    """Of adaptation; labels come from the source network at once, except where a classifier of codes learns.

    pace : seconds of one and the same row on each set
    """
    if run.row.goal == "label" and not run.row.method.startswith("code-"):
        return 0.0
    of_row = finished[finished["row"].isin([run.row.label, run.row.method])]
    if (of_row["dataset"] == run.dataset).any():
        return float(of_row[of_row["dataset"] == run.dataset]["seconds"].mean())
    similar = of_row if len(of_row) else finished[~finished["row"].str.startswith(NO_TRAINING)]
    by_set = similar.groupby("dataset")["seconds"].mean()
    if run.dataset in by_set:
        return float(by_set[run.dataset])
    return float(pd.Series({name: pace[run.dataset] / pace[name] * by_set[name] for name in by_set.index}).mean())


def source_seconds(run: PlannedRun, finished: pd.DataFrame, pace: Mapping[str, float]) -> float:
    """Of training the source network."""
    if run.row.method.startswith("features-"):
        return 0.0
    return seconds_of(run._replace(row=Row("softmax", "softmax")), finished, pace)


def _spread(runs: pd.DataFrame, metric: str) -> Spread | None:
    if metric not in runs:
        return None
    scored = runs.dropna(subset=[metric])
    values = [(int(seed), float(value)) for seed, value in zip(scored["seed"], scored[metric], strict=True)]
    return spread_over_seeds(values) if values else None


def _whole_seeds(runs: pd.DataFrame, n_pairs: int) -> pd.DataFrame:
    return runs[runs.groupby("seed")["pair"].transform("nunique") == n_pairs]


def _by_dataset(cells: Sequence[LedgerCell]) -> Iterator[tuple[str, list[LedgerCell]]]:
    for dataset in TITLES:
        of_set = [cell for cell in cells if cell.figure.key.dataset == dataset]
        if of_set:
            yield dataset, of_set


def _by_row(cells: Sequence[LedgerCell]) -> str:
    metrics = list(dict.fromkeys(cell.figure.key.metric for cell in cells))
    lines = []
    for row in dict.fromkeys(cell.figure.key.row for cell in cells):
        of_row = {cell.figure.key.metric: cell for cell in cells if cell.figure.key.row == row}
        seeds = max((cell.seeds for cell in of_row.values()), default=0)
        lines.append(
            [f"`{row}`", *(of_row[metric].text if metric in of_row else "" for metric in metrics), str(seeds or "")]
        )
    return _markdown(["published; ours", *(METRICS[metric] for metric in metrics), "seeds"], lines)


def _by_pair(cells: Sequence[LedgerCell]) -> str:
    pairs = list(dict.fromkeys(cell.figure.key.pair for cell in cells))
    lines = []
    for row in dict.fromkeys(cell.figure.key.row for cell in cells):
        of_row = {cell.figure.key.pair: cell for cell in cells if cell.figure.key.row == row}
        lines.append([f"`{row}`", *(_short(of_row[pair]) if pair in of_row else "" for pair in pairs)])
    return _markdown(["published; ours", *pairs], lines)


def _short(cell: LedgerCell) -> str:
    ours = "-" if cell.ours is None else f"{cell.ours.mean:.1f}"
    doubt = "?" if cell.status == CONTRADICTORY else ""
    return f"{cell.figure.value:g}{doubt}; {ours}"


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---", *["--:"] * (len(columns) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
