"""All that a leaderboard shows, as plain values: who was compared, every run, and what follows from the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transpl.benchmark.measures import METRICS, Metric, Spread
from transpl.benchmark.statistics import Statistics

FINISHED, FAILED, NOT_RUN = "finished", "failed", "not run"
ALL_SETS = "all data sets"


@dataclass(frozen=True)
class Contender:
    """A method with its settings: what a row of the leaderboard stands for.

    label : tells it from every other one
    goal : "adapt", or "label" for runs that only label the target with the source model
    changes : settings that differ from the paper's, as text, but for those that differ alike in all contenders
    remarks : what a reader has to know before comparing it with others
    upper_bound : it is trained on target labels, so it is neither ranked nor best
    """

    label: str
    method: str
    goal: str
    changes: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    upper_bound: bool = False


@dataclass(frozen=True)
class Run:
    """A planned run and what became of it.

    contender : its label
    scores : by name of metric
    labels : scores of the pseudo-labels, in percent, by when they were given
    details : what else the method told, such as channel weights
    """

    digest: str
    dataset: str
    contender: str
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
class Standing:
    """A contender on a data set.

    pairs, of_pairs : those it has a finished run of, and all pairs of the data set that anybody was to run
    complete : whether its means are over all pairs and over the same seeds as those of most contenders of its goal
    scores : by name of metric; mean over pairs first, then over seeds
    rank : average rank over pairs, None where it is not ranked
    best : names of the metrics in which no comparable contender is better; "rank" may be among them
    """

    contender: str
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
    """Contenders ranked over the pairs of a data set, or of `ALL_SETS`; on each they have the same seeds.

    unranked : labels of contenders that lack too many of the pairs that the others share, or have other seeds there
    """

    dataset: str
    metric: str
    statistics: Statistics
    unranked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Leaderboard:
    """A benchmark folder.

    shared_changes : settings that differ from the paper's, alike in all contenders
    cells : (data set, contender, pair) -> name of metric -> mean and std over seeds
    ranked_by : the metric of the standings' ranks; None where nothing can be ranked
    versions : of the packages that the runs were made with; several of one package are not mixed silently
    """

    datasets: tuple[str, ...]
    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    runs: tuple[Run, ...]
    standings: tuple[Standing, ...]
    cells: Mapping[tuple[str, str, tuple[int, int]], Mapping[str, Spread]]
    comparisons: tuple[Comparison, ...]
    ranked_by: str | None = None
    shared_changes: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those that any run has."""
        known = {name for run in self.runs for name in run.scores}
        return tuple(metric for metric in METRICS if metric.name in known)

    def in_state(self, state: str) -> tuple[Run, ...]:
        """The runs that are `FINISHED`, `FAILED` or `NOT_RUN`."""
        return tuple(run for run in self.runs if run.state == state)

    def pairs_of(self, dataset: str) -> tuple[tuple[int, int], ...]:
        """Every pair of a data set that anybody was to run."""
        return tuple(sorted({run.pair for run in self.runs if run.dataset == dataset}))
