"""Many tasks at the same time, each on its own: on processes of this machine, on dask or on ray.

>>> from transpl._utils.parallel import run_all
>>> for outcome in run_all(len, {"a": "one", "b": "three"}, backend="inline"):
...     outcome.key, outcome.value
('a', 3)
('b', 5)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from transpl._utils.errors import InputError, check_choice, check_int, invalid
from transpl._utils.parallel.engine import Engine
from transpl._utils.parallel.work import Answer, WorkerDied, failure, pack, unpack

__all__ = ["BACKENDS", "Outcome", "check_workers", "run_all"]

BACKENDS = ("loky", "dask", "ray", "inline")
_WITH_ADDRESS = ("dask", "ray")


@dataclass(frozen=True)
class Outcome:
    """What came of a task: its value, or else an error in one line.

    traceback : of the last attempt; None if its worker died
    attempts : how often it was started; 0 if it could not be pickled
    """

    key: str
    value: Any
    error: str | None
    traceback: str | None
    attempts: int


@dataclass(frozen=True)
class _Attempt:
    key: str
    task: Any
    number: int


def run_all(
    function: Callable[[Any], Any],
    tasks: Mapping[str, Any] | Sequence[Any],
    *,
    jobs: int = 1,
    backend: str = "loky",
    retries: int = 1,
    address: str | None = None,
) -> Generator[Outcome, None, None]:
    """Yield the outcome of `function(task)` for every task as soon as it is there, in any order.

    A task that raises, or whose worker is killed, costs nothing but itself: it is started anew `retries` times, then
    reported as failed. Function, tasks and values travel pickled (by cloudpickle), and each worker uses one thread.

    tasks : by name; the names of a sequence are "0", "1", ...
    jobs : tasks at the same time
    backend : "loky" (processes of this machine), "dask", "ray", or "inline" (this process, to debug)
    address : of a running dask or ray cluster; without it a local one is started and ended again

    Leaving the loop early, by an exception or Ctrl-C for instance, kills the workers as soon as the generator is gone;
    `contextlib.closing` does it at once.
    """
    check_workers(jobs, backend, retries, address)
    if not isinstance(tasks, Mapping):
        tasks = {str(number): task for number, task in enumerate(tasks)}
    engine, packed, jobs = _engine(backend), _packed(function), min(jobs, len(tasks))
    return _outcomes(lambda: engine(packed, jobs, address), tasks, jobs, retries)


def check_workers(jobs: int, backend: str, retries: int, address: str | None) -> None:
    """Raise what `run_all` would raise for these arguments, before there is anything to run."""
    check_choice("backend", backend, BACKENDS)
    check_int("jobs", jobs, least=1)
    check_int("retries", retries, least=0)
    if address is not None and backend not in _WITH_ADDRESS:
        raise invalid("address", expected=f"None for backend {backend!r}", got=repr(address), advice="Leave it out.")
    _engine(backend)


def _outcomes(
    open_engine: Callable[[], Engine], tasks: Mapping[str, Any], jobs: int, retries: int
) -> Generator[Outcome, None, None]:
    if not tasks:
        return
    waiting = deque(_Attempt(key, task, 1) for key, task in tasks.items())
    running: dict[Any, _Attempt] = {}
    with closing(open_engine()) as engine:
        while waiting or running:
            while waiting and len(running) < jobs:
                attempt = waiting.popleft()
                try:
                    task = pack(attempt.task)
                except Exception as error:
                    yield _outcome(attempt, failure(error), 0)
                else:
                    running[engine.start(task)] = attempt
            if not running:
                break
            handle = engine.wait(running)
            attempt, answer = running.pop(handle), _fetched(engine, handle)
            if answer.error is None or attempt.number > retries:
                yield _outcome(attempt, answer, attempt.number)
            else:
                waiting.append(_Attempt(attempt.key, attempt.task, attempt.number + 1))


def _fetched(engine: Engine, handle: Any) -> Answer:
    try:
        return unpack(engine.fetch(handle))
    except WorkerDied as death:
        return Answer(error=f"worker died ({death})")


def _outcome(attempt: _Attempt, answer: Answer, attempts: int) -> Outcome:
    return Outcome(attempt.key, answer.value, answer.error, answer.traceback, attempts)


def _engine(backend: str) -> Callable[[bytes, int, str | None], Engine]:
    try:
        return getattr(import_module(f"transpl._utils.parallel.{backend}"), backend.capitalize())
    except ModuleNotFoundError as error:
        if str(error.name).startswith("transpl"):
            raise
        problem = f"{backend!r} needs {error.name}, which is not installed"
        raise InputError(f"backend: {problem}. Install it with: pip install 'transpl[{backend}]'") from None


def _packed(function: Callable[[Any], Any]) -> bytes:
    try:
        return pack(function)
    except Exception as error:
        got = f"one that does not ({failure(error).error})"
        advice = "Use a function of a module, without open files or locks."
        raise invalid("function", expected="something that pickles", got=got, advice=advice) from None
