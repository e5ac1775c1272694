"""What TransPL has learnt as plain facts and named arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transpl.markov import CodebookUsage, SourceCodes, TransitionCounts
from transpl.methods.transpl.state import TransPLState
from transpl.nn import Network, NetworkSettings

Arrays = Mapping[str, NDArray]
_REMEMBERED = "remembered."


def facts_of(state: TransPLState) -> dict[str, Any]:
    """What JSON holds."""
    return {
        "network": asdict(state.source_network.settings),
        "mode": state.mode,
        "prior": None if state.prior is None else state.prior.tolist(),
        "target_shares": None if state.target_shares is None else state.target_shares.tolist(),
        "codebook_usage": {book: usage.counts.tolist() for book, usage in state.codebook_usage.items()},
        "history": state.history,
        "seconds": state.seconds,
    }


def deciding_arrays(state: TransPLState) -> dict[str, NDArray]:
    """Those that decide an answer: weights and counts."""
    arrays = _weights(state.source_network, "source.")
    if state.adapted_network is not None:
        arrays |= _weights(state.adapted_network, "adapted.")
    counts = {"class": state.class_counts, "target": state.target_counts, "labelled": state.labelled_counts}
    return arrays | {f"counts.{name}": found.counts for name, found in counts.items() if found is not None}


def remembered_arrays(state: TransPLState) -> dict[str, NDArray]:
    """Those that decide no answer, but explain them; models of old do not have them."""
    if state.source_codes is None:
        return {}
    return {_REMEMBERED + name: array for name, array in vars(state.source_codes).items()}


def state_from(facts: Mapping[str, Any], arrays: Arrays) -> TransPLState:
    """The state that facts and arrays were made of."""
    settings, shares = NetworkSettings(**facts["network"]), facts.get("target_shares")
    remembered = _without_prefix(arrays, _REMEMBERED)
    return TransPLState(
        source_network=_network(settings, arrays, "source."),
        class_counts=TransitionCounts(arrays["counts.class"]),
        codebook_usage={
            book: CodebookUsage(np.array(counts, np.int64)) for book, counts in facts["codebook_usage"].items()
        },
        source_codes=SourceCodes(**remembered) if remembered else None,
        target_counts=_counts(arrays, "target"),
        labelled_counts=_counts(arrays, "labelled"),
        target_shares=None if shares is None else np.array(shares, np.float64),
        prior=None if facts["prior"] is None else np.array(facts["prior"], np.float64),
        adapted_network=_network(settings, arrays, "adapted.") if facts["mode"] == "finetune" else None,
        mode=facts["mode"],
        history=facts["history"],
        seconds=facts["seconds"],
    )


def _weights(network: Network, prefix: str) -> dict[str, NDArray]:
    return {prefix + name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}


def _without_prefix(arrays: Arrays, prefix: str) -> dict[str, NDArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _counts(arrays: Arrays, name: str) -> TransitionCounts | None:
    found = arrays.get(f"counts.{name}")
    return None if found is None else TransitionCounts(found)


def _network(settings: NetworkSettings, arrays: Arrays, prefix: str) -> Network:
    # No weights are drawn: every one is given, or loading fails.
    with torch.device("meta"):
        network = Network(settings)
    weights = {name: torch.from_numpy(array) for name, array in _without_prefix(arrays, prefix).items()}
    network.load_state_dict(weights, assign=True)
    return network.eval()
