"""What a study looks at: a source model and, for most studies, windows of both domains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, invalid
from transpl.markov import TransitionCounts
from transpl.methods import TransPLMethod
from transpl.windows import Windows


@dataclass(frozen=True)
class BothSides:
    """Windows of source and target; `target_rows` are the numbers by which the target's windows are known."""

    source: Windows
    target: Windows
    target_rows: NDArray[np.int64]


@dataclass(frozen=True)
class Subject:
    """A fitted source model, and what it is applied to.

    name : of the pair, for readers
    group : what several subjects may have in common, such as the data set
    sides : None where only the model is at hand
    target_counts : transitions of the whole target; None if the target's windows here are the whole
    """

    name: str
    group: str
    method: TransPLMethod
    class_names: tuple[str, ...]
    channel_names: tuple[str, ...]
    sides: BothSides | None = None
    target_counts: TransitionCounts | None = None

    @property
    def windows(self) -> BothSides:
        """The windows; refused where there are none."""
        if self.sides is None:
            raise InputError(f"{self.name}: its folder has no sample.npz. Run transpl adapt or demo again.")
        return self.sides

    def counts_of_target(self) -> TransitionCounts:
        """Transitions of the whole target, (D, n_c, n_c)."""
        return self.method.count(self.windows.target) if self.target_counts is None else self.target_counts

    def channel(self, which: str | int) -> int:
        """The position of a channel that is named, or numbered from 0."""
        names = self.channel_names
        if str(which) in names:
            return names.index(str(which))
        if str(which).isdecimal() and int(which) < len(names):
            return int(which)
        expected = f"a name among {', '.join(names)}, or a number 0..{len(names) - 1}"
        raise invalid("channel", expected=expected, got=repr(which), advice="Channels are counted from 0.")
