"""What a benchmark is doing, live in a terminal and line by line in a log file; on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from transpl.benchmark.estimate import Timings, in_words
from transpl.benchmark.naming import distinct_names
from transpl.benchmark.runner import Done
from transpl.benchmark.spec import RunSpec
from transpl.benchmark.store import Store

_LATEST = 8


def watched(
    runs: Iterator[Done], specs: Sequence[RunSpec], folder: Path, jobs: int, console: Console | None = None
) -> Iterator[Done]:
    """Pass runs on as they end, and show them."""
    console, view = console or Console(stderr=True), _View(specs, folder, jobs)
    if not console.is_terminal:
        for done in runs:
            view.add(done)
            sys.stderr.write(view.line(done) + "\n")
            sys.stderr.flush()
            yield done
        return
    with Live(console=console, transient=True, refresh_per_second=2, get_renderable=view.table):
        for done in runs:
            view.add(done)
            if done.error is not None:
                console.print(Text(view.line(done)))  # it stays when the table is gone
            yield done


class _View:
    def __init__(self, specs: Sequence[RunSpec], folder: Path, jobs: int) -> None:
        store = Store(folder)
        self.total, self.jobs = len(specs), jobs
        self.names = distinct_names(specs)
        self.waiting = {spec.digest: spec for spec in store.missing(specs)}
        self.guess, self.unknown = Timings(store.results()).total(list(self.waiting.values()), jobs)
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
            f"{self.total - left - self.failed}/{self.total}",
            str(min(self.jobs, left)),
            str(self.failed),
            str(left),
            in_words(time.monotonic() - self.start),
            self._time_left(),
        )
        # Text, for an error may contain what looks like markup.
        table.caption = Text("\n".join(self.line(done) for done in self.latest))
        table.caption_justify = "left"
        return table

    def line(self, done: Done) -> str:
        name = self.names[done.spec.digest]
        if done.result is None:
            return f"{name}: failed: {done.error}"
        scores = done.result.test or done.result.pseudo_labels["initial"]
        return f"{name}: {'accuracy' if done.result.test else 'label accuracy'} {100 * scores['accuracy']:.1f}"

    def _time_left(self) -> str:
        """By the pace of this session, or before its first run by that of former ones."""
        left, done = len(self.waiting), self.at_start - len(self.waiting)
        spent = time.monotonic() - self.start
        if done:
            return in_words(spent / done * left)
        return "?" if self.unknown else in_words(max(0.0, self.guess - spent))
