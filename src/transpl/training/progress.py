"""A progress bar for people; silence for log files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[int, float | None], None]


@contextmanager
def progress_bar(title: str, epochs: int, *, shown: bool) -> Iterator[Report]:
    """Yield report(epoch, validation_loss); draws on stderr, only if that is a terminal."""
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield lambda epoch, validation_loss: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console, transient=True) as bar:
        task = bar.add_task(title, total=epochs, note="")

        def report(epoch: int, validation_loss: float | None) -> None:
            bar.update(task, completed=epoch + 1)
            if validation_loss is not None:
                bar.update(task, note=f"validation loss {validation_loss:.4f}")

        yield report
