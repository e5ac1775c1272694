"""Progress bars on stderr if it is a terminal; silence otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Report = Callable[[int, float | None], None]


@contextmanager
def progress_bar(title: str, epochs: int, *, shown: bool) -> Iterator[Report]:
    """Yield report(epoch, validation_loss)."""
    with _bar(title, epochs, TextColumn("{task.fields[note]}"), shown=shown) as update:

        def report(epoch: int, validation_loss: float | None) -> None:
            update(epoch + 1, "" if validation_loss is None else f"validation loss {validation_loss:.4f}")

        yield report


@contextmanager
def windows_bar(title: str, windows: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield report(windows_done) of a bar that shows the remaining time."""
    with _bar(title, windows, TextColumn("left"), TimeRemainingColumn(), shown=shown) as update:
        yield lambda done: update(done, "")


@contextmanager
def _bar(title: str, total: int, *more: ProgressColumn, shown: bool) -> Iterator[Callable[[int, str], None]]:
    """Yield update(done, note); an empty note keeps the previous one."""
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda done, note: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), *more)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, note="")

        def update(done: int, note: str) -> None:
            bar.update(task, completed=done)
            if note:
                bar.update(task, note=note)

        yield update
