"""In this process, one task after the other: for debugging. A crash takes everything with it."""

from __future__ import annotations

from collections.abc import Collection

from transpl._utils.parallel.work import answer


class Call:
    """A task that waits to be run."""

    def __init__(self, task: bytes) -> None:
        self.task = task


class Inline:
    """Runs a task when its answer is asked for."""

    def __init__(self, function: bytes, jobs: int, address: str | None) -> None:
        self._function = function

    def start(self, task: bytes) -> Call:
        """Remember the task."""
        return Call(task)

    def wait(self, handles: Collection[Call]) -> Call:
        """Return the task that waits longest."""
        return next(iter(handles))

    def fetch(self, handle: Call) -> bytes:
        """Run the task."""
        return answer(self._function, handle.task)

    def close(self) -> None:
        """There is nothing to end."""
