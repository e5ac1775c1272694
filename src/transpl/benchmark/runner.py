"""All runs of a plan, on one machine or a cluster; what is finished is never made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from transpl._utils.parallel import Outcome, run_all
from transpl.benchmark.execution import execute
from transpl.benchmark.plugins import absolute
from transpl.benchmark.result import Result
from transpl.benchmark.spec import RunSpec
from transpl.benchmark.store import Store


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
    plugins: Sequence[str] = (),
) -> Iterator[Done]:
    """Make the runs that `folder` lacks, in any order; each result is on disk before it is yielded.

    A run that fails, or whose worker dies, costs itself only: it is tried again, then leaves a record in `failures`.
    A run that another process makes at the moment is put off until all others are done.
    """
    store = Store(Path(folder).resolve())  # a worker may have another working folder
    store.remove_old_checkpoints(specs)
    work = partial(execute, folder=store.folder, device=device, plugins=tuple(map(absolute, plugins)))
    left = {spec.digest: spec for spec in staggered(store.missing(specs))}
    for wait in (False, True):
        outcomes = run_all(
            partial(work, wait=wait), dict(left), jobs=jobs, backend=backend, retries=retries, address=address
        )
        with closing(outcomes):
            for outcome in outcomes:
                if outcome.error is not None or outcome.value is not None:
                    yield _done(left.pop(outcome.key), outcome, store)
        for spec in list(left.values()):  # those that another process made in the meantime
            if (found := store.find(spec)) is not None:
                yield Done(left.pop(spec.digest), found)


def staggered(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """First one run of every source model, then the second of each, ...: workers rarely wait for the same model."""
    seen: dict[tuple[str, int, int], int] = {}
    turns = []
    for spec in specs:
        model = (spec.dataset, spec.source, spec.seed)
        seen[model] = seen.get(model, -1) + 1
        turns.append(seen[model])
    return [specs[i] for i in sorted(range(len(specs)), key=lambda i: turns[i])]


def _done(spec: RunSpec, outcome: Outcome, store: Store) -> Done:
    if outcome.error is None:
        return Done(spec, outcome.value)
    try:
        store.fail(spec, outcome.error, outcome.traceback or "", outcome.attempts)
    except OSError as error:  # a full disk, perhaps; the other runs may still succeed
        return Done(spec, None, f"{outcome.error} (no record kept: {error})")
    return Done(spec, None, outcome.error)
