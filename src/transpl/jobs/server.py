"""A fitted model behind HTTP: windows or a csv in, labels out. Needs the extra `serve` (Starlette and uvicorn).

    POST /predict   labels, confidence and probabilities; with ?drift=true also what `transpl monitor` reports
    GET  /health    whether it answers
    GET  /model     classes, channels, window length, estimated accuracy
    GET  /metrics   counters for Prometheus

Every error is JSON with one line. The model is only read, so that requests do not influence each other.
"""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from transpl import TransPL, __version__
from transpl._utils.errors import InputError
from transpl.datasets.recordings.reading import read_recordings
from transpl.jobs.server_metrics import Measured, ServerMetrics
from transpl.jobs.target import origin_of
from transpl.jobs.target_summary import estimated_accuracy
from transpl.windows import as_windows, name_channels

_OPTIONAL = ("domain_col", "group_col", "time_col")  # columns of the source that a csv may lack
_CSV = "recording.csv"
_TRUE = ("1", "true", "yes")


@dataclass(frozen=True)
class Limits:
    """What one request, and all of them together, may take.

    Attributes
    ----------
    at_once : int
        Requests that are computed at the same time, each on a thread.
    waiting : int
        Requests that may wait for one of these threads; more are answered with 503.
    seconds : float
        From the first byte to the answer.
    body_bytes : int
    """

    at_once: int = 2
    waiting: int = 32
    seconds: float = 30.0
    body_bytes: int = 16 << 20


