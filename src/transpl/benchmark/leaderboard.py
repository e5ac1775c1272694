"""From a benchmark folder to its leaderboard, as plain values: entries, every run, and what follows from the runs.

A missing run is reported, never estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from transpl._utils.errors import unreadable_file
from transpl.benchmark.entries import EntryIndex, LeaderboardEntry, make_entry, place_of
from transpl.benchmark.measures import (
    METRICS,
    BySeed,
    Metric,
    Spread,
    means_over_equal_seeds,
    metric_value,
    spread_over_seeds,
)
from transpl.benchmark.paper_tables import paper_table
from transpl.benchmark.plan import settings_of, settings_without_seed
from transpl.benchmark.run_lines import RowDescription, describe_row, runs_of_lines
from transpl.benchmark.run_spec import RunSpec, backbone_of
from transpl.benchmark.statistics import Statistics, statistics_over_pairs
from transpl.benchmark.store import Result, Store, package_versions
from transpl.datasets.pairs import PUBLISHED
from transpl.methods.registry import names

FINISHED, FAILED, NOT_RUN = "finished", "failed", "not run"
ALL_SETS = "all data sets"
RANKED_BY = ("accuracy", "macro_f1", "label_accuracy")
_RANK = Metric("rank", "average rank", "", "lower", "", 2)
_FINGERPRINT_LENGTH = 6  # of a data set, where several versions of it were run

_PairsAndSeeds = frozenset[tuple[tuple[int, int], int]]


@dataclass(frozen=True)
class LeaderboardRun:
    """A planned run and its state: `FINISHED`, `FAILED` or `NOT_RUN`.

    entry : label of its entry
    scores : by name of metric
    labels : scores of the pseudo-labels, in percent, by when they were given
    details : what else the method reported, such as channel weights
    """

    digest: str
    dataset: str
    entry: str
    pair: tuple[int, int]
    seed: int
    state: str
    scores: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    traceback: str = ""
    attempts: int = 0


@dataclass(frozen=True)
class EntryStanding:
    """An entry on a data set.

    pairs, of_pairs : number of pairs with a finished run, and of all pairs of the data set that any entry has planned
    complete : whether its means are over all pairs, and over the same seeds as those of most entries of its goal
    scores : by name of metric; mean over pairs first, then over seeds
    rank : average rank over pairs, None where it is not ranked
    best : names of the metrics in which no comparable entry is better; may contain "rank"
    """

    entry: str
    dataset: str
    finished: int
    planned: int
    pairs: int
    of_pairs: int
    seeds: int
    complete: bool
    scores: Mapping[str, Spread]
    rank: float | None = None
    best: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Comparison:
    """Entries ranked over the pairs of a data set, or of `ALL_SETS`; on each pair they have the same seeds.

    unranked : labels of entries that lack too many of the pairs that the others share, or have other seeds there
    """

    dataset: str
    metric: str
    statistics: Statistics
    unranked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Leaderboard:
    """A benchmark folder.

    shared_changes : settings that differ from the paper's in all entries alike
    cells : (data set, entry, pair) -> name of metric -> mean and standard deviation over seeds
    ranked_by : the metric of the standings' ranks; None where nothing can be ranked
    versions : of the packages that the runs were made with
    """

    datasets: tuple[str, ...]
    entries: tuple[LeaderboardEntry, ...]
    seeds: tuple[int, ...]
    runs: tuple[LeaderboardRun, ...]
    standings: tuple[EntryStanding, ...]
    cells: Mapping[tuple[str, str, tuple[int, int]], Mapping[str, Spread]]
    comparisons: tuple[Comparison, ...]
    ranked_by: str | None = None
    shared_changes: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that any run has."""
        known = {name for run in self.runs for name in run.scores}
        return tuple(metric for metric in METRICS if metric.name in known)

    def in_state(self, state: str) -> tuple[LeaderboardRun, ...]:
        """The runs that are `FINISHED`, `FAILED` or `NOT_RUN`."""
        return tuple(run for run in self.runs if run.state == state)

    def pairs_of(self, dataset: str) -> tuple[tuple[int, int], ...]:
        """Every pair of a data set that any entry has planned."""
        return tuple(sorted({run.pair for run in self.runs if run.dataset == dataset}))


