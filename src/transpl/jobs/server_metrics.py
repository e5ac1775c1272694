"""What a server counts, in the text format of Prometheus."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection
from typing import Any

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
_FIRST_ERROR = 400  # HTTP status


class ServerMetrics:
    """Counters since the start; one thread writes them."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self._in_bucket = [0] * (len(_BUCKETS) + 1)
        self._seconds = 0.0
        self._windows = 0

    @property
    def n_requests(self) -> int:
        return self._requests.total()

    def answered(self, path: str, status: int) -> None:
        """Count a request."""
        self._requests[path, status] += 1

    def predicted(self, windows: int, seconds: float) -> None:
        """Count the windows of a request that was labelled, and how long that took."""
        self._windows += windows
        self._seconds += seconds
        self._in_bucket[bisect.bisect_left(_BUCKETS, seconds)] += 1

    def text(self) -> str:
        """Return all counters, one per line."""
        errors = sum(n for (_, status), n in self._requests.items() if status >= _FIRST_ERROR)
        lines = ["# TYPE transpl_requests_total counter"]
        for (path, status), n in sorted(self._requests.items()):
            lines.append(f'transpl_requests_total{{path="{path}",status="{status}"}} {n}')
        lines += ["# TYPE transpl_errors_total counter", f"transpl_errors_total {errors}"]
        lines += ["# TYPE transpl_windows_total counter", f"transpl_windows_total {self._windows}"]
        lines.append("# TYPE transpl_predict_seconds histogram")
        below = 0
        for limit, n in zip((*(f"{each:g}" for each in _BUCKETS), "+Inf"), self._in_bucket, strict=True):
            below += n
            lines.append(f'transpl_predict_seconds_bucket{{le="{limit}"}} {below}')
        lines += [f"transpl_predict_seconds_sum {self._seconds:.6f}", f"transpl_predict_seconds_count {below}"]
        return "\n".join(lines) + "\n"


class Measured:
    """An ASGI application around another one that counts its answers.

    Paths other than `paths` count as one, so that strangers cannot make the table of counters grow.
    """

    def __init__(self, app: Any, metrics: ServerMetrics, paths: Collection[str]) -> None:
        self._app, self._metrics, self._paths = app, metrics, paths

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"] if scope["path"] in self._paths else "other"

        async def counting(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._metrics.answered(path, message["status"])
            await send(message)

        await self._app(scope, receive, counting)
