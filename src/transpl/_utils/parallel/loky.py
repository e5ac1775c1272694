"""Processes of this machine, started by loky, each with a pipe of its own.

A worker has one task at a time. One that dies breaks its own pipe and nothing else, so the others go on and it is known
which task it was working on. (loky's pool would end every worker when one dies.)
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from joblib.externals.loky.backend import get_context
from joblib.externals.loky.backend.utils import kill_process_tree

from transpl._utils.parallel.work import ONE_THREAD, WorkerDied, answer

_SECONDS_BETWEEN_LOOKS = 1.0


class Worker:
    """A process that answers tasks until its pipe is closed."""

    def __init__(self, function: bytes) -> None:
        context = get_context("loky")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, os.getpid(), function), env=ONE_THREAD)
        self.process.start()
        theirs.close()

    def send(self, task: bytes) -> None:
        """Hand a task over; a worker that is dead already is found out by `fetch`."""
        try:
            self.pipe.send_bytes(task)
        except OSError:
            self.end()

    def is_ready(self) -> bool:
        """Tell whether there is something to fetch: an answer, or a death."""
        return not self.process.is_alive() or self.pipe.closed or self.pipe.poll()

    def fetch(self) -> bytes:
        """Return the answer to the last task."""
        with suppress(EOFError, OSError):
            if self.process.is_alive() or self.pipe.poll():
                return self.pipe.recv_bytes()
        self.end()  # before its exit code is asked for
        raise WorkerDied(_how_it_ended(self.process.exitcode))

    def end(self) -> None:
        """Kill the process with all it has started."""
        self.pipe.close()
        kill_process_tree(self.process)


class Loky:
    """As many workers as there are tasks at the same time, started when they are needed."""

    def __init__(self, function: bytes, jobs: int, address: str | None) -> None:
        self._function = function
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        atexit.register(self.close)  # an exception that nobody caught keeps our caller's generator alive until exit

    def start(self, task: bytes) -> Worker:
        """Give the task to a worker that is idle, or to a new one."""
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                break
            self._forget(worker)
        else:
            worker = Worker(self._function)
            self._workers.append(worker)
        worker.send(task)
        return worker

    def wait(self, handles: Collection[Worker]) -> Worker:
        """Wait for an answer; also look who is alive, for a child of a dead worker may hold its pipe open."""
        while True:
            for worker in handles:
                if worker.is_ready():
                    return worker
            pipes = [worker.pipe for worker in handles]
            wait([*pipes, *(worker.process.sentinel for worker in handles)], _SECONDS_BETWEEN_LOOKS)

    def fetch(self, handle: Worker) -> bytes:
        """Return the answer; its worker is then idle, or forgotten if it is dead."""
        try:
            answered = handle.fetch()
        except WorkerDied:
            self._forget(handle)
            raise
        self._idle.append(handle)
        return answered

    def close(self) -> None:
        """Kill all workers."""
        atexit.unregister(self.close)
        while self._workers:
            self._workers.pop().end()

    def _forget(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.end()


def serve(pipe: Connection, parent: int, function: bytes) -> None:
    """Answer tasks from the pipe until it ends: the whole life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, who ends us
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    try:
        while True:
            pipe.send_bytes(answer(function, pipe.recv_bytes()))
    except (EOFError, OSError):
        return


def _leave_with(parent: int) -> None:
    """End this process when its parent is gone, killed perhaps, so that nobody goes on working for nobody."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"
