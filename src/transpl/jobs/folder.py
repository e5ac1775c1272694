"""Folders of results: what they hold, how an interrupted run is noticed, and how they are read back.

A job for one target writes

- `model/`: the adapted model; beside it `source.json` (what its source model was trained on, see `source_models`) and
  `reading.json` (how recordings were read, for `transpl predict`)
- `predictions.csv`: a row per window with its label, confidence, rank among those to check and a probability per class
- `segments.csv`, of recordings: from when to when which label holds
- `summary.json`, and `metrics.json` where there are scores or an estimated accuracy
- `explanation.npz` (of some windows), `shift.json`, `sample.npz` (some windows of both domains, for figures)

A job for many targets writes `targets.json` first, then `model/` (the source model), a folder per target with
`predictions.csv`, `summary.json`, `metrics.json` and `model/`, and finally `summary.csv`.

`unfinished.json` exists while results are written, and after a crash at that point: files of two runs may then lie side
by side, so that nothing in the folder is read. `failed.json` says why the last run failed.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl import TransPL
from transpl._utils.errors import InputError, check_int, check_positive, invalid, unreadable_file
from transpl._utils.files import read_json, read_npz, remove_leftovers, replacing, write_json
from transpl._utils.layout import check_arrays
from transpl._utils.locks import require_held
from transpl.datasets.recordings.clocks import UNITS
from transpl.windows import Windows, as_windows, evenly_spaced

# columns of predictions.csv
TRUE_LABEL = "true_label"  # given by a person
LABEL_BEFORE = "label_before"  # before adaptation
TRUTH = "truth"  # the label in the target's own file, which only scores
CHECK = "check"  # 1: check this window first
PROBABILITY = "p_"  # prefix of the columns with a probability per class

UNFINISHED = "unfinished.json"
TARGETS = "targets.json"
SAMPLE_FILE = "sample.npz"
SEGMENTS = "segments.csv"
SAMPLE_SIZE = 300  # windows of each domain
_COLUMNS, _SIZES, _SECONDS = ("domain_col", "time_col", "group_col"), ("window", "step"), ("interval", "rate", "gap")
READING = {*_COLUMNS, "channels", *_SIZES, *_SECONDS, "time_unit"}  # keys of reading.json
_SAMPLE_FORMAT = "transpl-sample-1"
_SAMPLE_LAYOUT = {
    "source": "f n D T",
    "source_lengths": "i n",
    "source_rows": "i n",
    "target": "f m D U",
    "target_lengths": "i m",
    "target_rows": "i m",
}
_ONE_TARGET = ("summary.json", "predictions.csv", UNFINISHED)
_MANY_TARGETS = ("summary.csv", TARGETS)
_RUN_AGAIN = "Run transpl adapt (or demo) again, as before."
_ROUNDING = 1e-3


# finished, unfinished, failed


@contextmanager
def writing_results(folder: Path) -> Iterator[None]:
    """Mark a folder as unfinished while the block writes results; the mark is removed only if the block succeeds."""
    require_held(folder)
    remove_leftovers(folder)
    remove_leftovers(folder / "model")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(folder / UNFINISHED, {"since": now, "what_to_do": _RUN_AGAIN})
    yield
    (folder / UNFINISHED).unlink()


def is_unfinished(folder: Path) -> bool:
    """True while results are being written, and after that was interrupted."""
    return (folder / UNFINISHED).exists()


def require_finished(folder: Path) -> None:
    """Raise if a folder of results, or the model in one, may mix the files of two runs."""
    home = folder.parent if folder.name == "model" else folder
    if is_unfinished(home):
        problem = "its results are being written, or that was interrupted; they may be of two runs"
        raise unreadable_file(home, problem=problem, advice=_RUN_AGAIN)


def require_complete_predictions(folder: Path, table: pd.DataFrame) -> None:
    """Raise unless predictions.csv has as many rows as summary.json says, and none of them is cut off.

    The probabilities of a row that was cut off are not numbers or do not add up to 1.
    """
    columns = [name for name in table.columns if name.startswith(PROBABILITY)]
    total = table[columns].apply(pd.to_numeric, errors="coerce").sum(axis=1, skipna=False).to_numpy(np.float64)
    cut = np.flatnonzero(~(np.abs(total - 1) < _ROUNDING)) if columns else np.array([], int)
    rows = _expected_rows(folder)
    if len(cut):
        problem = f"row {cut[0] + 1} of {len(table)} is cut off or damaged"
    elif rows not in (None, len(table)):
        problem = f"{len(table)} rows, but summary.json counts {rows}"
    else:
        return
    advice = f"Copy the folder again. Otherwise: {_RUN_AGAIN}"
    raise unreadable_file(folder / "predictions.csv", problem=problem, advice=advice)


def _expected_rows(folder: Path) -> int | None:
    if not (folder / "summary.json").is_file():
        return None
    summary = read_json(folder / "summary.json")
    test = summary.get("test") if isinstance(summary, dict) else None
    return test.get("windows") if isinstance(test, dict) else None


@contextmanager
def recording_failure(folder: Path) -> Iterator[None]:
    """Write failed.json if the block raises; remove an earlier one if it does not."""
    try:
        yield
    except BaseException as error:
        fix = "Correct what the error names, then run it again."
        resume = "Run the same command again: it goes on from the last checkpoint."
        what_to_do = fix if isinstance(error, InputError) else resume
        with suppress(OSError):  # a full disk has no room for this file either; the error itself says so
            write_failure(folder, f"{type(error).__name__}: {error}", traceback.format_exc(), what_to_do)
        raise
    (folder / "failed.json").unlink(missing_ok=True)


def write_failure(folder: Path, error: str, traceback: str | None, what_to_do: str) -> None:
    """Write failed.json."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"when": when, "error": error, "traceback": traceback, "what_to_do": what_to_do}
    write_json(folder / "failed.json", record)


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as csv, atomically."""
    with replacing(path) as part:
        table.to_csv(part, index=False)


# one target or many


def holds_many(folder: Path) -> bool:
    """True for a folder of many targets, finished or not."""
    return any((folder / name).is_file() for name in _MANY_TARGETS)


def require_one_target(folder: Path) -> None:
    """Raise for a folder of many targets: a job for one target would replace their source model."""
    if holds_many(folder):
        got = f"{folder}, which holds many targets"
        raise invalid("out", expected="a folder for one target", got=got, advice="Choose another one.")


def begin_many(folder: Path, targets: Iterable[str]) -> None:
    """Mark a folder as one of many targets before anything else is written; a folder of one target is refused."""
    if any((folder / name).is_file() for name in _ONE_TARGET):
        got = f"{folder}, which holds the results of one target"
        raise invalid("out", expected="a folder for many targets", got=got, advice="Choose another one.")
    remove_leftovers(folder)
    remove_leftovers(folder / "model")
    write_json(folder / TARGETS, {"targets": list(targets)})


# the model


def save_reading(folder: Path, reading: dict[str, Any] | None) -> None:
    """Save how recordings were read beside the model, so that `predict` reads new ones the same way."""
    path = folder / "model" / "reading.json"
    if reading is None:
        path.unlink(missing_ok=True)
    else:
        write_json(path, reading)


def load_model(folder: Path) -> tuple[TransPL, dict[str, Any]]:
    """Load a model from a folder of results or a model folder.

    Returns
    -------
    model
        the fitted model
    reading
        how its recordings were read, as arguments of `read_recordings`; empty if that was not saved
    """
    if folder.is_file():
        raise invalid("model", expected="a folder that transpl adapt wrote", got=folder, advice="Name the folder.")
    home = folder / "model" if (folder / "model" / "model.json").is_file() else folder
    require_finished(home)
    reading = load_reading(home)
    model = TransPL.load(home)
    if holds_many(folder):
        warnings.warn(
            f"{folder} holds several targets; this is their source model, not adapted. Name the folder of a target for "
            "its adapted model.",
            stacklevel=2,
        )
    return model, reading


def load_reading(folder: Path) -> dict[str, Any]:
    """Read how recordings were read, as arguments of `read_recordings`; empty if the folder does not say."""
    path = folder / "reading.json"
    if not path.is_file():
        return {}
    reading = read_json(path)
    bad = ["its content"] if not isinstance(reading, dict) else sorted(set(reading) - READING)
    if not bad:
        reading = {name: value for name, value in reading.items() if value is not None}
        bad = [name for name, value in reading.items() if not _is_sound(name, value)]
    if bad:
        problem = f"not written by transpl adapt ({', '.join(bad)})"
        advice = "Delete it, and describe the recordings on the command line."
        raise unreadable_file(path, problem=problem, advice=advice)
    return reading


def _is_sound(name: str, value: Any) -> bool:
    """Whether a value of reading.json is of the right kind."""
    if name in _COLUMNS:
        return isinstance(value, str)
    if name == "time_unit":
        return isinstance(value, str) and value in UNITS
    if name == "channels":
        return isinstance(value, list) and bool(value) and all(isinstance(channel, str) for channel in value)
    try:
        if name in _SIZES:
            check_int(name, value, least=1)
        else:
            check_positive(name, value)
    except InputError:
        return False
    return True


# the sample of windows


@dataclass(frozen=True)
class Sample:
    """Some source windows with labels and target windows without; rows are positions in the job's arrays."""

    source: Windows
    source_labels: NDArray[np.str_]
    source_rows: NDArray[np.int64]
    target: Windows
    target_rows: NDArray[np.int64]
    channel_names: tuple[str, ...]


