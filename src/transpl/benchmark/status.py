"""How far a benchmark is: live in a terminal, line by line in a log, and as `--status` and `--dry-run` list it."""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from transpl._utils.progress import format_duration, is_silent, task
from transpl.benchmark.run_spec import RunSpec, short_digest
from transpl.benchmark.store import Result, Store
from transpl.methods.registry import entries

if TYPE_CHECKING:
    from transpl.benchmark.runner import RunOutcome

_LATEST = 8  # runs below the live table
_STAGES = ("start", "adapt", "label", "predict")  # without the source model, which runs share


# Time


class RunTimings:
    """Estimates of how long runs take, from finished ones."""

    def __init__(self, finished: Iterable[tuple[RunSpec, Result]]) -> None:
        self._runs: dict[Hashable, list[float]] = {}
        self._sources: dict[str, list[float]] = {}
        for spec, result in finished:
            seconds = sum(result.seconds.get(stage, 0.0) for stage in _STAGES)
            for kind in _kinds(spec):
                self._runs.setdefault(kind, []).append(seconds)
            if result.seconds.get("source"):
                self._sources.setdefault(spec.dataset, []).append(result.seconds["source"])

    def seconds(self, spec: RunSpec) -> float | None:
        """The median of similar runs, without the source model; None if there are none yet."""
        return next((median(self._runs[kind]) for kind in _kinds(spec) if kind in self._runs), None)

    def total(self, specs: Sequence[RunSpec], jobs: int) -> tuple[float, int]:
        """Seconds for runs on `jobs` workers, with their source models, and the number of runs without estimate."""
        known = [seconds for spec in specs if (seconds := self.seconds(spec)) is not None]
        methods = entries()
        models = {
            (spec.dataset, spec.source, spec.seed)
            for spec in specs
            if spec.method not in methods or methods[spec.method].method.starts_from_source
        }
        sources = sum(median(self._sources[name]) for name, _, _ in models if name in self._sources)
        return (sum(known) + sources) / jobs, len(specs) - len(known)


def _kinds(spec: RunSpec) -> tuple[Hashable, ...]:
    """Groups of similar runs: the same settings first, then the same method with any settings."""
    method = (spec.dataset, spec.method, spec.goal)
    return (*method, short_digest(dict(spec.settings))), method


# Names


def distinct_names(specs: Iterable[RunSpec]) -> dict[str, str]:
    """Digest -> name; runs that would share a name get the settings or data in which they differ."""
    groups: dict[str, dict[str, RunSpec]] = {}
    for spec in specs:
        groups.setdefault(str(spec), {})[spec.digest] = spec
    return {
        digest: name + _difference(spec, list(group.values()))
        for name, group in groups.items()
        for digest, spec in group.items()
    }


def _difference(spec: RunSpec, group: Sequence[RunSpec]) -> str:
    settings = "".join(
        f" {name}={value}"
        for name, value in spec.settings.items()
        if any(other.settings.get(name) != value for other in group)
    )
    return settings + (f" data={spec.data}" if any(other.data != spec.data for other in group) else "")


# Lists


def missing_lines(store: Store, specs: Sequence[RunSpec], jobs: int) -> Iterator[str]:
    """Every missing run with an estimate of its time, then a summary."""
    timings, names, missing = RunTimings(store.results()), distinct_names(specs), store.missing(specs)
    for spec in missing:
        seconds = timings.seconds(spec)
        yield f"{names[spec.digest]}  {'?' if seconds is None else format_duration(seconds)}"
    yield _summary(store, len(specs), missing, timings, jobs)


def status_lines(store: Store, specs: Sequence[RunSpec], jobs: int) -> Iterator[str]:
    """How far each method is on each data set, the failed runs, then a summary."""
    names, missing = distinct_names(specs), store.missing(specs)
    unfinished = {spec.digest for spec in missing}
    groups: dict[tuple[str, str], list[bool]] = {}
    for spec in specs:
        groups.setdefault((spec.dataset, spec.method), []).append(spec.digest not in unfinished)
    for (dataset, method), finished in groups.items():
        yield f"{dataset:<12} {method:<14} {sum(finished):>5} of {len(finished)}{'  complete' * all(finished)}"
    for spec in missing:
        if (failure := store.failure(spec)) is not None:
            yield f"failed: {names[spec.digest]}: {failure.error}"
    yield _summary(store, len(specs), missing, RunTimings(store.results()), jobs)


