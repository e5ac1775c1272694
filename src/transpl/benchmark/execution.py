"""A run from its spec to its files; called in a worker, alone with a spec and a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from transpl import datasets
from transpl._utils.errors import invalid
from transpl.benchmark.pair import Evaluator, Pair, split_pair
from transpl.benchmark.plugins import import_plugins, plugin_versions
from transpl.benchmark.result import Result
from transpl.benchmark.run import Finished, run_method
from transpl.benchmark.source_store import stored_only, stored_trainer
from transpl.benchmark.spec import RunSpec, data_fingerprint
from transpl.benchmark.store import Store
from transpl.datasets import Dataset
from transpl.methods import Method, SourceModel
from transpl.methods.registry import entry
from transpl.nn import Execution


def execute(
    spec: RunSpec, folder: Path, device: str = "cpu", *, wait: bool = True, plugins: Sequence[str] = ()
) -> Result | None:
    """Make a run that the folder lacks and keep it there.

    wait : for another process that makes this run at the moment; with False the answer is then None, at once
    plugins : files or modules that register methods, see `plugins`
    """
    store = Store(folder)
    with store.lock(spec.digest, wait=wait) as mine:
        if not mine:
            return None
        store.remove_half_files(spec)
        found = store.find(spec)
        if found is not None:
            return found
        import_plugins(plugins)
        finished = _made(spec, store, device)
        result = replace(finished.result, versions=finished.result.versions | _own_versions(spec, plugins))
        store.write(spec, result, finished.arrays)
        return result


def _made(spec: RunSpec, store: Store, device: str) -> Finished:
    execution = Execution(device, n_threads=1, checkpoint_dir=store.checkpoints(spec))
    method = entry(spec.method).method(spec.method_settings(), execution)
    pair, evaluator = split_pair(_data(spec.dataset, spec.data), spec.source, spec.target)
    blank = Result(spec.dataset, (spec.source, spec.target), spec.method, spec.seed, dict(spec.settings))
    model = _source_model(spec, method, pair, evaluator, store)
    return run_method(blank, method, model, pair, evaluator, spec.goal)


def start_again(spec: RunSpec, folder: Path) -> tuple[Method, Pair]:
    """A finished run's method as it was before it adapted, on its stored source network, and what it then saw.

    Nothing is trained; a folder that lacks the network is refused.
    """
    method = entry(spec.method).method(spec.method_settings(), Execution("cpu", n_threads=1))
    pair, _ = split_pair(_data(spec.dataset, spec.data), spec.source, spec.target)
    trainer = stored_only(Path(folder) / "sources", spec.data, str(spec.source))
    model = SourceModel(pair.source, pair.validation, method.settings.source(), method.execution, trainer=trainer)
    method.start_from(method.source_for(model))
    return method, pair


def _own_versions(spec: RunSpec, plugins: Sequence[str]) -> dict[str, str]:
    """What the code of a method from outside the package is."""
    outside = not entry(spec.method).method.__module__.startswith("transpl.")
    return plugin_versions(plugins) if outside else {}


def _source_model(spec: RunSpec, method: Method, pair: Pair, evaluator: Evaluator, store: Store) -> SourceModel:
    settings, execution, home = method.settings.source(), method.execution, store.folder / "sources"
    if method.uses_target_labels:
        rows = evaluator.labelled_rows(method, method.seed)
        return SourceModel(
            *rows, settings, execution, trainer=stored_trainer(home, spec.data, f"{spec.target} held out")
        )
    trainer = stored_trainer(home, spec.data, str(spec.source))
    return SourceModel(pair.source, pair.validation, settings, execution, trainer=trainer)


@lru_cache(maxsize=2)
def _data(name: str, fingerprint: str) -> Dataset:
    data = datasets.load(name)
    if data_fingerprint(data) != fingerprint:
        raise invalid("dataset", expected=f"the {name} of the plan", got="other values", advice="Plan the runs anew.")
    return data
