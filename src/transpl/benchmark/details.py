"""What a method has to tell about itself beside scores; plain values for JSON."""

from __future__ import annotations

from typing import Any

from transpl.methods import Method, TransPLMethod


def details_of(method: Method) -> dict[str, Any]:
    """Of TransPL: how its codebooks are used, how well codes reconstruct the source, how far channels are trusted."""
    if not isinstance(method, TransPLMethod):
        return {}
    state = method.state
    found: dict[str, Any] = {
        "reconstruction_error": method.reconstruction_error(method.source.source.windows),
        "codebooks": {
            name: {"perplexity": usage.perplexity, "dead": len(usage.dead), "codes": len(usage.counts)}
            for name, usage in state.codebook_usage.items()
        },
    }
    if state.target_counts is not None:
        found["channel_distances"] = method.channel_distances(state.target_counts).tolist()
        found["channel_weights"] = method.channel_weights(state.target_counts).tolist()
    return found
