"""From a benchmark folder to its leaderboard. A run that is missing is told, never guessed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from transpl.benchmark.contenders import Contenders
from transpl.benchmark.leaderboard_data import (
    ALL_SETS,
    FAILED,
    FINISHED,
    METRICS,
    NOT_RUN,
    Comparison,
    Contender,
    Leaderboard,
    Run,
    Spread,
    Standing,
)
from transpl.benchmark.result import Result
from transpl.benchmark.spec import RunSpec
from transpl.benchmark.statistics import statistics_over_pairs
from transpl.benchmark.store import Store
from transpl.errors import unreadable

RANKED_BY = ("accuracy", "macro_f1", "label_accuracy")
_PERCENT = 100.0
_OWN_STAGES = ("adapt", "label", "predict")
_RANK = ("rank", "lower", 2)  # as a metric's name, what is better, decimals
_SHORT = 6  # characters of a data set's fingerprint

_ByPair = Mapping[str, Mapping[Hashable, float | None]]


def leaderboard_from(folder: Path) -> Leaderboard:
    """Read every planned and finished run of a folder that `transpl bench` wrote."""
    store = Store(folder)
    finished = {spec.digest: (spec, result) for spec, result in store.results()}
    planned = {spec.digest: spec for spec in store.planned()} | {name: spec for name, (spec, _) in finished.items()}
    if not planned:
        raise unreadable(folder, problem="no runs in it", advice="Run `transpl bench --out` with this folder first.")
    specs = list(planned.values())
    contenders, set_names = Contenders(specs), _set_names(specs)
    results = {name: result for name, (_, result) in finished.items()}
    runs = tuple(
        _run(spec, results.get(spec.digest), store, set_names[spec.dataset, spec.data], contenders.of(spec).label)
        for spec in specs
    )
    return _assembled(runs, contenders, _versions(results.values()))


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
        "seconds": sum(result.seconds.get(stage, 0.0) for stage in _OWN_STAGES),
    }
    return {metric.name: found[metric.name] for metric in METRICS if metric.name in found}


def _in_percent(scores: Mapping[str, float]) -> dict[str, float]:
    return {name: _PERCENT * value for name, value in scores.items()}


def _standings(runs: Sequence[Run], contenders: Sequence[Contender], ranks: Mapping[Hashable, float]) -> list[Standing]:
    """The contenders of one data set."""
    of_pairs = len({run.pair for run in runs})
    found = []
    for contender in contenders:
        own = [run for run in runs if run.contender == contender.label]
        if own:
            done = [run for run in own if run.state == FINISHED]
            found.append(
                Standing(
                    contender=contender.label,
                    dataset=own[0].dataset,
                    finished=len(done),
                    planned=len(own),
                    pairs=len({run.pair for run in done}),
                    of_pairs=of_pairs,
                    seeds=len({run.seed for run in done}),
                    scores=_spreads(done),
                    rank=ranks.get((own[0].dataset, contender.label)),
                )
            )
    bounds = {contender.label for contender in contenders if contender.upper_bound}
    return _with_best(found, [standing for standing in found if standing.contender not in bounds])


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
    return {name: spread((run.seed, run.scores[name]) for run in runs if name in run.scores) for name in known}


def spread(values: Iterable[tuple[int, float]]) -> Spread:
    """Of (seed, score): mean of each seed first, then mean and standard deviation over seeds."""
    by_seed: dict[int, list[float]] = {}
    for seed, value in values:
        by_seed.setdefault(seed, []).append(value)
    means = [float(np.mean(found)) for found in by_seed.values()]
    return Spread(
        mean=float(np.mean(means)),
        std=float(np.std(means, ddof=1)) if len(means) > 1 else None,
        n=sum(len(found) for found in by_seed.values()),
    )


def _cells(runs: Iterable[Run]) -> dict[tuple[str, str, tuple[int, int]], dict[str, Spread]]:
    groups: dict[tuple[str, str, tuple[int, int]], list[Run]] = {}
    for run in runs:
        if run.state == FINISHED:
            groups.setdefault((run.dataset, run.contender, run.pair), []).append(run)
    return {key: _spreads(found) for key, found in groups.items()}


def _comparisons(runs: Sequence[Run], datasets: Sequence[str], contenders: Sequence[Contender]) -> Iterable[Comparison]:
    """Every data set and, of several, all of them together."""
    ranked = [contender.label for contender in contenders if not contender.upper_bound]
    cells = _cells(runs)
    for name in (*((ALL_SETS,) if len(datasets) > 1 else ()), *datasets):
        for metric in RANKED_BY:
            scores: dict[str, dict[Hashable, float | None]] = {label: {} for label in ranked}
            for (dataset, label, pair), found in cells.items():
                if name in (ALL_SETS, dataset) and label in scores and metric in found:
                    scores[label][dataset, pair] = found[metric].mean
            chosen = widest_comparison({label: found for label, found in scores.items() if found})
            if chosen:
                left = tuple(label for label, found in scores.items() if found and label not in chosen)
                yield Comparison(name, metric, statistics_over_pairs(chosen), left)


def widest_comparison(scores: _ByPair) -> dict[str, Mapping[Hashable, float | None]]:
    r"""argmax_S |S| k(S), k(S) the rows that have all pairs of S, S what two rows share; of equals the most rows.

    A row with few pairs would shrink the pairs that all share, and with them what can be said about the other rows.
    Empty if no two rows share a pair.
    """
    pairs = {label: frozenset(found) for label, found in scores.items()}
    candidates = {pairs[a] & pairs[b] for a, b in combinations(pairs, 2)} - {frozenset()}
    rows = {shared: [label for label in pairs if shared <= pairs[label]] for shared in candidates}
    widest = max(rows.items(), key=lambda each: (len(each[0]) * len(each[1]), len(each[1])), default=(None, []))[1]
    return {label: scores[label] for label in widest}


def _ranks(comparisons: Iterable[Comparison]) -> dict[Hashable, float]:
    """(data set, contender) -> average rank."""
    return {
        (each.dataset, label): rank
        for each in comparisons
        for label, rank in zip(each.statistics.methods, each.statistics.average_ranks, strict=True)
    }


def _versions(results: Iterable[Result]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for result in results:
        for name, version in result.versions.items():
            found.setdefault(name, set()).add(version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}