def read_leaderboard(folder: Path) -> Leaderboard:
    """Read every planned and finished run of a folder that `transpl bench` wrote."""
    store = Store(folder)
    known = list(store.known().values())
    if not known:
        advice = "Run `transpl bench --out` with this folder first."
        raise unreadable_file(folder, problem="no runs in it", advice=advice)
    specs = [spec for spec, _ in known]
    index, set_names = EntryIndex(specs), _set_names(specs)
    runs = [
        _read_run(spec, result, store, set_names[spec.dataset, spec.data], index.of(spec).label)
        for spec, result in known
    ]
    versions = package_versions(result for _, result in known if result is not None)
    return replace(_leaderboard(runs, index.entries), shared_changes=index.shared_changes, versions=versions)


def leaderboard_of_lines(paths: Sequence[Path], tables: Sequence[str] = ()) -> Leaderboard:
    """A leaderboard of the runs in some files of `transpl bench --save-lines`; entries have the names of the lines.

    Parameters
    ----------
    paths : sequence of path
        The files.
    tables : sequence of str
        Tables (`transpl bench --table`) that are planned for the data sets and seeds of the files: their runs that have
        no line are shown as not run.
    """
    lines = [(key, line) for path in paths for key, line in runs_of_lines(path).items()]
    if not lines:
        raise unreadable_file(paths[0], problem="no runs in it", advice="Run `transpl bench --save-lines` first.")
    found = {
        (line.spec.dataset, line.row.label, line.spec.pair, line.spec.seed): LeaderboardRun(
            key,
            line.spec.dataset,
            line.row.label,
            (line.spec.source, line.spec.target),
            line.spec.seed,
            FINISHED,
            scores=_scores(line.result),
            seconds=line.result.seconds,
        )
        for key, line in lines
    }
    planned = [each for name in tables for each in _rows_of_table(name, {line.spec.dataset for _, line in lines})]
    seeds = sorted({line.spec.seed for _, line in lines})
    not_run = (
        LeaderboardRun("", dataset, row.label, pair, seed, NOT_RUN)
        for dataset, row, _ in planned
        for pair in PUBLISHED[dataset]
        for seed in seeds
    )
    missing = {(run.dataset, run.entry, f"{run.pair[0]}-{run.pair[1]}", run.seed): run for run in not_run}
    rows = {line.row.label: (line.row, line.spec.goal) for _, line in lines}
    rows |= {row.label: (row, goal) for _, row, goal in planned}
    order = names()
    entries = [
        make_entry(label, row.method, goal, row.changes, row.backbone)
        for label, (row, goal) in sorted(rows.items(), key=lambda each: (place_of(each[1][0].method, order), each[0]))
    ]
    versions = package_versions(line.result for _, line in lines)
    return replace(_leaderboard(list((missing | found).values()), entries), versions=versions)


def _rows_of_table(name: str, datasets: Collection[str]) -> Iterator[tuple[str, RowDescription, str]]:
    """Data set, row and goal."""
    table = paper_table(name)
    for dataset in (each for each in table.datasets if each in datasets):
        for row in table.rows(dataset):
            chosen = settings_of([row.method], dataset, preset=table.preset, changes=row.changes)[row.method]
            backbone = backbone_of(row.method, settings_without_seed(chosen))
            yield dataset, describe_row(row.label, row.method, backbone, table.normalise), row.goal


