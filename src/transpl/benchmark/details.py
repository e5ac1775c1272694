"""What a method has to tell about itself beside scores; plain values for JSON."""

from __future__ import annotations

from typing import Any

from transpl.benchmark.pair import Evaluator
from transpl.methods import Method, TransPLMethod
from transpl.windows import Windows


def details_of(method: Method, target: Windows, evaluator: Evaluator) -> dict[str, Any]:
    """What the method says itself, and how right it is on the rows that it chose to learn from, if it says which."""
    found = dict(method.details)
    if method.learnt_rows is not None:
        found["learnt_from"] = evaluator.score_learnt(method.learnt_rows)
    return {**found, **_of_transpl(method, target)} if isinstance(method, TransPLMethod) else found


def _of_transpl(method: TransPLMethod, target: Windows) -> dict[str, Any]:
    """How its codebooks are used, how well codes reconstruct the source, how far channels are trusted."""
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
