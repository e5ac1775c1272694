"""Numbers and names as every part of the leaderboard writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transpl.benchmark.measures import Metric, Spread

_LONG = 100.0  # seconds from which decimals say nothing


def shown(value: float, metric: Metric) -> str:
    """A number with as many decimals as make sense."""
    decimals = 0 if metric.unit == "s" and value >= _LONG else metric.decimals
    return f"{value:.{decimals}f}"


def spread_in_words(spread: Spread, metric: Metric) -> str:
    """As 69.0 ± 1.2."""
    mean = shown(spread.mean, metric)
    return mean if spread.std is None else f"{mean} ± {shown(spread.std, metric)}"


def settings_in_words(changes: Mapping[str, str]) -> str:
    """As width=16, codes=false."""
    return ", ".join(f"{name}={value}" for name, value in changes.items())


def pair_name(pair: tuple[int, int]) -> str:
    """As 2-11: from domain 2 to domain 11."""
    return f"{pair[0]}-{pair[1]}"