def _leaderboard(runs: list[LeaderboardRun], entries: Sequence[LeaderboardEntry]) -> Leaderboard:
    """What follows from the runs."""
    places = {entry.label: place for place, entry in enumerate(entries)}
    runs = sorted(runs, key=lambda run: (run.dataset, places[run.entry], run.pair, run.seed))
    datasets = tuple(dict.fromkeys(run.dataset for run in runs))
    comparisons = tuple(_comparisons(runs, datasets, entries))
    ranked_by = next((name for name in RANKED_BY if any(each.metric == name for each in comparisons)), None)
    ranks = {
        (each.dataset, label): rank
        for each in comparisons
        if each.metric == ranked_by
        for label, rank in zip(each.statistics.methods, each.statistics.average_ranks, strict=True)
    }
    cells: dict[tuple[str, str, tuple[int, int]], list[LeaderboardRun]] = {}
    for run in runs:
        if run.state == FINISHED:
            cells.setdefault((run.dataset, run.entry, run.pair), []).append(run)
    return Leaderboard(
        datasets=datasets,
        entries=tuple(entries),
        seeds=tuple(sorted({run.seed for run in runs})),
        runs=tuple(runs),
        standings=tuple(
            standing
            for dataset in datasets
            for standing in _standings([run for run in runs if run.dataset == dataset], entries, ranks)
        ),
        cells={key: _spreads(found) for key, found in cells.items()},
        comparisons=comparisons,
        ranked_by=ranked_by,
    )


# Runs


def _set_names(specs: Iterable[RunSpec]) -> dict[tuple[str, str], str]:
    """(data set, fingerprint) -> name; versions of one data set get different names."""
    fingerprints: dict[str, set[str]] = {}
    for spec in specs:
        fingerprints.setdefault(spec.dataset, set()).add(spec.data)
    return {
        (name, data): name if len(found) == 1 else f"{name} (data {data[:_FINGERPRINT_LENGTH]})"
        for name, found in fingerprints.items()
        for data in found
    }


def _read_run(spec: RunSpec, result: Result | None, store: Store, dataset: str, entry: str) -> LeaderboardRun:
    run = LeaderboardRun(spec.digest, dataset, entry, (spec.source, spec.target), spec.seed, NOT_RUN)
    if result is not None:
        return replace(
            run,
            state=FINISHED,
            scores=_scores(result),
            labels={when: _in_percent(found) for when, found in result.pseudo_labels.items()},
            seconds=result.seconds,
            epochs=result.epochs,
            details=result.details,
        )
    failure = store.failure(spec)
    if failure is None:
        return run
    return replace(run, state=FAILED, error=failure.error, traceback=failure.traceback, attempts=failure.attempts)


def _scores(result: Result) -> dict[str, float]:
    found = _in_percent(result.test)
    found |= {f"label_{name}": value for name, value in _in_percent(result.pseudo_labels.get("initial", {})).items()}
    if "adapt" in result.seconds:  # a run that only labels has none
        found["seconds"] = metric_value("test", result, "seconds")
    return {metric.name: found[metric.name] for metric in METRICS if metric.name in found}


def _in_percent(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: 100 * value for name, value in scores.items()}


def _spreads(runs: Sequence[LeaderboardRun]) -> dict[str, Spread]:
    known = dict.fromkeys(name for run in runs for name in run.scores)
    return {
        name: spread_over_seeds((run.seed, run.scores[name]) for run in runs if name in run.scores) for name in known
    }


# Standings


def _standings(
    runs: Sequence[LeaderboardRun], entries: Sequence[LeaderboardEntry], ranks: Mapping[tuple[str, str], float]
) -> list[EntryStanding]:
    """The entries of one data set."""
    all_pairs, common = {run.pair for run in runs}, _common_runs(runs, entries)
    standings, comparable = [], []
    for entry in entries:
        planned = [run for run in runs if run.entry == entry.label]
        if not planned:
            continue
        done = [run for run in planned if run.state == FINISHED]
        pairs = {run.pair for run in done}
        wanted = _pairs_and_seeds(planned) if entry.upper_bound else common.get(entry.goal)
        standing = EntryStanding(
            entry=entry.label,
            dataset=planned[0].dataset,
            finished=len(done),
            planned=len(planned),
            pairs=len(pairs),
            of_pairs=len(all_pairs),
            seeds=len({run.seed for run in done}),
            complete=pairs == all_pairs and _pairs_and_seeds(done) == wanted,
            scores=_spreads(done),
            rank=ranks.get((planned[0].dataset, entry.label)),
        )
        standings.append(standing)
        if standing.complete and not entry.upper_bound:
            comparable.append(standing)
    informed = {entry.label for entry in entries if entry.informed}
    comparable = [each for each in comparable if each.entry not in informed] or comparable
    best = {metric.name: _best(comparable, metric) for metric in (*METRICS, _RANK)}
    return [
        replace(each, best=frozenset(name for name, labels in best.items() if each.entry in labels))
        for each in standings
    ]


