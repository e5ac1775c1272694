"""Seats: a witness in a view, as it learnt from the source and as it is heard on the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transpl.council import witnesses
from transpl.council.parameters import CouncilSettings
from transpl.council.views import Columns, Lens
from transpl.council.witnesses import Sight, Witness
from transpl.windows import Labelled

Floats = NDArray[np.float64]


@dataclass
class Seat:
    """A witness in a view, with the columns of its rows as the source, and since `adapt` the target, shows them.

    adapted : the witness once it has seen the target's rows; itself for most
    """

    name: str
    view: str
    witness: Witness
    columns: Columns | None
    target_columns: Columns | None = None
    adapted: Witness | None = None

    @classmethod
    def taught(cls, name: str, view: str, sight: Sight, source: Labelled, seed: int) -> Self:
        witness = witnesses.find(name)(seed)
        witness.prepare(sight)
        rows = witness.rows(sight)
        columns = Columns.of(rows) if witness.per_column else None
        witness.learn(rows if columns is None else columns.see(rows), source.y, source.n_classes)
        return cls(name, view, witness, columns)

    @classmethod
    def restored(cls, name: str, view: str, arrays: dict[str, NDArray], n_classes: int, seed: int) -> Self:
        kept = ("columns", "target_columns", "witness", "adapted")
        columns, target_columns, witness, adapted = (under(part, arrays) for part in kept)
        found = witnesses.find(name)
        return cls(
            name,
            view,
            found(seed).restore(witness, n_classes),
            Columns(**columns) if columns else None,
            Columns(**target_columns) if target_columns else None,
            found(seed).restore(adapted, n_classes) if adapted else None,
        )

    def rows(self, sight: Sight, adapting: bool) -> NDArray:
        """(n, ...); `adapting` adapts columns and witness to these windows, unless the view is "recorded"."""
        rows = self.witness.rows(sight)
        if self.columns is not None:
            if adapting:
                self.target_columns = self.columns if self.view == "recorded" else Columns.of(rows)
            rows = (self.target_columns or self.columns).see(rows)
        if adapting:
            self.adapted = self.witness if self.view == "recorded" else self.witness.adapted_to(rows)
        return rows

    def answer(self, rows: NDArray) -> Floats:
        """(n, K) of what `rows` gave."""
        return (self.adapted or self.witness).answer(rows)

    def arrays(self) -> dict[str, NDArray]:
        found = prefixed("witness", self.witness.arrays())
        if self.columns is not None:
            found |= prefixed("columns", self.columns.arrays())
        if self.target_columns is not None:
            found |= prefixed("target_columns", self.target_columns.arrays())
        if self.adapted is not None and self.adapted is not self.witness:
            found |= prefixed("adapted", self.adapted.arrays())
        return found


@dataclass(frozen=True)
class Taught:
    """What learnt from a source: its lens for each view, and the seats."""

    lenses: dict[str, Lens]
    seats: list[Seat]

    @classmethod
    def by(cls, source: Labelled, settings: CouncilSettings) -> Self:
        lenses = {view: Lens.of(view, source.windows) for view in settings.views}
        seats = []
        for view, lens in lenses.items():
            sight = lens.see(source.windows)
            seats += [Seat.taught(name, view, sight, source, settings.random_state) for name in settings.witnesses]
        return cls(lenses, seats)

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray], settings: CouncilSettings, n_classes: int) -> Self:
        lenses = {view: Lens(view, **under(f"lens.{view}", arrays)) for view in settings.views}
        seats = [
            Seat.restored(name, view, under(f"seat.{view}.{name}", arrays), n_classes, settings.random_state)
            for view in settings.views
            for name in settings.witnesses
        ]
        return cls(lenses, seats)

    def arrays(self) -> dict[str, NDArray]:
        found: dict[str, NDArray] = {}
        for view, lens in self.lenses.items():
            found |= prefixed(f"lens.{view}", lens.arrays())
        for seat in self.seats:
            found |= prefixed(f"seat.{seat.view}.{seat.name}", seat.arrays())
        return found


def prefixed(prefix: str, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Arrays under names that begin with a prefix."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """The arrays that `prefixed` put under a prefix, by their own names."""
    return {name.removeprefix(f"{prefix}."): a for name, a in arrays.items() if name.startswith(f"{prefix}.")}
