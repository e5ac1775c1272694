"""Run many tasks side by side: in processes of this machine, on dask, on ray, or one by one in this process.

>>> from transpl._utils.parallel import run_all
>>> for outcome in run_all(len, {"a": "one", "b": "three"}, backend="inline"):
...     outcome.key, outcome.value
('a', 3)
('b', 5)

Every back end is an executor in the manner of `concurrent.futures`: `submit` returns a future, `shutdown` ends it.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import cloudpickle
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor, process_executor
from threadpoolctl import threadpool_limits

from transpl._utils.errors import InputError, check_choice, check_int, invalid
from transpl._utils.locks import process_state

__all__ = ["BACKENDS", "TaskOutcome", "check_workers", "run_all"]

BACKENDS = ("loky", "dask", "ray", "inline")
_REQUIRED = {"dask": ("dask", "distributed"), "ray": ("ray",)}  # the back ends that may run on a cluster
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")
_ONE_THREAD = {  # for libraries that a worker loads after it has started
    "VECLIB_MAXIMUM_THREADS": "1",
    **{f"{library}_NUM_THREADS": "1" for library in _LIBRARIES},
}
_CONNECT_SECONDS = 10.0
_WATCH_SECONDS = 1.0
_RAY_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a task that reserves no GPU may still see it
}
_LONGEST_RAY_FOLDER = 40  # ray puts sockets below it, and socket paths are limited to about 100 characters


@dataclass(frozen=True)
class TaskOutcome:
    """The result of a task: its value, or an error in one line.

    traceback : of the last attempt; None if the worker died
    attempts : how often the task was started; 0 if it could not be pickled
    """

    key: str
    value: Any = None
    error: str | None = None
    traceback: str | None = None
    attempts: int = 0


def run_all(
    function: Callable[[Any], Any],
    tasks: Mapping[str, Any] | Sequence[Any],
    *,
    jobs: int = 1,
    backend: str = "loky",
    retries: int = 1,
    address: str | None = None,
) -> Generator[TaskOutcome, None, None]:
    """Yield the outcome of `function(task)` for every task as soon as it is ready, in any order.

    A task that raises or kills its worker does not affect other tasks: it is started again up to `retries` times, then
    reported as failed. Functions, tasks and values are pickled by cloudpickle. Each worker uses one thread.

    Close the generator (`contextlib.closing`) to kill the workers at once when leaving the loop early.

    Parameters
    ----------
    tasks
        By name; a sequence is named "0", "1", ...
    jobs
        How many tasks run at the same time.
    backend
        "loky" (processes of this machine), "dask", "ray", or "inline" (this process, for debugging).
    retries
        How often a failed task is started again.
    address
        Of a running dask or ray cluster. Without it a local one is started, and ended afterwards.
    """
    check_workers(jobs, backend, retries, address)
    if not isinstance(tasks, Mapping):
        tasks = {str(number): task for number, task in enumerate(tasks)}
    try:
        packed = cloudpickle.dumps(function)
    except Exception as error:
        got = f"one that cannot be pickled ({_one_line(error)})"
        advice = "Use a function of a module, without open files or locks."
        raise invalid("function", expected="a function that can be pickled", got=got, advice=advice) from None
    jobs = 1 if backend == "inline" else min(jobs, len(tasks))
    return _outcomes(packed, tasks, jobs, backend, retries, address)


def check_workers(jobs: int, backend: str, retries: int, address: str | None) -> None:
    """Raise what `run_all` would raise for these arguments."""
    check_choice("backend", backend, BACKENDS)
    check_int("jobs", jobs, least=1)
    check_int("retries", retries, least=0)
    if address is not None and backend not in _REQUIRED:
        raise invalid("address", expected=f"None for backend {backend!r}", got=repr(address), advice="Leave it out.")
    missing = [name for name in _REQUIRED.get(backend, ()) if find_spec(name) is None]
    if missing:
        problem = f"{backend!r} needs {missing[0]}, which is not installed"
        raise InputError(f"backend: {problem}. Install it with: pip install 'transpl[{backend}]'")


def _outcomes(
    function: bytes, tasks: Mapping[str, Any], jobs: int, backend: str, retries: int, address: str | None
) -> Generator[TaskOutcome, None, None]:
    waiting = deque((key, task, 1) for key, task in tasks.items())
    running: dict[Future[bytes], tuple[str, Any, int]] = {}
    with ExitStack() as stack:
        if tasks:
            executor = _open(backend, function, jobs, address)
            stack.callback(executor.shutdown)
        while waiting or running:
            while waiting and len(running) < jobs:
                key, task, attempt = waiting.popleft()
                try:
                    packed = cloudpickle.dumps(task)
                except Exception as error:
                    yield _failure(error, key=key)
                else:
                    running[executor.submit(packed)] = key, task, attempt
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                key, task, attempt = running.pop(future)
                outcome = replace(_result(future), key=key, attempts=attempt)
                if outcome.error is None or attempt > retries:
                    yield outcome
                else:
                    waiting.append((key, task, attempt + 1))


def _result(future: Future[bytes]) -> TaskOutcome:
    try:
        answer = future.result()
    except Exception as death:  # exceptions of the task itself are part of the answer
        codes = re.search(r"exit codes of the workers are \{(.*?)\}", str(death))
        return TaskOutcome("", error=f"worker died ({codes[1] if codes else type(death).__name__})")
    try:
        outcome: TaskOutcome = cloudpickle.loads(answer)
        return outcome
    except Exception as error:
        return _failure(error)


# In a worker


def _answer(function: bytes, task: bytes) -> bytes:
    """Run a pickled function on a pickled task. Every failure, also that of pickling the value, is an answer."""
    try:
        run, argument = cloudpickle.loads(function), cloudpickle.loads(task)
        with _one_thread():
            return cloudpickle.dumps(TaskOutcome("", run(argument)))
    except (Exception, SystemExit) as error:
        return cloudpickle.dumps(_failure(error))


def _failure(error: BaseException, key: str = "") -> TaskOutcome:
    return TaskOutcome(key, error=_one_line(error), traceback="".join(traceback.format_exception(error)))


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let the numerical libraries that are loaded use one thread within the block."""
    torch = sys.modules.get("torch")
    with process_state, threadpool_limits(1):
        before = torch.get_num_threads() if torch else 1
        if torch:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(before)


