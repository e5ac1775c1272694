"""A fitted model as a folder: `model.json` and one safetensors file. Nothing in it can be executed.

The weights are stored under a name made of their own hash, and `model.json` is replaced last: at every
moment the folder holds one whole model, the old or the new.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from torch import Tensor

from transpl import __version__
from transpl.errors import unreadable
from transpl.explanation import SourceCodes
from transpl.files import read_json, replacing, sha256, write_json
from transpl.markov import TransitionCounts
from transpl.methods.aligned_copies import Alignment
from transpl.methods.moments import Moments
from transpl.methods.transpl_state import TransPLState
from transpl.methods.vote import HeldOut
from transpl.network import ChannelHead, CodebookUsage, Network, NetworkSettings

FORMAT = "transpl-model"
FORMAT_VERSION = 1


def save_model(folder: str | os.PathLike[str], about: dict[str, Any], state: TransPLState) -> None:
    """Write `state` and `about` (plain data: parameters, classes) to `folder`."""
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    name, digest = _write_weights(home, _tensors(state) | _remembered(state))
    card: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "transpl_version": __version__,
        "weights": {"file": name, "sha256": digest},
        "network": asdict(state.source_network.settings),
        "mode": state.mode,
        "prior": None if state.prior is None else state.prior.tolist(),
        "temper": state.temper,
        "target_shares": None if state.target_shares is None else state.target_shares.tolist(),
        "codebook_usage": {book: usage.counts.tolist() for book, usage in state.codebook_usage.items()},
        "history": state.history,
        "seconds": state.seconds,
        **about,
    }
    write_json(home / "model.json", {**card, "digest": _digest(card)})
    _remove_older_weights(home, keep=name)


def load_model(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], TransPLState]:
    """Read a folder written by `save_model`; a tampered, truncated or foreign one is refused."""
    home = Path(folder)
    card = _read_card(home / "model.json")
    path = home / str(card["weights"]["file"])
    if path.parent != home or not path.is_file():
        raise unreadable(path, problem="the weights file is missing", advice="Copy the whole model folder.")
    if sha256(path) != card["weights"]["sha256"]:
        raise unreadable(path, problem="damaged or changed since it was saved", advice="Copy or save the model again.")
    try:
        return card, _rebuild(card, load_file(path))
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        problem = f"not the weights that model.json describes ({type(error).__name__})"
        raise unreadable(path, problem=problem, advice="Save the model again.") from None


def fingerprint(state: TransPLState) -> str:
    """SHA-256 of everything in `state` that decides an answer: weights, counts, prior, temper and mode."""
    digest = hashlib.sha256(serialize(_tensors(state)))
    prior = None if state.prior is None else state.prior.tolist()
    digest.update(json.dumps([state.mode, prior, state.temper, asdict(state.source_network.settings)]).encode())
    return digest.hexdigest()


def _tensors(state: TransPLState) -> dict[str, Tensor]:
    tensors = {f"source.{name}": tensor for name, tensor in state.source_network.state_dict().items()}
    if state.adapted_network is not None:
        adapted = state.adapted_network
        learnt = adapted.linear if isinstance(adapted, ChannelHead) else adapted  # the rest of it is the source's
        tensors |= {f"adapted.{name}": tensor for name, tensor in learnt.state_dict().items()}
    tensors["counts.class"] = torch.from_numpy(state.class_counts.counts)
    if state.source_moments is not None:
        tensors |= {f"moments.{name}": torch.as_tensor(value) for name, value in vars(state.source_moments).items()}
    if state.alignment is not None:
        tensors |= {f"alignment.{name}": torch.from_numpy(a) for name, a in state.alignment._asdict().items()}
    if state.target_counts is not None:
        tensors["counts.target"] = torch.from_numpy(state.target_counts.counts)
    if state.labelled_counts is not None:
        tensors["counts.labelled"] = torch.from_numpy(state.labelled_counts.counts)
    if state.refined_counts is not None:
        tensors["counts.refined"] = torch.from_numpy(state.refined_counts.counts)
    if state.held_out is not None:
        tensors |= {f"held_out.{name}": torch.from_numpy(array) for name, array in state.held_out._asdict().items()}
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _remembered(state: TransPLState) -> dict[str, Tensor]:
    """What decides no answer, but explains them; models of old do not have it."""
    if state.source_codes is None:
        return {}
    return {f"remembered.{name}": torch.from_numpy(array) for name, array in vars(state.source_codes).items()}


def _source_codes(tensors: dict[str, Tensor]) -> SourceCodes | None:
    known = _arrays(tensors, "remembered.")
    return SourceCodes(**known) if known else None


def _held_out(tensors: dict[str, Tensor]) -> HeldOut | None:
    known = _arrays(tensors, "held_out.")
    return HeldOut(**known) if known else None


def _moments(tensors: dict[str, Tensor]) -> Moments | None:
    known = _arrays(tensors, "moments.")
    return Moments(int(known["count"]), known["mean"], known["scatter"]) if known else None


def _alignment(tensors: dict[str, Tensor]) -> Alignment | None:
    known = _arrays(tensors, "alignment.")
    return Alignment(**known) if known else None


def _arrays(tensors: dict[str, Tensor], prefix: str) -> dict[str, NDArray]:
    return {name.removeprefix(prefix): t.numpy() for name, t in tensors.items() if name.startswith(prefix)}


def _write_weights(home: Path, tensors: dict[str, Tensor]) -> tuple[str, str]:
    with replacing(home / "weights.safetensors") as part:
        part.write_bytes(serialize(tensors))  # not by save_file, whose errors are its own where a disk is full
        digest = sha256(part)
    name = f"weights-{digest[:16]}.safetensors"
    os.replace(home / "weights.safetensors", home / name)
    return name, digest


def _remove_older_weights(home: Path, keep: str) -> None:
    for path in home.glob("weights-*.safetensors"):
        if path.name != keep:
            path.unlink()


def _read_card(path: Path) -> dict[str, Any]:
    card = read_json(path)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise unreadable(path, problem="not a TransPL model", advice="Point at a folder written by TransPL.save.")
    if card.get("format_version") != FORMAT_VERSION:
        problem = f"model format {card.get('format_version')}, this version reads {FORMAT_VERSION}"
        raise unreadable(path, problem=problem, advice="Upgrade transpl, or save the model again.")
    digest = card.pop("digest", None)
    if digest != _digest(card):
        raise unreadable(path, problem="changed since it was saved", advice="Restore it, or save the model again.")
    return card


def _rebuild(card: dict[str, Any], tensors: dict[str, Tensor]) -> TransPLState:
    source = _network(NetworkSettings(**card["network"]), tensors, "source.")
    shares = card.get("target_shares")
    return TransPLState(
        source_network=source,
        class_counts=TransitionCounts(tensors["counts.class"].numpy()),
        codebook_usage={
            book: CodebookUsage(np.array(counts, np.int64)) for book, counts in card["codebook_usage"].items()
        },
        source_codes=_source_codes(tensors),
        held_out=_held_out(tensors),
        source_moments=_moments(tensors),
        alignment=_alignment(tensors),
        target_counts=_counts(tensors, "counts.target"),
        labelled_counts=_counts(tensors, "counts.labelled"),
        refined_counts=_counts(tensors, "counts.refined"),
        target_shares=None if shares is None else np.array(shares, np.float64),
        temper=card.get("temper", 1.0),  # not in models of old
        prior=None if card["prior"] is None else np.array(card["prior"], np.float64),
        adapted_network=_adapted(source, tensors) if card["mode"] == "finetune" else None,
        mode=card["mode"],
        history=card["history"],
        seconds=card["seconds"],
    )


def _adapted(source: Network, tensors: dict[str, Tensor]) -> Network | ChannelHead:
    if "adapted.weight" in tensors:
        return ChannelHead.of(source, tensors["adapted.weight"].numpy(), tensors["adapted.bias"].numpy())
    return _network(source.settings, tensors, "adapted.")


def _counts(tensors: dict[str, Tensor], name: str) -> TransitionCounts | None:
    return TransitionCounts(tensors[name].numpy()) if name in tensors else None


def _network(settings: NetworkSettings, tensors: dict[str, Tensor], prefix: str) -> Network:
    # No weights are drawn: every tensor comes from the file, or loading fails.
    with torch.device("meta"):
        network = Network(settings)
    weights = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    network.load_state_dict(weights, assign=True)
    return network.eval()


def _digest(card: dict[str, Any]) -> str:
    text = json.dumps(card, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
