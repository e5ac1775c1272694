"""All runs of a plan, on one machine or a cluster; what is finished is never made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from transpl.benchmark.execution import execute
from transpl.benchmark.result import Result
from transpl.benchmark.spec import RunSpec
from transpl.benchmark.store import Store
from transpl.parallel import run_all


@dataclass(frozen=True)
class Done:
    """A run that came to its end: with a result, or with an error."""

    spec: RunSpec
    result: Result | None
    error: str | None = None


def run_plan(
    specs: Sequence[RunSpec],
    folder: Path,
    *,
    jobs: int = 1,
    backend: str = "loky",
    retries: int = 1,
    device: str = "cpu",
    address: str | None = None,
) -> Iterator[Done]:
    """Make the runs that `folder` lacks, in any order; each result is on disk before it is yielded.

    A run that fails, or whose worker dies, costs itself only: it is tried again, then leaves a record in `failures`.
    """
    store = Store(folder)
    tasks = {spec.digest: spec for spec in staggered(store.missing(specs))}
    work = partial(execute, folder=folder, device=device)
    for outcome in run_all(work, tasks, jobs=jobs, backend=backend, retries=retries, address=address):
        spec = tasks[outcome.key]
        if outcome.error is not None:
            store.fail(spec, outcome.error, outcome.traceback or "", outcome.attempts)
        yield Done(spec, outcome.value, outcome.error)


def staggered(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """First one run of every source model, then the second of each, ...: workers rarely wait for the same model."""
    seen: dict[tuple[str, int, int], int] = {}
    turns = []
    for spec in specs:
        model = (spec.dataset, spec.source, spec.seed)
        seen[model] = seen.get(model, -1) + 1
        turns.append(seen[model])
    return [specs[i] for i in sorted(range(len(specs)), key=lambda i: turns[i])]
