"""Seats: a witness in a view, as it learnt from the source and as it answers on the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.layout import below, prefixed, without_prefix
from transpl._utils.progress import task
from transpl.council import witnesses
from transpl.council.settings import CouncilSettings
from transpl.council.views import RowScaler, SignalScaler
from transpl.council.witnesses import ViewedWindows, Witness
from transpl.windows import Labelled

Floats = NDArray[np.float64]


@dataclass
class Seat:
    """A witness in a view.

    Attributes
    ----------
    name, view : str
    witness : Witness
        As it learnt from the source.
    columns, target_columns : RowScaler or None
        How its rows are scaled for the source, and since `adapt` for the target.
    adapted : Witness or None
        The witness adapted to the target's rows; for most it is `witness`.
    """

    name: str
    view: str
    witness: Witness
    columns: RowScaler | None
    target_columns: RowScaler | None = None
    adapted: Witness | None = None

    @classmethod
    def learn(cls, name: str, view: str, viewed: ViewedWindows, source: Labelled, seed: int) -> Self:
        """Let a new witness learn from the source."""
        witness = witnesses.find(name)(seed)
        witness.prepare(viewed)
        rows = witness.rows(viewed)
        columns = RowScaler.fit(rows) if witness.per_column else None
        witness.learn(rows if columns is None else columns.transform(rows), source.y, source.n_classes)
        return cls(name, view, witness, columns)

    @classmethod
    def restored(cls, name: str, view: str, arrays: dict[str, NDArray], n_classes: int, seed: int) -> Self:
        """Restore a seat from the result of `arrays`."""
        saved = {part: without_prefix(part, arrays) for part in ("columns", "target_columns", "witness", "adapted")}
        witness = witnesses.find(name)
        learnt = witness(seed).restore(saved["witness"], n_classes)
        for part in ("columns", "target_columns"):
            if saved[part]:
                learnt.check_columns(len(saved[part]["mean"]))
        return cls(
            name,
            view,
            learnt,
            RowScaler(**saved["columns"]) if saved["columns"] else None,
            RowScaler(**saved["target_columns"]) if saved["target_columns"] else None,
            witness(seed).restore(saved["adapted"], n_classes) if saved["adapted"] else None,
        )

    @staticmethod
    def layout(name: str, adapted: bool) -> dict[str, str]:
        """Return what `arrays` returns, as `check_arrays` takes it."""
        witness = witnesses.find(name)
        found = below("witness", witness.layout)
        if "*" in witness.layout:  # a network; it may have been adapted
            found |= below("adapted", witness.layout)
        if witness.per_column:
            found |= below("columns", {"mean": "f columns", "scale": "p columns"})
        if witness.per_column and adapted:
            found |= below("target_columns", {"mean": "f columns", "scale": "p columns"})
        return found

    def rows(self, viewed: ViewedWindows, adapting: bool) -> NDArray:
        """Return rows (n, ...); `adapting` adapts scaler and witness to them, unless the view is "recorded"."""
        rows = self.witness.rows(viewed)
        if self.columns is not None:
            if adapting:
                self.target_columns = self.columns if self.view == "recorded" else RowScaler.fit(rows)
            rows = (self.target_columns or self.columns).transform(rows)
        if adapting:
            self.adapted = self.witness if self.view == "recorded" else self.witness.adapted_to(rows)
        return rows

    def answer(self, rows: NDArray) -> Floats:
        """Return class probabilities (n, K) of the result of `rows`."""
        return (self.adapted or self.witness).answer(rows)

    def arrays(self) -> dict[str, NDArray]:
        """Return everything as named arrays, to save."""
        adapted = None if self.adapted is self.witness else self.adapted
        parts = {"columns": self.columns, "target_columns": self.target_columns, "adapted": adapted}
        found = prefixed("witness", self.witness.arrays())
        for name, part in parts.items():
            found |= {} if part is None else prefixed(name, part.arrays())
        return found


@dataclass(frozen=True)
class SourceSeats:
    """All seats as they learnt from a source, and the scaler of each view."""

    scalers: dict[str, SignalScaler]
    seats: list[Seat]

    @classmethod
    def learn(cls, source: Labelled, settings: CouncilSettings) -> Self:
        """Let every witness learn in every view."""
        scalers = {view: SignalScaler.fit(view, source.windows) for view in settings.views}
        seats: list[Seat] = []
        with task("learning from the source, witnesses", len(scalers) * len(settings.witnesses)) as update:
            for view, scaler in scalers.items():
                viewed = scaler.transform(source.windows)
                for name in settings.witnesses:
                    seats.append(Seat.learn(name, view, viewed, source, settings.random_state))
                    update(len(seats))
        return cls(scalers, seats)

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray], settings: CouncilSettings, n_classes: int) -> Self:
        """Restore all seats from the result of `arrays`."""
        scalers = {view: SignalScaler(view, **without_prefix(f"lens.{view}", arrays)) for view in settings.views}
        seats = [
            Seat.restored(name, view, without_prefix(f"seat.{view}.{name}", arrays), n_classes, settings.random_state)
            for view in settings.views
            for name in settings.witnesses
        ]
        return cls(scalers, seats)

    @staticmethod
    def layout(settings: CouncilSettings, adapted: bool) -> dict[str, str]:
        """Return what `arrays` returns, as `check_arrays` takes it; `adapted` if these seats answer on a target."""
        found: dict[str, str] = {}
        for view in settings.views:
            found |= below(f"lens.{view}", SignalScaler.layout)
            for name in settings.witnesses:
                found |= below(f"seat.{view}.{name}", Seat.layout(name, adapted))
        return found

    def arrays(self) -> dict[str, NDArray]:
        """Return everything as named arrays, to save."""
        found: dict[str, NDArray] = {}
        for view, scaler in self.scalers.items():
            found |= prefixed(f"lens.{view}", scaler.arrays())
        for seat in self.seats:
            found |= prefixed(f"seat.{seat.view}.{seat.name}", seat.arrays())
        return found
