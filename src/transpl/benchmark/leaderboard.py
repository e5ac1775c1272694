"""From a benchmark folder to its leaderboard. A run that is missing is told, never guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from transpl._utils.errors import unreadable_file
from transpl.benchmark.contenders import Contenders
from transpl.benchmark.leaderboard_data import (
    ALL_SETS,
    FAILED,
    FINISHED,
    NOT_RUN,
    Comparison,
    Contender,
    Leaderboard,
    Run,
    Standing,
)
from transpl.benchmark.measures import METRICS, BySeed, Spread, means_over_equal_seeds, metric_value, spread_over_seeds
from transpl.benchmark.plan import RunSpec
from transpl.benchmark.statistics import statistics_over_pairs
from transpl.benchmark.store import Result, Store, package_versions

RANKED_BY = ("accuracy", "macro_f1", "label_accuracy")
_PERCENT = 100.0
_RANK = ("rank", "lower", 2)  # as a metric's name, what is better, decimals
_SHORT = 6  # characters of a data set's fingerprint

_PairsAndSeeds = frozenset[tuple[tuple[int, int], int]]


def leaderboard_from(folder: Path) -> Leaderboard:
    """Read every planned and finished run of a folder that `transpl bench` wrote."""
    store = Store(folder)
    known = list(store.known().values())
    if not known:
        raise unreadable_file(
            folder, problem="no runs in it", advice="Run `transpl bench --out` with this folder first."
        )
    specs = [spec for spec, _ in known]
    contenders, set_names = Contenders(specs), _set_names(specs)
    runs = tuple(
        _run(spec, result, store, set_names[spec.dataset, spec.data], contenders.of(spec).label)
        for spec, result in known
    )
    return _assembled(runs, contenders, package_versions(result for _, result in known if result is not None))


def _assembled(runs: Sequence[Run], contenders: Contenders, versions: Mapping[str, tuple[str, ...]]) -> Leaderboard:
    places = {contender.label: place for place, contender in enumerate(contenders.all)}
    ordered = sorted(runs, key=lambda run: (run.dataset, places[run.contender], run.pair, run.seed))
    datasets = tuple(dict.fromkeys(run.dataset for run in ordered))
    comparisons = tuple(_comparisons(ordered, datasets, contenders.all))
    ranked_by = next((name for name in RANKED_BY if any(each.metric == name for each in comparisons)), None)
    ranks = _ranks(each for each in comparisons if each.metric == ranked_by)
    return Leaderboard(
        datasets=datasets,
        contenders=contenders.all,
        seeds=tuple(sorted({run.seed for run in ordered})),
        runs=tuple(ordered),
        standings=tuple(
            standing
            for dataset in datasets
            for standing in _standings([run for run in ordered if run.dataset == dataset], contenders.all, ranks)
        ),
        cells=_cells(ordered),
        comparisons=comparisons,
        ranked_by=ranked_by,
        shared_changes=contenders.shared,
        versions=versions,
    )


def _set_names(specs: Iterable[RunSpec]) -> dict[tuple[str, str], str]:
    """A data set that was changed between runs is two; the second name tells them apart."""
    prints: dict[str, set[str]] = {}
    for spec in specs:
        prints.setdefault(spec.dataset, set()).add(spec.data)
    return {
        (name, data): name if len(found) == 1 else f"{name} (data {data[:_SHORT]})"
        for name, found in prints.items()
        for data in found
    }


def _run(spec: RunSpec, result: Result | None, store: Store, dataset: str, contender: str) -> Run:
    blank = Run(spec.digest, dataset, contender, (spec.source, spec.target), spec.seed, NOT_RUN)
    if result is not None:
        return replace(
            blank,
            state=FINISHED,
            scores=_scores(result),
            labels={when: _in_percent(found) for when, found in result.pseudo_labels.items()},
            seconds=result.seconds,
            epochs=result.epochs,
            details=result.details,
        )
    failure = store.failure(spec)
    if failure is None:
        return blank
    return replace(blank, state=FAILED, error=failure.error, traceback=failure.traceback, attempts=failure.attempts)


def _scores(result: Result) -> dict[str, float]:
    labels = result.pseudo_labels.get("initial", {})
    found = {
        **_in_percent(result.test),
        **{f"label_{name}": value for name, value in _in_percent(labels).items()},
    }
    if "adapt" in result.seconds:  # a run that only labels has none
        found["seconds"] = metric_value("test", result, "seconds")
    return {metric.name: found[metric.name] for metric in METRICS if metric.name in found}


def _in_percent(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: _PERCENT * value for name, value in scores.items()}


def _standings(runs: Sequence[Run], contenders: Sequence[Contender], ranks: Mapping[Hashable, float]) -> list[Standing]:
    """The contenders of one data set."""
    of_pairs, common = len({run.pair for run in runs}), _common_runs(runs, contenders)
    found = []
    for contender in contenders:
        own = [run for run in runs if run.contender == contender.label]
        if own:
            done = [run for run in own if run.state == FINISHED]
            pairs = len({run.pair for run in done})
            wanted = _pairs_and_seeds(own) if contender.upper_bound else common.get(contender.goal)
            found.append(
                Standing(
                    contender=contender.label,
                    dataset=own[0].dataset,
                    finished=len(done),
                    planned=len(own),
                    pairs=pairs,
                    of_pairs=of_pairs,
                    seeds=len({run.seed for run in done}),
                    complete=pairs == of_pairs and _pairs_and_seeds(done) == wanted,
                    scores=_spreads(done),
                    rank=ranks.get((own[0].dataset, contender.label)),
                )
            )
    bounds = {contender.label for contender in contenders if contender.upper_bound}
    return _with_best(found, [standing for standing in found if standing.contender not in bounds])


def _pairs_and_seeds(runs: Iterable[Run]) -> _PairsAndSeeds:
    return frozenset((run.pair, run.seed) for run in runs)


def _common_runs(runs: Sequence[Run], contenders: Iterable[Contender]) -> dict[str, _PairsAndSeeds]:
    """Goal -> what most contenders with all pairs have finished, of equals the most runs; upper bounds do not count."""
    pairs = {run.pair for run in runs}
    counts: dict[str, Counter[_PairsAndSeeds]] = {}
    for contender in contenders:
        done = [run for run in runs if run.contender == contender.label and run.state == FINISHED]
        if not contender.upper_bound and {run.pair for run in done} == pairs:
            counts.setdefault(contender.goal, Counter())[_pairs_and_seeds(done)] += 1
    return {goal: max(found, key=lambda each: (found[each], len(each))) for goal, found in counts.items()}


def _with_best(standings: Sequence[Standing], comparable: Sequence[Standing]) -> list[Standing]:
    """Mark the best, as shown, among complete ones; one alone is no best."""
    best: dict[str, set[str]] = {}
    for name, better, decimals in (*((each.name, each.better, each.decimals) for each in METRICS), _RANK):
        values = {each.contender: _value(each, name) for each in comparable if each.complete}
        shown = {label: round(value, decimals) for label, value in values.items() if value is not None}
        if better != "none" and len(shown) > 1:
            top = (max if better == "higher" else min)(shown.values())
            for label in (label for label, value in shown.items() if value == top):
                best.setdefault(label, set()).add(name)
    return [replace(each, best=frozenset(best.get(each.contender, ()))) for each in standings]


def _value(standing: Standing, column: str) -> float | None:
    if column == _RANK[0]:
        return standing.rank
    return standing.scores[column].mean if column in standing.scores else None


def _spreads(runs: Sequence[Run]) -> dict[str, Spread]:
    known = dict.fromkeys(name for run in runs for name in run.scores)
    return {
        name: spread_over_seeds((run.seed, run.scores[name]) for run in runs if name in run.scores) for name in known
    }


def _cells(runs: Iterable[Run]) -> dict[tuple[str, str, tuple[int, int]], dict[str, Spread]]:
    groups: dict[tuple[str, str, tuple[int, int]], list[Run]] = {}
    for run in runs:
        if run.state == FINISHED:
            groups.setdefault((run.dataset, run.contender, run.pair), []).append(run)
    return {key: _spreads(found) for key, found in groups.items()}


def _comparisons(runs: Sequence[Run], datasets: Sequence[str], contenders: Sequence[Contender]) -> Iterable[Comparison]:
    """Every data set and, of several, all of them together."""
    ranked = [contender.label for contender in contenders if not contender.upper_bound]
    for name in (*((ALL_SETS,) if len(datasets) > 1 else ()), *datasets):
        of_set = [run for run in runs if name in (ALL_SETS, run.dataset)]
        for metric in RANKED_BY:
            scores = {label: found for label in ranked if (found := _by_seed(of_set, label, metric))}
            chosen = widest_comparison({label: _pairs_with_seeds(found) for label, found in scores.items()})
            if chosen:
                means = means_over_equal_seeds({label: scores[label] for label in chosen})
                left = tuple(label for label in scores if label not in chosen)
                yield Comparison(name, metric, statistics_over_pairs(means), left)


def _by_seed(runs: Iterable[Run], label: str, metric: str) -> BySeed:
    """(data set, pair) -> seed -> score."""
    found: dict[Hashable, dict[int, float]] = {}
    for run in runs:
        if run.contender == label and metric in run.scores:
            found.setdefault((run.dataset, run.pair), {})[run.seed] = run.scores[metric]
    return found


def _pairs_with_seeds(scores: BySeed) -> frozenset[Hashable]:
    """Two rows share a pair if they have the same seeds there."""
    return frozenset((pair, frozenset(seeds)) for pair, seeds in scores.items())


def widest_comparison(pairs: Mapping[str, frozenset[Hashable]]) -> list[str]:
    r"""argmax_S |S| k(S), k(S) the rows that have all pairs of S, S what two rows share; of equals the most rows.

    A row with few pairs would shrink the pairs that all share, and with them what can be said about the other rows.
    Empty if no two rows share a pair.
    """
    candidates = dict.fromkeys(pairs[a] & pairs[b] for a, b in combinations(pairs, 2))
    rows = {shared: [label for label in pairs if shared <= pairs[label]] for shared in candidates if shared}
    return max(rows.items(), key=lambda each: (len(each[0]) * len(each[1]), len(each[1])), default=(None, []))[1]


def _ranks(comparisons: Iterable[Comparison]) -> dict[Hashable, float]:
    """(data set, contender) -> average rank."""
    return {
        (each.dataset, label): rank
        for each in comparisons
        for label, rank in zip(each.statistics.methods, each.statistics.average_ranks, strict=True)
    }