def _common_runs(runs: Sequence[LeaderboardRun], entries: Iterable[LeaderboardEntry]) -> dict[str, _PairsAndSeeds]:
    """Goal -> what most entries with all pairs have finished, of equals the most runs; upper bounds do not count."""
    pairs = {run.pair for run in runs}
    counts: dict[str, Counter[_PairsAndSeeds]] = {}
    for entry in entries:
        done = [run for run in runs if run.entry == entry.label and run.state == FINISHED]
        if not entry.upper_bound and {run.pair for run in done} == pairs:
            counts.setdefault(entry.goal, Counter())[_pairs_and_seeds(done)] += 1
    return {goal: max(found, key=lambda each: (found[each], len(each))) for goal, found in counts.items()}


def _pairs_and_seeds(runs: Iterable[LeaderboardRun]) -> _PairsAndSeeds:
    return frozenset((run.pair, run.seed) for run in runs)


def _best(standings: Iterable[EntryStanding], metric: Metric) -> set[str]:
    """Labels of the entries with the best value, as shown; a single one is not the best."""
    shown = {}
    for each in standings:
        value = each.rank if metric is _RANK else each.scores[metric.name].mean if metric.name in each.scores else None
        if value is not None:
            shown[each.entry] = round(value, metric.decimals)
    if metric.better == "none" or len(shown) < 2:
        return set()
    top = (max if metric.better == "higher" else min)(shown.values())
    return {label for label, value in shown.items() if value == top}


# Comparisons


def _comparisons(
    runs: Sequence[LeaderboardRun], datasets: Sequence[str], entries: Sequence[LeaderboardEntry]
) -> Iterator[Comparison]:
    """One per data set and metric and, with several data sets, one over all of them."""
    ranked = [entry.label for entry in entries if not entry.upper_bound]
    for dataset in (*((ALL_SETS,) if len(datasets) > 1 else ()), *datasets):
        of_set = [run for run in runs if dataset in (ALL_SETS, run.dataset)]
        for metric in RANKED_BY:
            scores = {label: found for label in ranked if (found := _by_seed(of_set, label, metric))}
            # Entries share a pair only if they have the same seeds there.
            pairs = {label: frozenset((p, frozenset(seeds)) for p, seeds in scores[label].items()) for label in scores}
            chosen = widest_comparison(pairs)
            if chosen:
                means = means_over_equal_seeds({label: scores[label] for label in chosen})
                unranked = tuple(label for label in scores if label not in chosen)
                yield Comparison(dataset, metric, statistics_over_pairs(means), unranked)


def _by_seed(runs: Iterable[LeaderboardRun], label: str, metric: str) -> BySeed:
    """(data set, pair) -> seed -> score."""
    found: dict[Hashable, dict[int, float]] = {}
    for run in runs:
        if run.entry == label and metric in run.scores:
            found.setdefault((run.dataset, run.pair), {})[run.seed] = run.scores[metric]
    return found


def widest_comparison(pairs: Mapping[str, frozenset[Hashable]]) -> list[str]:
    r"""argmax_S |S| k(S), k(S) the rows that have all pairs of S, S what two rows share; of equals the most rows.

    A row with few pairs would reduce the pairs that all share, and with them the power to tell the other rows apart.
    Empty if no two rows share a pair.
    """
    candidates = dict.fromkeys(pairs[a] & pairs[b] for a, b in combinations(pairs, 2))
    rows = {shared: [label for label in pairs if shared <= pairs[label]] for shared in candidates if shared}
    return max(rows.items(), key=lambda each: (len(each[0]) * len(each[1]), len(each[1])), default=(None, []))[1]