def sample_of(source: Any, labels: NDArray, target: Any, channel_names: tuple[str, ...]) -> Sample:
    """Take at most `SAMPLE_SIZE` windows of each domain at equal steps: the same ones for the same data."""
    rows, target_rows = evenly_spaced(len(source), SAMPLE_SIZE), evenly_spaced(len(target), SAMPLE_SIZE)
    names = np.asarray(labels)[rows].astype(str)
    return Sample(_take(source, rows), names, rows, _take(target, target_rows), target_rows, channel_names)


def save_sample(sample: Sample, folder: str | os.PathLike[str]) -> None:
    """Write sample.npz to a folder."""
    with replacing(Path(folder) / SAMPLE_FILE) as part, part.open("wb") as stream:
        np.savez_compressed(
            stream,
            format=np.array(_SAMPLE_FORMAT),
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
    path = Path(folder) / SAMPLE_FILE
    arrays = read_npz(path)
    try:
        if str(arrays.pop("format", "")) != _SAMPLE_FORMAT:
            raise KeyError("format")
        labels, names = (_words(arrays, name) for name in ("source_labels", "channel_names"))
        check_arrays(arrays, _SAMPLE_LAYOUT, {"n": len(labels), "D": len(names)})
        source, target = (_windows(arrays, side) for side in ("source", "target"))
        return Sample(source, labels, arrays["source_rows"], target, arrays["target_rows"], tuple(names.tolist()))
    except (KeyError, InputError) as error:
        problem = f"not a sample of a job's windows ({error})"
        raise unreadable_file(path, problem=problem, advice="Run transpl adapt or demo again.") from None


def _words(arrays: dict[str, NDArray[Any]], name: str) -> NDArray[np.str_]:
    words = arrays.pop(name)
    if words.dtype.kind != "U" or words.ndim != 1:
        raise invalid(name, expected="words", got=f"{words.dtype}, shape {words.shape}", advice="It is damaged.")
    return words


def _windows(arrays: dict[str, NDArray[Any]], side: str) -> Windows:
    values, lengths = as_windows(arrays[side], name=side).values, arrays[f"{side}_lengths"]
    longest = values.shape[2]
    if lengths.min() < 1 or lengths.max() > longest:
        got, advice = f"{lengths.min()}..{lengths.max()}", "It is damaged."
        raise invalid(f"{side}_lengths", expected=f"1..{longest}", got=got, advice=advice)
    return Windows(values, lengths)


def _take(X: Any, rows: NDArray[np.int64]) -> Windows:
    return as_windows([X[i] for i in rows] if isinstance(X, list | tuple) else X[rows]).in_memory()
