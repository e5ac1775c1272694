"""What may be compared on a pair of domains: means over the same seeds, or nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

BySeed = Mapping[Hashable, Mapping[int, float]]  # pair -> seed -> score


def means_over_equal_seeds(scores: Mapping[str, BySeed]) -> dict[str, dict[Hashable, float | None]]:
    """{row: {pair: mean over seeds}}; None where a row lacks a seed that another row has on this pair."""
    seeds: dict[Hashable, set[int]] = {}
    for of_row in scores.values():
        for pair, found in of_row.items():
            seeds.setdefault(pair, set()).update(found)
    return {
        row: {
            pair: float(np.mean(list(found.values()))) if found and set(found) == seeds[pair] else None
            for pair, found in of_row.items()
        }
        for row, of_row in scores.items()
    }
