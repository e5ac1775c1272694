"""What a worker does with a task, the same in every back end: unpack, run on one thread, pack the answer."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cloudpickle
from threadpoolctl import threadpool_limits

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
ONE_THREAD = dict.fromkeys(_THREAD_VARIABLES, "1")  # for what a worker loads later


class WorkerDied(Exception):
    """The process that ran a task is gone; the message says how, as far as known."""


@dataclass(frozen=True)
class Answer:
    """What came of one attempt: a value, or an error (one line) and perhaps its traceback."""

    value: Any = None
    error: str | None = None
    traceback: str | None = None


def pack(thing: Any) -> bytes:
    """Pickle anything, functions without a module included."""
    return cloudpickle.dumps(thing)


def answer(function: bytes, task: bytes) -> bytes:
    """Run a packed function on a packed task; whatever goes wrong, packing the value included, is an answer too."""
    try:
        run, argument = cloudpickle.loads(function), cloudpickle.loads(task)
        with one_thread():
            return pack(Answer(run(argument)))
    except (Exception, SystemExit) as error:
        return pack(failure(error))


def unpack(answered: bytes) -> Answer:
    """Read an answer; a value that cannot be unpickled here counts as an error of its task."""
    try:
        return cloudpickle.loads(answered)
    except Exception as error:
        return failure(error)


def failure(error: BaseException) -> Answer:
    """Describe an exception so that it can travel without its class."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return Answer(error=line.removesuffix(":"), traceback="".join(traceback.format_exception(error)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the numerical libraries that are loaded use one thread within the block."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    with threadpool_limits(1):
        if torch:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(before)
