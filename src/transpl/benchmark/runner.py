"""All runs of a plan, on one machine or a cluster; a finished run is never made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from transpl import datasets
from transpl._utils.errors import invalid
from transpl._utils.parallel import run_all
from transpl.benchmark.plugins import import_plugins, plugin_versions, resolve_plugin
from transpl.benchmark.protocol import Evaluator, Pair, split_pair
from transpl.benchmark.run import FinishedRun, run_method
from transpl.benchmark.run_spec import RunSpec, data_fingerprint
from transpl.benchmark.source_store import load_only, stored_trainer
from transpl.benchmark.store import Result, Store
from transpl.datasets import Dataset
from transpl.methods import Method, SourceModel
from transpl.methods.registry import entry
from transpl.nn import Execution


@dataclass(frozen=True)
class RunOutcome:
    """A run that ended, with a result or with an error."""

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
) -> Iterator[RunOutcome]:
    """Make the runs that a folder lacks, in any order.

    Parameters
    ----------
    specs : sequence of RunSpec
        See `Plan.runs`.
    folder : Path
        Where results are stored, see `Store`.
    jobs : int
        Runs at the same time, one thread each.
    backend : {"loky", "dask", "ray", "inline"}
        Where they run; `address` names a running cluster.
    retries : int
        How often a failed run is tried again.
    device : str
        "cpu", "cuda" or "auto".
    plugins : sequence of str
        Files or modules that register methods.

    Yields
    ------
    RunOutcome
        Once its result is on disk. A run that fails, or whose worker dies, affects no other run: it is retried, then
        recorded in `failures`. A run that another process is making comes last.
    """
    store = Store(Path(folder).resolve())  # a worker may have another working folder
    store.remove_old_checkpoints(specs)
    work = partial(execute, folder=store.folder, device=device, plugins=tuple(map(resolve_plugin, plugins)))
    left = {spec.digest: spec for spec in interleave_sources(store.missing(specs))}
    for wait in (False, True):
        tasks = partial(work, wait=wait), dict(left)
        with closing(run_all(*tasks, jobs=jobs, backend=backend, retries=retries, address=address)) as outcomes:
            for outcome in outcomes:
                if outcome.error is None:
                    if outcome.value is not None:  # None: another process is making it
                        yield RunOutcome(left.pop(outcome.key), outcome.value)
                    continue
                spec, error = left.pop(outcome.key), outcome.error
                try:
                    store.fail(spec, error, outcome.traceback or "", outcome.attempts)
                except OSError as problem:  # a full disk, perhaps; other runs may still succeed
                    error = f"{error} (no record kept: {problem})"
                yield RunOutcome(spec, None, error)
        for spec in list(left.values()):  # finished by another process in the meantime
            if (found := store.find(spec)) is not None:
                yield RunOutcome(left.pop(spec.digest), found)


def interleave_sources(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """The first run of every source model, then the second of each, ...: workers rarely wait for the same model."""
    turns: dict[tuple[str, int, int], int] = {}
    keyed = []
    for spec in specs:
        model = (spec.dataset, spec.source, spec.seed)
        turns[model] = turns.get(model, -1) + 1
        keyed.append((turns[model], spec))
    return [spec for _, spec in sorted(keyed, key=lambda each: each[0])]


def execute(
    spec: RunSpec, folder: Path, device: str = "cpu", *, wait: bool = True, plugins: Sequence[str] = ()
) -> Result | None:
    """Make a run that the folder lacks, and store it; this is what a worker does.

    wait : for another process that is making this run; with False, return None at once in that case
    """
    store = Store(folder)
    with store.lock(spec.digest, wait=wait) as acquired:
        if not acquired:
            return None
        store.remove_partial_files(spec)
        found = store.find(spec)
        if found is not None:
            return found
        import_plugins(plugins)
        finished = _make(spec, store, device)
        result = finished.result
        if not entry(spec.method).method.__module__.startswith("transpl."):
            result = replace(result, versions=result.versions | plugin_versions(plugins))
        store.write(spec, result, finished.arrays)
        return result


def restore_run(spec: RunSpec, folder: Path) -> tuple[Method, Pair]:
    """The method of a finished run before adaptation, on its stored source network, and the pair that it saw.

    Nothing is trained; a folder without the network is refused.
    """
    execution = Execution("cpu", n_threads=1)
    method = entry(spec.method).method(spec.method_settings(), execution)
    pair, _ = split_pair(_load_dataset(spec.dataset, spec.data, spec.normalise), spec.source, spec.target)
    trainer = load_only(Path(folder) / "sources", spec.seen_data, str(spec.source))
    model = SourceModel(pair.source, pair.validation, method.settings.source(), execution, trainer=trainer)
    method.start_from(method.source_for(model))
    return method, pair


def _make(spec: RunSpec, store: Store, device: str) -> FinishedRun:
    execution = Execution(device, n_threads=1, checkpoint_dir=store.checkpoints(spec))
    method = entry(spec.method).method(spec.method_settings(), execution)
    pair, evaluator = split_pair(_load_dataset(spec.dataset, spec.data, spec.normalise), spec.source, spec.target)
    blank = Result(spec.dataset, (spec.source, spec.target), spec.method, spec.seed, dict(spec.settings))
    model = _source_model(spec, method, pair, evaluator, execution, store.folder / "sources")
    return run_method(blank, method, model, pair, evaluator, spec.goal)


def _source_model(
    spec: RunSpec, method: Method, pair: Pair, evaluator: Evaluator, execution: Execution, folder: Path
) -> SourceModel:
    train, validation, domain = pair.source, pair.validation, str(spec.source)
    if method.uses_target_labels:
        (train, validation), domain = evaluator.labelled_rows(method, method.seed), f"{spec.target} held out"
    trainer = stored_trainer(folder, spec.seen_data, domain)
    return SourceModel(train, validation, method.settings.source(), execution, trainer=trainer)


@lru_cache(maxsize=2)
def _load_dataset(name: str, fingerprint: str, normalise: str) -> Dataset:
    data = datasets.load(name)
    if data_fingerprint(data) != fingerprint:
        advice = "Plan the runs again."
        raise invalid("dataset", expected=f"the {name} of the plan", got="other values", advice=advice)
    return datasets.normalised(data, normalise)
