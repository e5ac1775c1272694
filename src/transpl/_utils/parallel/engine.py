"""What a back end has to offer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol


class Engine(Protocol):
    """Runs one packed function on packed tasks; a handle stands for a task that was started."""

    def start(self, task: bytes) -> Any:
        """Give a task to a free worker and return its handle at once."""
        ...

    def wait(self, handles: Collection[Any]) -> Any:
        """Return one of `handles` as soon as it has an answer or its worker is dead."""
        ...

    def fetch(self, handle: Any) -> bytes:
        """Return the packed answer; raise WorkerDied if there will be none."""
        ...

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        ...
