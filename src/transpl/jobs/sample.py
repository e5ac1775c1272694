"""A few windows of both domains beside a job's model, from which figures can be made later: `sample.npz`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, unreadable_file
from transpl._utils.files import read_npz, replacing
from transpl.windows import Windows, as_windows, evenly_spaced

FILE = "sample.npz"
MOST = 300  # windows of each domain
_FORMAT = "transpl-sample-1"


@dataclass(frozen=True)
class Sample:
    """Source windows with their labels and target windows without; rows are their places in the job's arrays."""

    source: Windows
    source_labels: NDArray[np.str_]
    source_rows: NDArray[np.int64]
    target: Windows
    target_rows: NDArray[np.int64]
    channel_names: tuple[str, ...]


def sample_of(source: Any, labels: NDArray, target: Any, channel_names: tuple[str, ...]) -> Sample:
    """Choose windows in equal steps, the same ones for the same data; windows as `as_windows` takes them."""
    here, there = evenly_spaced(len(source), MOST), evenly_spaced(len(target), MOST)
    return Sample(
        _chosen(source, here), np.asarray(labels)[here].astype(str), here, _chosen(target, there), there, channel_names
    )


def save_sample(sample: Sample, folder: str | os.PathLike[str]) -> None:
    """Write sample.npz into a folder."""
    with replacing(Path(folder) / FILE) as part, part.open("wb") as stream:
        np.savez_compressed(
            stream,
            format=np.array(_FORMAT),
            source=sample.source.values,
            source_lengths=sample.source.lengths,
            source_labels=sample.source_labels,
            source_rows=sample.source_rows,
            target=sample.target.values,
            target_lengths=sample.target.lengths,
            target_rows=sample.target_rows,
            channel_names=np.array(sample.channel_names),
        )


def load_sample(folder: str | os.PathLike[str]) -> Sample:
    """Read sample.npz from a folder."""
    path = Path(folder) / FILE
    arrays = read_npz(path)
    try:
        if str(arrays["format"]) != _FORMAT:
            raise KeyError("format")
        return Sample(
            _windows(arrays, "source"),
            arrays["source_labels"],
            arrays["source_rows"],
            _windows(arrays, "target"),
            arrays["target_rows"],
            tuple(arrays["channel_names"].tolist()),
        )
    except (KeyError, InputError) as error:
        problem = f"not a sample of a job's windows ({error})"
        raise unreadable_file(path, problem=problem, advice="Run transpl adapt or demo again.") from None


def _chosen(X: Any, rows: NDArray[np.int64]) -> Windows:
    return as_windows([X[i] for i in rows] if isinstance(X, list | tuple) else X[rows]).in_memory()


def _windows(arrays: dict[str, NDArray[Any]], side: str) -> Windows:
    return Windows(as_windows(arrays[side], name=side).values, arrays[f"{side}_lengths"])
