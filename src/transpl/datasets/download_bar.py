"""A progress bar for one download; silence for log files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


class _Bar:
    """What pooch expects of a progress bar, drawn by rich."""

    def __init__(self, bar: Progress, title: str) -> None:
        self._bar, self._task = bar, bar.add_task(title, total=None)

    @property
    def total(self) -> float | None:
        return self._bar.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._bar.update(self._task, total=size or None)  # 0 means that the host does not tell

    def update(self, size: int) -> None:
        self._bar.advance(self._task, size)

    def reset(self) -> None:
        self._bar.update(self._task, completed=0)

    def close(self) -> None:
        self._bar.refresh()


@contextmanager
def download_bar(title: str, *, shown: bool) -> Iterator[_Bar | bool]:
    """Yield a bar, or False, which pooch takes for silence."""
    console = Console(stderr=True)
    if not (shown and console.is_terminal):
        yield False
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), *columns, console=console, transient=True) as bar:
        yield _Bar(bar, title)
