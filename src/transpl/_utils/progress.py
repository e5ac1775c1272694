"""Progress of long work: a bar in a terminal, elsewhere a plain line now and then, both on stderr.

Long-running code opens a `task`. Its caller decides whether anything is shown: the command line shows all tasks,
`--quiet` none, and a Python program those whose `shown` is True (`verbose=True`).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

FIRST_LINE_AFTER = 2.0  # seconds; what is done sooner needs no line
SECONDS_BETWEEN_LINES = 10.0

Report = Callable[[int, float | None], None]
Update = Callable[..., None]  # (done, note=""); an empty note keeps the previous one
_T = TypeVar("_T")

_display: ContextVar[bool | None] = ContextVar("display", default=None)  # None: as each task asks for
_is_inside: ContextVar[bool] = ContextVar("is_inside", default=False)


@contextmanager
def display(shown: bool) -> Iterator[None]:
    """Show all tasks, or none, whatever their `shown` says."""
    before = _display.set(shown)
    try:
        yield
    finally:
        _display.reset(before)


def silence() -> None:
    """Show nothing from now on, until the `display` around ends."""
    _display.set(False)


def is_silent() -> bool:
    """Whether nothing but errors and results is to be shown."""
    return _display.get() is False


@contextmanager
def task(title: str, total: int | None, *, first: int = 0, shown: bool | None = None) -> Iterator[Update]:
    """Yield update(done, note=""). A task inside another one is not shown.

    total : None if unknown; then only the time is shown
    first : how much an earlier session did, which tells nothing about the pace of this one
    shown : whether to show it; None: only where `display` says so
    """
    wanted = _display.get()
    if _is_inside.get() or not (bool(shown or wanted) and wanted is not False):
        yield lambda done, note="": None
        return
    inside = _is_inside.set(True)
    try:
        with _shown_task(title, total, first) as update:
            yield update
    finally:
        _is_inside.reset(inside)


def tracked(items: Iterable[_T], title: str, total: int) -> Iterator[_T]:
    """Yield the items of a loop, with progress."""
    with task(title, total) as update:
        for done, item in enumerate(items, start=1):
            yield item
            update(done)


@contextmanager
def progress_bar(title: str, epochs: int, *, shown: bool) -> Iterator[Report]:
    """Yield report(epoch, validation_loss)."""
    with task(title, epochs, shown=shown) as update:

        def report(epoch: int, validation_loss: float | None) -> None:
            update(epoch + 1, "" if validation_loss is None else f"validation loss {validation_loss:.4f}")

        yield report


def format_duration(seconds: float) -> str:
    """As 45 s, 12 min or 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def _shown_task(title: str, total: int | None, first: int) -> Iterator[Update]:
    from rich.console import Console  # loads slowly

    console = Console(stderr=True)
    if not console.is_terminal:
        with PlainLines(title, total, first) as lines:
            yield lines.update
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    note_column = TextColumn("{task.fields[note]}")
    with Progress(TextColumn("{task.description}"), *columns, note_column, console=console, transient=True) as bar:
        drawn = bar.add_task(title, total=total, completed=first, note="")

        def update(done: int, note: str = "") -> None:
            bar.update(drawn, completed=done)
            if note:
                bar.update(drawn, note=note)

        yield update


class PlainLines:
    """Writes how far a task is to stderr, about every ten seconds, from a separate thread.

    The thread also writes during a step that takes minutes.
    """

    def __init__(self, title: str, total: int | None, first: int = 0) -> None:
        self.title, self.total, self.first, self.done, self.note = title, total, first, first, ""
        self._start, self._finished = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> PlainLines:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join()

    def update(self, done: int, note: str = "") -> None:
        """Set how much is done."""
        self.done, self.note = done, note or self.note

    def line(self) -> str:
        """As "learning: 3 of 12 (25%), about 45 s left"."""
        spent, new = time.monotonic() - self._start, self.done - self.first
        if self.total is None:
            return f"{self.title}: {format_duration(spent)} so far"
        left = "time left not known yet"
        if new > 0:
            left = f"about {format_duration(spent / new * (self.total - self.done))} left"
        note = f"; {self.note}" if self.note else ""
        return f"{self.title}: {self.done:,} of {self.total:,} ({self.done / max(self.total, 1):.0%}), {left}{note}"

    def _write(self) -> None:
        pause = FIRST_LINE_AFTER
        while not self._finished.wait(pause):
            sys.stderr.write(f"{self.line()}\n")
            sys.stderr.flush()
            pause = SECONDS_BETWEEN_LINES
