"""A source model on its way to many workers: a folder that each of them reads once."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transpl._utils.files import read_npz
from transpl.estimator.classifier import TransPL
from transpl.windows import Labelled, Windows

Rows = tuple[Labelled, Labelled | None]  # training, validation


@dataclass(frozen=True)
class Parcel:
    """A model folder, with the source rows if adaptation uses them."""

    folder: Path

    def unpack(self) -> TransPL:
        """A model to do anything with: nothing that is done to it reaches the next target."""
        model, rows = _read(self.folder)
        own = copy.deepcopy(model)
        if rows is not None:
            own.fitted_method().remember_source(*rows)
        return own


@contextmanager
def parcelled(model: TransPL, rows: Rows | None, near: Path | None) -> Iterator[Parcel]:
    """Pack a model into a folder that exists inside the block; in the folder `near`, or where temporary files go."""
    if near is not None:
        near.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".transpl-source-", dir=near) as name:
        folder = Path(name)
        model.save(folder)
        if rows is not None:
            _write_rows(folder, rows)
        try:
            yield Parcel(folder)
        finally:
            _read.cache_clear()


@lru_cache(maxsize=1)
def _read(folder: Path) -> tuple[TransPL, Rows | None]:
    model = TransPL.load(folder)
    if not _rows_file(folder).exists():
        return model, None
    arrays = read_npz(_rows_file(folder))
    source, validation = (
        Labelled(Windows(arrays[f"{part}_x"], arrays[f"{part}_lengths"]), arrays[f"{part}_y"], len(model.classes_))
        if f"{part}_x" in arrays
        else None
        for part in ("source", "validation")
    )
    assert source is not None
    return model, (source, validation)


def _write_rows(folder: Path, rows: Rows) -> None:
    arrays: dict[str, NDArray] = {}
    for part, labelled in zip(("source", "validation"), rows, strict=True):
        if labelled is None:
            continue
        windows = labelled.windows
        arrays |= {f"{part}_x": windows.values, f"{part}_lengths": windows.lengths, f"{part}_y": labelled.y}
    np.savez(_rows_file(folder), allow_pickle=False, **arrays)


def _rows_file(folder: Path) -> Path:
    return folder / "source_rows.npz"
