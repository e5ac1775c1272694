"""Workers of ray: a cluster that runs already, or one on this machine that leaves nothing behind."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from transpl._utils.parallel.address import check_listening, no_cluster
from transpl._utils.parallel.work import ONE_THREAD, WorkerDied, answer

_LONGEST_FOLDER = 40  # ray puts sockets below it, whose paths may have about 100 characters
_NO_REPORTS = {"RAY_USAGE_STATS_ENABLED": "0"}
_SHARED_GPU = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}  # a task that reserves no GPU may still see it


class Ray:
    """One process per task at a time: a process that dies takes only its own task with it."""

    def __init__(self, function: bytes, jobs: int, address: str | None) -> None:
        self._open = ExitStack()
        try:
            if ray.is_initialized():
                pass  # whoever did that may go on using it
            elif address:
                self._connect(address)
            else:
                self._start_here(jobs)
            self._function = ray.put(function)
            self._run = ray.remote(num_cpus=1, max_retries=0)(answer)
        except BaseException:
            self._open.close()
            raise

    def start(self, task: bytes) -> Any:
        """Submit the task."""
        return self._run.remote(self._function, task)

    def wait(self, handles: Collection[Any]) -> Any:
        """Return a reference that is ready."""
        return ray.wait(list(handles), num_returns=1)[0][0]

    def fetch(self, handle: Any) -> bytes:
        """Return the answer; what ray itself has to complain about is a worker lost."""
        try:
            return ray.get(handle)
        except RayError as error:
            raise WorkerDied(type(error).__name__) from None

    def close(self) -> None:
        """Leave the cluster; one of ours ends with all its processes."""
        self._open.close()

    def _connect(self, address: str) -> None:
        check_listening(address)
        self._open.enter_context(_no_news())
        self._open.callback(ray.shutdown)
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise no_cluster(address, error) from None

    def _start_here(self, jobs: int) -> None:
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="ray-", dir=_short_folder()))
        self._open.enter_context(_no_news())
        self._open.callback(ray.shutdown)
        _keep_out_of_home()
        with _environment(ONE_THREAD | _NO_REPORTS | _SHARED_GPU | {"PYTHONPATH": _import_path()}):
            ray.init(
                "local",
                num_cpus=jobs,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=folder,
                _node_ip_address="127.0.0.1",
            )


def _keep_out_of_home() -> None:
    """Give ray a password for its local cluster, unless the user has one; else it writes one to the home folder.

    It stays in this process's environment: ray reads it once and holds on to it.
    """
    if "RAY_AUTH_TOKEN_PATH" not in os.environ and not (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@contextmanager
def _no_news() -> Iterator[None]:
    """Keep ray from printing ten lines to stdout when a worker dies; its task's outcome tells it."""
    news = ray._private.worker
    shown = getattr(news, "_worker_logs_enabled", True)
    news._worker_logs_enabled = False
    try:
        yield
    finally:
        news._worker_logs_enabled = shown


def _short_folder() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) <= _LONGEST_FOLDER else "/tmp"


def _import_path() -> str:
    """Let workers import what this process can import."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes started within the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
