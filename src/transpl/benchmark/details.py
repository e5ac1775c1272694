"""What a method has to tell about itself beside scores; plain values for JSON."""

from __future__ import annotations

from typing import Any

from transpl.methods import Method, TransPLMethod
from transpl.windows import Windows


def details_of(method: Method, target: Windows) -> dict[str, Any]:
    """Of TransPL: how its codebooks are used, how well codes reconstruct the source, how far channels are trusted."""
    if not isinstance(method, TransPLMethod):
        return {}
    state = method.state
    counts = method.count(target) if state.target_counts is None else state.target_counts
    return {
        "reconstruction_error": method.reconstruction_error(method.source.source.windows),
        "codebooks": {
            name: {"perplexity": usage.perplexity, "dead": len(usage.dead), "codes": len(usage.counts)}
            for name, usage in state.codebook_usage.items()
        },
        "channel_distances": method.channel_distances(counts).tolist(),
        "channel_weights": method.channel_weights(counts).tolist(),
    }
