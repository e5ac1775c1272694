"""Trained source networks in a folder, each under the hash of all it depends on: trained once, used by every run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from transpl import __version__
from transpl.benchmark.locks import exclusive
from transpl.benchmark.spec import digest_of
from transpl.errors import unreadable
from transpl.files import read_json, replacing, sha256, write_json
from transpl.methods import SourceModel
from transpl.methods.source_model import Trained, train_source


def stored_trainer(folder: Path, data: str, domain: str) -> Callable[[SourceModel], Trained]:
    """A way to come by the network of a source model: read it from `folder`, or train it and put it there.

    data, domain : what names the source's rows: the fingerprint of the data set, and which part of it
    """

    def trained(model: SourceModel) -> Trained:
        key = digest_of(
            {
                "data": data,
                "domain": domain,
                "classes": model.n_classes,
                "settings": asdict(model.settings),
                "loss": asdict(model.loss),
                "version": __version__,
            }
        )
        home = folder / key
        # Whoever comes second waits for the first, and then finds the network.
        with exclusive(folder / f"{key}.lock"):
            if not (home / "source.json").exists():
                _save(home, _train(model, home / "checkpoints"))
            return _load(home, model)

    return trained


def _train(model: SourceModel, checkpoints: Path) -> Trained:
    return train_source(replace(model, execution=replace(model.execution, checkpoint_dir=checkpoints)))


def _save(home: Path, trained: Trained) -> None:
    weights = home / "weights.safetensors"
    with replacing(weights) as part:
        save_file({name: tensor.contiguous() for name, tensor in trained.network.state_dict().items()}, part)
    record = {"sha256": sha256(weights), "history": trained.history, "seconds": trained.seconds}
    write_json(home / "source.json", record)
    shutil.rmtree(home / "checkpoints", ignore_errors=True)


def _load(home: Path, model: SourceModel) -> Trained:
    record, weights = read_json(home / "source.json"), home / "weights.safetensors"
    advice = f"Delete {home} to train it anew."
    if not weights.exists() or sha256(weights) != record["sha256"]:
        raise unreadable(weights, problem="missing or changed since it was written", advice=advice)
    try:
        network = model.network_with(load_file(weights))
    except (SafetensorError, RuntimeError) as error:
        raise unreadable(weights, problem=f"not this network ({type(error).__name__})", advice=advice) from None
    return Trained(network, record["history"], record["seconds"])
