"""Trained source networks in a folder, each under the hash of all it depends on: trained once, used by every run."""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from safetensors.torch import save as serialize

from transpl import __version__
from transpl._utils.errors import UnreadableFile, unreadable_file
from transpl._utils.files import read_json, replacing, sha256, write_json
from transpl.benchmark.plan import short_digest
from transpl.benchmark.store import file_lock, remove_partial_files
from transpl.methods import SourceModel
from transpl.methods.source_model import Trained, train_source

_RECORD = {"sha256", "history", "seconds"}


def stored_trainer(folder: Path, data: str, domain: str) -> Callable[[SourceModel], Trained]:
    """A way to come by the network of a source model: read it from `folder`, or train it and put it there.

    data, domain : what names the source's rows: the fingerprint of the data set, and which part of it
    """

    def trained(model: SourceModel) -> Trained:
        key = _key(data, domain, model)
        # Whoever comes second waits for the first, and then finds the network.
        with file_lock(folder / f"{key}.lock"):
            return _found_or_trained(folder / key, model)

    return trained


def load_only(folder: Path, data: str, domain: str) -> Callable[[SourceModel], Trained]:
    """A way to come by the network of a source model that never trains: one that `folder` lacks is refused."""

    def trained(model: SourceModel) -> Trained:
        home = folder / _key(data, domain, model)
        if not (home / "source.json").exists():
            problem = f"no trained source network of domain {domain} with these settings and this version of transpl"
            raise unreadable_file(folder, problem=problem, advice="Run transpl bench on this folder again.")
        return _load(home, model)

    return trained


def _key(data: str, domain: str, model: SourceModel) -> str:
    return short_digest(
        {
            "data": data,
            "domain": domain,
            "classes": model.n_classes,
            "settings": asdict(model.settings),
            "loss": asdict(model.loss),
            "version": __version__,
        }
    )


def _found_or_trained(home: Path, model: SourceModel) -> Trained:
    """Call it under the lock of `home`."""
    remove_partial_files(home)
    found = _found(home, model)
    if found is None:
        _save(home, _train(model, home / "checkpoints"))
        found = _load(home, model)
    shutil.rmtree(home / "checkpoints", ignore_errors=True)
    return found


def _found(home: Path, model: SourceModel) -> Trained | None:
    if not (home / "source.json").exists():
        return None
    try:
        return _load(home, model)
    except UnreadableFile as problem:
        warnings.warn(str(problem), stacklevel=2)
        return None


def _train(model: SourceModel, checkpoints: Path) -> Trained:
    return train_source(replace(model, execution=replace(model.execution, checkpoint_dir=checkpoints)))


def _save(home: Path, trained: Trained) -> None:
    weights = home / "weights.safetensors"
    with replacing(weights) as part:
        tensors = {name: tensor.contiguous() for name, tensor in trained.network.state_dict().items()}
        part.write_bytes(serialize(tensors))  # not by save_file, whose errors are its own where a disk is full
    record = {"sha256": sha256(weights), "history": trained.history, "seconds": trained.seconds}
    write_json(home / "source.json", record)


def _load(home: Path, model: SourceModel) -> Trained:
    """Always from the files, so that the one who trained it goes on with what all others get."""
    record, weights = _record(home / "source.json"), home / "weights.safetensors"
    content = weights.read_bytes() if weights.exists() else b""  # not as a map of the file, which somebody may harm
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        raise _damaged(weights, "missing or changed since it was written")
    try:
        network = model.network_with(load(content))
    except (SafetensorError, RuntimeError) as error:
        raise _damaged(weights, f"not this network ({type(error).__name__})") from None
    return Trained(network, record["history"], record["seconds"])


def _record(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict) or set(record) != _RECORD:
        raise _damaged(path, "not the record of a source model")
    return record


def _damaged(path: Path, problem: str) -> UnreadableFile:
    return unreadable_file(path, problem=problem, advice="transpl bench trains it anew.")
