"""Source networks of a benchmark, each in a folder named by the hash of all it depends on; every run shares them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from transpl import __version__
from transpl._utils.errors import UnreadableFile, unreadable_file
from transpl._utils.files import replacing
from transpl._utils.hashing import hash_bytes, hash_file
from transpl._utils.source_cache import OtherSource, SourceCache
from transpl.benchmark.run_spec import short_digest
from transpl.methods import SourceModel
from transpl.methods.source_model import TrainedSource, train_source

_WEIGHTS = "weights.safetensors"
_RECORD = {"sha256", "history", "seconds"}


def stored_trainer(folder: Path, data: str, domain: str) -> Callable[[SourceModel], TrainedSource]:
    """A trainer of source models that looks into `folder` first, and saves there what it trains.

    Parameters
    ----------
    data
        fingerprint of the data set
    domain
        which part of it the source's rows are
    """

    def trained(model: SourceModel) -> TrainedSource:
        cache = _cache(folder, data, domain, model)
        checkpoints = cache.folder / "checkpoints"
        resumable = replace(model, execution=replace(model.execution, checkpoint_dir=checkpoints))
        lock = folder / f"{cache.folder.name}.lock"
        return cache.build(lambda: train_source(resumable), lock, checkpoints)

    return trained


def load_only(folder: Path, data: str, domain: str) -> Callable[[SourceModel], TrainedSource]:
    """A trainer of source models that never trains: it refuses those that `folder` does not hold."""

    def loaded(model: SourceModel) -> TrainedSource:
        try:
            return _cache(folder, data, domain, model).load()
        except OtherSource:
            problem = f"no trained source network of domain {domain} with these settings and this version of transpl"
            raise unreadable_file(folder, problem=problem, advice="Run transpl bench on this folder again.") from None

    return loaded


def _cache(folder: Path, data: str, domain: str, model: SourceModel) -> SourceCache[TrainedSource]:
    key = {
        "data": data,
        "domain": domain,
        "classes": model.n_classes,
        "settings": asdict(model.settings),
        "loss": asdict(model.loss),
        "version": __version__,
    }
    return SourceCache(folder / short_digest(key), {}, lambda home, record: _read(home, record, model), _write)


def _write(trained: TrainedSource, home: Path) -> dict[str, Any]:
    weights = home / _WEIGHTS
    with replacing(weights) as part:
        tensors = {name: tensor.contiguous() for name, tensor in trained.network.state_dict().items()}
        part.write_bytes(save(tensors))  # save_file has errors of its own where a disk is full
    return {"sha256": hash_file(weights), "history": trained.history, "seconds": trained.seconds}


def _read(home: Path, record: dict[str, Any], model: SourceModel) -> TrainedSource:
    if set(record) != _RECORD:
        raise _damaged(home / "source.json", "not the record of a source network")
    weights = home / _WEIGHTS
    content = weights.read_bytes() if weights.exists() else b""  # not mapped: the file may change while it is used
    if hash_bytes([content]) != record["sha256"]:
        raise _damaged(weights, "missing or changed since it was written")
    try:
        network = model.network_with(load(content))
    except (SafetensorError, RuntimeError) as error:
        raise _damaged(weights, f"not this network ({type(error).__name__})") from None
    return TrainedSource(network, record["history"], record["seconds"])


def _damaged(path: Path, problem: str) -> UnreadableFile:
    return unreadable_file(path, problem=problem, advice="transpl bench trains it again.")