class ModelServer:
    """The answers of one model; `app` is the ASGI application.

    Parameters
    ----------
    model : TransPL
        Fitted; from here on it is only read.
    reading : mapping, optional
        How the model's recordings were read, as arguments of `read_recordings`.
    limits : Limits, optional
    """

    def __init__(self, model: TransPL, reading: Mapping[str, Any] | None = None, limits: Limits | None = None) -> None:
        self.model, self.reading = model, dict(reading or {})
        self.limits = Limits() if limits is None else limits
        self.metrics = ServerMetrics()
        self._pool = ThreadPoolExecutor(self.limits.at_once, thread_name_prefix="transpl-serve")
        self._unfinished = 0  # requests given to the pool
        self._card = self._describe()
        routes = [
            Route("/predict", self._predict, methods=["POST"]),
            Route("/health", self._health),
            Route("/model", self._model),
            Route("/metrics", self._metrics),
        ]
        handlers: dict[Any, Any] = {HTTPException: _refused, Exception: _failed}
        paths = {route.path for route in routes}
        self.app = Measured(Starlette(routes=routes, exception_handlers=handlers), self.metrics, paths)

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _model(self, request: Request) -> Response:
        return JSONResponse(self._card)

    async def _metrics(self, request: Request) -> Response:
        text = self.metrics.text() + f"# TYPE transpl_in_progress gauge\ntranspl_in_progress {self._unfinished}\n"
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def _predict(self, request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/json", "text/csv"):
            raise HTTPException(415, "content-type: expected application/json or text/csv. Name one of them.")
        with_drift = request.query_params.get("drift", "").lower() in _TRUE
        if self._unfinished >= self.limits.at_once + self.limits.waiting:
            raise HTTPException(503, "busy: too many requests wait. Try again in a second.", {"retry-after": "1"})
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.limits.seconds):
                body = await self._body(request)
                answer = await asyncio.wrap_future(self._submit(kind, body, with_drift))
        except TimeoutError:
            late = f"no answer within {self.limits.seconds:g} s. Send fewer windows."
            raise HTTPException(503, f"timeout: {late}", {"retry-after": "1"}) from None
        except ClientDisconnect:
            raise HTTPException(400, "body: the connection was closed before its end.") from None
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        self.metrics.predicted(len(answer["labels"]), time.perf_counter() - started)
        return JSONResponse(answer)

    async def _body(self, request: Request) -> bytes:
        """Read the body, and stop reading at the limit."""
        most, parts, size = self.limits.body_bytes, [], 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise HTTPException(413, f"body: expected at most {most:,} bytes. Send the windows in parts.")
            parts.append(part)
        return b"".join(parts)

    def _submit(self, kind: str, body: bytes, with_drift: bool) -> Future[dict[str, Any]]:
        """Compute an answer in the pool; a timeout cancels it if it has not begun, and lets it end otherwise."""
        loop = asyncio.get_running_loop()
        future = self._pool.submit(self.answer, kind, body, with_drift)
        self._unfinished += 1
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._finished))
        return future

    def _finished(self) -> None:
        self._unfinished -= 1

    def answer(self, kind: str, body: bytes, with_drift: bool = False) -> dict[str, Any]:
        """Label the windows of a request; what cannot be used raises an `InputError`."""
        origin: dict[str, Any] = {}
        warnings: tuple[str, ...] = ()
        if kind == "text/csv":
            X, origin, warnings = self._from_csv(body)
        else:
            X = _from_json(body)
        method = self.model.fitted_method()
        try:
            windows = as_windows(
                X, name="windows", n_channels=self.model.n_channels_, min_length=method.shortest_window
            )
        except TypeError as error:
            raise InputError(str(error)) from None
        p = self.model.predict_proba(windows)
        drift = self.model.drift(windows, channel_names=self._channel_names) if with_drift else None
        return {
            "classes": self.model.classes_.tolist(),
            "labels": self.model.classes_[p.argmax(axis=1)].tolist(),
            "confidence": p.max(axis=1).tolist(),
            "probabilities": p.tolist(),
            "origin": origin,
            "warnings": list(warnings),
            "drift": None if drift is None else drift.as_json(),
        }

    def _from_csv(self, body: bytes) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
        """Windows of a recording, read as the model's recordings were."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _CSV
            path.write_bytes(body)
            try:
                found = read_recordings(path, optional=_OPTIONAL, **self.reading)
            except InputError as error:
                raise InputError(str(error).replace(str(path), _CSV)) from None
        origin = {str(name): values for name, values in origin_of(found).to_dict("list").items()}
        return found.X, origin, found.warnings

    def _describe(self) -> dict[str, Any]:
        """What /model says; labelling a window here also does what a model does only once."""
        model, method = self.model, self.model.fitted_method()
        length = self.reading.get("window")
        self.model.predict_proba(np.zeros((1, model.n_channels_, length or method.shortest_window), np.float32))
        adapted = method.target_counts is not None
        return {
            "transpl_version": __version__,
            "variant": method.variant,
            "fingerprint": method.fingerprint(),
            "adapted": adapted,
            "classes": model.classes_.tolist(),
            "channels": list(self._channel_names),
            "window": length,
            "shortest_window": method.shortest_window,
            "reading": self.reading,
            "estimated_accuracy": estimated_accuracy(model),
            "undone": list(model.shifts_) if adapted and method.variant == "plus" else [],
        }

    @property
    def _channel_names(self) -> tuple[str, ...]:
        names = self.model.channel_names or self.reading.get("channels")
        return name_channels(names, self.model.n_channels_)


def serve(server: ModelServer, host: str, port: int, log: Callable[[str], None]) -> None:
    """Answer until SIGTERM or Ctrl-C, then finish the requests that have begun.

    port : 0 for any free one; the log says which
    """
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"--host, --port: cannot listen on {host}:{port} ({reason}). Choose others.") from None
    config = uvicorn.Config(
        server.app,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(server.limits.seconds) + 1,
    )
    runner = uvicorn.Server(config)
    log(f"serving on http://{host}:{listening.getsockname()[1]}; stop with Ctrl-C or SIGTERM")
    try:
        runner.run(sockets=[listening])
    except (SystemExit, KeyboardInterrupt):  # uvicorn raises the signal that stopped it again
        if not runner.should_exit:
            raise
    log(f"stopped after {server.metrics.n_requests:,} requests")


def _from_json(body: bytes) -> Any:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"body: not JSON ({' '.join(str(error).split())}).") from None
    if not isinstance(found, dict) or not isinstance(found.get("windows"), list):
        raise InputError('body: expected {"windows": [...]}, an array (n, channels, time). Name it so.')
    return found["windows"]


async def _refused(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    # Starlette raises the error again after this answer, and uvicorn logs it.
    return JSONResponse({"error": f"internal error ({type(error).__name__}). The server's log says more."}, 500)
