"""Workers of dask.distributed: a cluster that runs already, or one of processes on this machine."""

from __future__ import annotations

import logging
import tempfile
import uuid
import warnings
from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack, suppress

from dask import config
from distributed import Client, Future, KilledWorker, LocalCluster
from distributed import wait as wait_for

from transpl._utils.parallel.address import check_listening, no_cluster
from transpl._utils.parallel.work import ONE_THREAD, WorkerDied, answer

_SECONDS_BETWEEN_LOOKS = 1.0


class Dask:
    """Places the tasks itself: a worker gets one when its last answer is fetched, and takes only that along if it dies.

    (Left to itself dask may put a task where an answer still lies, which would then be lost too, and starts a task that
    kills its workers as often as its scheduler likes.)
    """

    def __init__(self, function: bytes, jobs: int, address: str | None) -> None:
        self._function = function
        self._jobs = jobs
        self._least = 1 if address else jobs
        self._places: dict[Future, str] = {}
        self._open = ExitStack()
        try:
            self._client = self._connect(address) if address else self._start_here()
        except BaseException:
            self._open.close()
            raise

    def start(self, task: bytes) -> Future:
        """Submit the task, under a name that no other has, to the worker with the least to do."""
        place, key = self._free_place(), f"transpl-{uuid.uuid4().hex}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # a task may carry a model
            future = self._client.submit(answer, self._function, task, key=key, pure=False, workers=[place])
        self._places[future] = place
        return future

    def wait(self, handles: Collection[Future]) -> Future:
        """Return a future that is done, or whose worker is gone."""
        while True:
            alive = self._client.nthreads()
            for future in handles:
                if self._places[future] not in alive:
                    return future
            with suppress(TimeoutError), self._client.as_current():
                return next(iter(wait_for(list(handles), _SECONDS_BETWEEN_LOOKS, "FIRST_COMPLETED").done))

    def fetch(self, handle: Future) -> bytes:
        """Return the answer, which leaves its worker free."""
        place = self._places.pop(handle)
        while place in self._client.nthreads():
            with suppress(TimeoutError, KilledWorker):
                return handle.result(_SECONDS_BETWEEN_LOOKS)
        handle.cancel()
        raise WorkerDied("killed, or it ended by itself")

    def close(self) -> None:
        """Leave the cluster; one of ours ends with all its workers."""
        self._open.close()

    def _free_place(self) -> str:
        self._client.wait_for_workers(self._least)  # some may be on their way back after a death
        threads, busy = self._client.nthreads(), Counter(self._places.values())
        return min(threads, key=lambda place: busy[place] / threads[place])

    def _connect(self, address: str) -> Client:
        check_listening(address)
        try:
            return self._open.enter_context(Client(address, set_as_default=False))
        except (OSError, ValueError) as error:
            raise no_cluster(address, error) from None

    def _start_here(self) -> Client:
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="transpl-dask-"))
        with config.set({"temporary-directory": folder}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Creating scratch directories")  # a slow disk is no fault
            cluster = LocalCluster(
                n_workers=self._jobs,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                memory_limit=None,
                silence_logs=logging.CRITICAL,  # a death is told by its task's outcome
                env=ONE_THREAD,
                scheduler_kwargs={"dashboard": False},
            )
        self._open.enter_context(cluster)
        # By its address: a client that knows the cluster object counts dead workers for a while.
        client = self._open.enter_context(Client(cluster.scheduler_address, set_as_default=False))
        client.wait_for_workers(self._jobs)
        return client