def status_facts(store: Store, specs: Sequence[RunSpec], jobs: int) -> dict[str, Any]:
    """Counts, the missing runs with the error of those that failed, and the estimated seconds, as plain values."""
    names, missing = distinct_names(specs), store.missing(specs)
    seconds, unknown = RunTimings(store.results()).total(missing, jobs)
    failures = {spec.digest: store.failure(spec) for spec in missing}
    return {
        "runs": len(specs),
        "finished": len(specs) - len(missing),
        "failed": sum(failure is not None for failure in failures.values()),
        "missing": [
            {
                "run": names[spec.digest],
                "dataset": spec.dataset,
                "method": spec.method,
                "pair": spec.pair,
                "seed": spec.seed,
                "error": None if (failure := failures[spec.digest]) is None else failure.error,
            }
            for spec in missing
        ],
        "estimated_seconds": None if unknown else seconds,
    }


def _summary(store: Store, total: int, missing: Sequence[RunSpec], timings: RunTimings, jobs: int) -> str:
    failed = sum(store.failure(spec) is not None for spec in missing)
    line = f"{total} runs: {total - len(missing)} finished, {len(missing)} missing, {failed} of them failed"
    if not missing:
        return line
    seconds, unknown = timings.total(missing, jobs)
    if unknown == len(missing):
        return f"{line}; no estimate of the time yet"
    return f"{line}; about {format_duration(seconds)}" + (f", and {unknown} runs of unknown length" if unknown else "")


# Live


def show_progress(
    outcomes: Iterator[RunOutcome], specs: Sequence[RunSpec], folder: Path, jobs: int, console: Console | None = None
) -> Iterator[RunOutcome]:
    """Yield outcomes as they come, and show them on stderr."""
    console, view = console or Console(stderr=True), ProgressView(specs, folder, jobs)
    if not console.is_terminal or is_silent():
        yield from _plain_progress(outcomes, view)
        return
    with Live(console=console, transient=True, refresh_per_second=2, get_renderable=view.table):
        for outcome in outcomes:
            view.add(outcome)
            if outcome.error is not None:
                console.print(Text(view.line(outcome)))  # stays when the table is gone
            yield outcome


def _plain_progress(outcomes: Iterator[RunOutcome], view: ProgressView) -> Iterator[RunOutcome]:
    """A line per run and, between them, how far all are; only failures while nothing is to be shown."""
    with task("benchmark", view.total, first=view.total - view.left_at_start) as update:
        for outcome in outcomes:
            view.add(outcome)
            if outcome.error is not None or not is_silent():
                sys.stderr.write(view.line(outcome) + "\n")
                sys.stderr.flush()
            update(view.total - len(view.waiting))
            yield outcome


class ProgressView:
    """A live table of a benchmark: counts, time, and the latest runs."""

    def __init__(self, specs: Sequence[RunSpec], folder: Path, jobs: int) -> None:
        store = Store(folder)
        self.total, self.jobs = len(specs), jobs
        self.names = distinct_names(specs)
        self.waiting = {spec.digest: spec for spec in store.missing(specs)}
        self.estimate, self.unknown = RunTimings(store.results()).total(list(self.waiting.values()), jobs)
        self.failed = 0
        self.latest: list[RunOutcome] = []
        self.start, self.left_at_start = time.monotonic(), len(self.waiting)

    def add(self, outcome: RunOutcome) -> None:
        """Count a run that ended."""
        self.waiting.pop(outcome.spec.digest, None)
        self.failed += outcome.error is not None
        self.latest = [*self.latest, outcome][-_LATEST:]

    def table(self) -> Table:
        """The table as of now."""
        left, spent = len(self.waiting), time.monotonic() - self.start
        columns = {
            "done": f"{self.total - left - self.failed}/{self.total}",
            "running": str(min(self.jobs, left)),
            "failed": str(self.failed),
            "left": str(left),
            "time": format_duration(spent),
            "time left": self._time_left(spent),
        }
        table = Table(title="transpl bench", title_justify="left")
        for name in columns:
            table.add_column(name, justify="right")
        table.add_row(*columns.values())
        table.caption = Text("\n".join(map(self.line, self.latest)))  # Text: an error may look like markup
        table.caption_justify = "left"
        return table

    def line(self, outcome: RunOutcome) -> str:
        """A run in one line."""
        name = self.names[outcome.spec.digest]
        if outcome.result is None:
            return f"{name}: failed: {outcome.error}"
        test = outcome.result.test
        scores = test or outcome.result.pseudo_labels["initial"]
        return f"{name}: {'accuracy' if test else 'label accuracy'} {100 * scores['accuracy']:.1f}"

    def _time_left(self, spent: float) -> str:
        """From the pace of this session; before its first run ends, from earlier runs."""
        left = len(self.waiting)
        done = self.left_at_start - left
        if done:
            return format_duration(spent / done * left)
        return "?" if self.unknown else format_duration(max(0.0, self.estimate - spent))
