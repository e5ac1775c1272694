"""Which of a benchmark's runs a figure is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Choice:
    """Finished runs of TransPL: of these data sets, pairs, this seed, with these settings; by default of all.

    dataset : one; None is all of them where a figure shows several
    seed : None takes of every pair the smallest there is
    settings : values that a run must have; where several settings are left, the paper's are taken
    """

    dataset: str | None = None
    pairs: Sequence[tuple[int, int]] = ()
    seed: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """True if nothing was chosen."""
        return self == Choice()
