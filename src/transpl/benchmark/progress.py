"""What a benchmark is doing, live in a terminal and line by line in a log file; on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from transpl.benchmark.estimate import Timings, in_words
from transpl.benchmark.runner import Done
from transpl.benchmark.spec import RunSpec
from transpl.benchmark.store import Store

_LATEST = 8


def watched(runs: Iterator[Done], specs: Sequence[RunSpec], folder: Path, jobs: int) -> Iterator[Done]:
    """Pass runs on as they end, and show them."""
    console, view = Console(stderr=True), _View(specs, folder, jobs)
    if not console.is_terminal:
        for done in runs:
            view.add(done)
            sys.stderr.write(_line(done) + "\n")
            sys.stderr.flush()
            yield done
        return
    with Live(view.table(), console=console, transient=True, refresh_per_second=2, get_renderable=view.table):
        for done in runs:
            view.add(done)
            yield done


class _View:
    def __init__(self, specs: Sequence[RunSpec], folder: Path, jobs: int) -> None:
        self.store, self.specs, self.jobs = Store(folder), specs, jobs
        self.waiting = {spec.digest: spec for spec in self.store.missing(specs)}
        self.failed = 0
        self.latest: list[Done] = []
        self.start, self.at_start = time.monotonic(), len(self.waiting)

    def add(self, done: Done) -> None:
        self.waiting.pop(done.spec.digest, None)
        self.failed += done.error is not None
        self.latest = [*self.latest, done][-_LATEST:]

    def table(self) -> Table:
        table = Table(title="transpl bench", title_justify="left")
        for name in ("done", "running", "failed", "left", "time", "time left"):
            table.add_column(name, justify="right")
        left = len(self.waiting)
        table.add_row(
            f"{len(self.specs) - left}/{len(self.specs)}",
            str(min(self.jobs, left)),
            str(self.failed),
            str(left),
            in_words(time.monotonic() - self.start),
            self._time_left(),
        )
        table.caption = "\n".join(_line(done) for done in self.latest)
        table.caption_justify = "left"
        return table

    def _time_left(self) -> str:
        """By the pace of this session, or before its first run by that of former ones."""
        left, done = len(self.waiting), self.at_start - len(self.waiting)
        if done:
            return in_words((time.monotonic() - self.start) / done * left)
        total, unknown = Timings(self.store.results()).total(list(self.waiting.values()), self.jobs)
        return "?" if unknown else in_words(total)


def _line(done: Done) -> str:
    if done.result is None:
        return f"{done.spec}: failed: {done.error}"
    scores = done.result.test or done.result.pseudo_labels["initial"]
    return f"{done.spec}: {'accuracy' if done.result.test else 'label accuracy'} {100 * scores['accuracy']:.1f}"