def _start_worker(parent: int) -> None:
    """Tie a new process to its parent: neither it nor its own children live on when the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker without a traceback
    # Else loky replaces a worker that has grown and warns; where warnings are errors the run then hangs.
    process_executor._USE_PSUTIL = False
    _exit_after(parent)
    if hasattr(os, "register_at_fork"):
        # A child would keep open the pipe by which loky notices that its worker is dead.
        forking = {"parent": 0}  # noted before the fork: afterwards the parent may be gone
        os.register_at_fork(
            before=lambda: forking.update(parent=os.getpid()),
            after_in_child=lambda: _exit_after(forking["parent"]),
        )


def _exit_after(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# Executors


class _Executor(Protocol):
    def submit(self, task: bytes) -> Future[bytes]: ...

    def shutdown(self) -> None: ...


def _open(backend: str, function: bytes, jobs: int, address: str | None) -> _Executor:
    if address is not None:
        _check_listening(address)
    if backend == "dask":
        return _Dask(function, jobs, address)
    if backend == "ray":
        return _Ray(function, jobs, address)
    return _Loky(function) if backend == "loky" else _Inline(function)


class _Inline:
    """Runs a task in this process when it is submitted."""

    def __init__(self, function: bytes) -> None:
        self._function = function

    def submit(self, task: bytes) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_result(_answer(self._function, task))
        return future

    def shutdown(self) -> None:
        pass


class _Loky:
    """One executor per worker: when a worker dies, loky ends all workers of its executor."""

    def __init__(self, function: bytes) -> None:
        self._function = function
        self._idle: list[Any] = []
        self._busy: dict[Future[bytes], Any] = {}

    def submit(self, task: bytes) -> Future[bytes]:
        for future in [future for future in self._busy if future.done()]:
            self._idle.append(self._busy.pop(future))
        while True:
            executor = self._idle.pop() if self._idle else self._new_worker()
            try:
                future = executor.submit(_answer, self._function, task)
            except BrokenProcessPool:  # it died in the meantime
                executor.shutdown(kill_workers=True)
            else:
                self._busy[future] = executor
                return future

    def shutdown(self) -> None:
        for executor in (*self._idle, *self._busy.values()):
            executor.shutdown(kill_workers=True)

    @staticmethod
    def _new_worker() -> Any:
        return ProcessPoolExecutor(1, env=_ONE_THREAD, initializer=_start_worker, initargs=(os.getpid(),))


class _Dask:
    """A dask cluster: a running one, or one of processes on this machine."""

    def __init__(self, function: bytes, jobs: int, address: str | None) -> None:
        from distributed import Client

        self._function = function
        self._least = 1 if address else jobs
        with ExitStack() as stack:
            # A client that knows the cluster object would count dead workers for a while: pass its address.
            place = address or stack.enter_context(_local_dask(jobs))
            try:
                client = stack.enter_context(Client(place, set_as_default=False))
            except (OSError, ValueError) as error:
                raise _no_cluster(place, error) from None
            self._client, self._executor = client, client.get_executor(pure=False, retries=0)
            self._close = stack.pop_all().close

    def submit(self, task: bytes) -> Future[bytes]:
        # Workers may be restarting after a death. A task that had to share a worker could die of its neighbour.
        self._client.wait_for_workers(self._least)
        with process_state, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # a task may carry a model
            future: Future[bytes] = self._executor.submit(_answer, self._function, task)
        return future

    def shutdown(self) -> None:
        self._close()


@contextmanager
def _local_dask(jobs: int) -> Iterator[str]:
    from dask import config
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory(prefix="transpl-dask-") as folder, ExitStack() as stack:
        with config.set({"temporary-directory": folder}), process_state, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Creating scratch directories")  # a slow disk is no fault
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    memory_limit=None,
                    silence_logs=logging.CRITICAL,  # the outcome of its task reports a death
                    env=_ONE_THREAD,
                    scheduler_kwargs={"dashboard": False, "allowed_failures": 0},  # `run_all` counts the attempts
                )
            )
        yield cluster.scheduler_address


class _Ray:
    """A ray cluster: a running one, or one on this machine that leaves nothing behind."""

    def __init__(self, function: bytes, jobs: int, address: str | None) -> None:
        import ray

        with ExitStack() as stack:
            if not ray.is_initialized():  # else the caller's own connection is used
                # ray would print ten lines to stdout about every dead worker.
                shown = getattr(ray._private.worker, "_worker_logs_enabled", True)
                stack.callback(setattr, ray._private.worker, "_worker_logs_enabled", shown)
                ray._private.worker._worker_logs_enabled = False
                quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
                if address:
                    stack.callback(ray.shutdown)
                    try:
                        ray.init(address, **quiet)
                    except (ConnectionError, RuntimeError, ValueError) as error:
                        raise _no_cluster(address, error) from None
                else:
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-", dir=_short_folder()))
                    stack.callback(ray.shutdown)
                    _keep_ray_out_of_home()
                    with _environment(_ONE_THREAD | _RAY_SETTINGS | {"PYTHONPATH": _import_path()}):
                        local = {"num_cpus": jobs, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
                        ray.init("local", _temp_dir=folder, **local, **quiet)
            self._function = ray.put(function)
            self._run = ray.remote(num_cpus=1, max_retries=0)(_answer)
            self._close = stack.pop_all().close

    def submit(self, task: bytes) -> Future[bytes]:
        future: Future[bytes] = self._run.remote(self._function, task).future()
        return future

    def shutdown(self) -> None:
        self._close()


def _short_folder() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) <= _LONGEST_RAY_FOLDER else "/tmp"


def _import_path() -> str:
    """Let workers import what this process can import."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)


def _keep_ray_out_of_home() -> None:
    """Give a local cluster its token in a variable that stays set, for ray reads it once; else it writes a file."""
    if "RAY_AUTH_TOKEN_PATH" not in os.environ and not (Path.home() / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started within the block."""
    with process_state:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _check_listening(address: str) -> None:
    """Raise if nothing listens at a "host:port", with or without scheme; the libraries would try for minutes."""
    try:
        place = urlsplit(address if "://" in address else f"//{address}")
        host, port = place.hostname, place.port
        if host is not None and port is not None:  # else "auto" or the like
            socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except (ValueError, OSError) as error:
        raise _no_cluster(address, error) from None


def _no_cluster(address: str, reason: object) -> InputError:
    got = f"{address!r} ({reason})"
    return invalid("address", expected="that of a running cluster", got=got, advice="Start it, or correct the address.")
