"""Arrays of MATLAB (.mat), HDF5 (.h5) and NetCDF (.nc) files, as they are or as the columns of a table."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import require_extra, unreadable_file
from transpl._utils.files import third_party
from transpl.datasets.recordings.matlab_files import Arrays, read_matlab

ARRAYS = (".mat", ".h5", ".hdf5", ".nc")

_HDF5, _NETCDF3 = b"\x89HDF\r\n\x1a\n", b"CDF"
_MATLAB_73 = b"MATLAB 7.3"  # HDF5 after a text of 512 bytes
_MOST_UNPACKED = 1100  # bytes that a stored byte may become; zlib's limit
RECORDING = "recording"  # column for the names of groups
_SENSOR = re.compile(  # or where it is worn
    r"(?<![a-z])(acc|gyr|mag|imu|emg|ecg|eeg|ppg|bvp|eda|hr|heart|temp|baro|sensor|device|phone|watch|"
    r"left|right|wrist|ankle|chest|thigh|arm|leg|hip|waist|back|foot|hand|head)",
    re.IGNORECASE,
)
_PLAIN = "biufSU"  # numpy's kinds of numbers and text
_AXES = "xyz"
_ADVICE = "Save the signals as arrays of equal length, or the table as csv."


def read_arrays(path: Path) -> Arrays:
    """Return the numbers and texts of a file by name: "acc", or "trial/acc" where one group has it and others too.

    Values that are neither, and axes of length 1 at the end, are left out.
    """
    found = _read(path)
    short = {name: name.rpartition("/")[2] for name in found}
    often = Counter(short.values())
    return {short[name] if often[short[name]] == 1 else name: array for name, array in found.items()}


def _read(path: Path) -> Arrays:
    with third_party(path, f"not readable as {path.suffix}", "Check that it opens elsewhere, or write it again."):
        with open(path, "rb") as stream:
            start = stream.read(16)
        if start.startswith(_NETCDF3):
            found = _read_netcdf3(path)
        elif start.startswith((_HDF5, _MATLAB_73)):
            require_extra(f"reading {path.name}", "hdf5", "h5py")
            found = _read_hdf5(path)
        else:
            found = read_matlab(path)
    return {name: _plain(array) for name, array in found.items()}


def holds_windows(arrays: Arrays) -> bool:
    """Whether the arrays are windows that are already cut, in `X`, and not columns of a table."""
    return "X" in arrays and arrays["X"].ndim == 3


def read_arrays_as_table(path: Path) -> pd.DataFrame:
    """Return the longest arrays as columns; acc (n, 3) becomes acc_x, acc_y and acc_z, others are numbered from 0.

    Groups with the same arrays are recordings, one below the other, named in the column "recording"; or sensors, side
    by side, if they are called so.
    """
    groups: dict[str, Arrays] = {}
    for name, array in _read(path).items():
        group, _, short = name.rpartition("/")
        groups.setdefault(group, {})[short] = array
    are_alike = len(groups) > 1 and len({frozenset(arrays) for arrays in groups.values()}) == 1
    are_sensors = any(_SENSOR.search(group.rpartition("/")[2]) for group in groups)
    if are_alike and are_sensors:
        _require_equal_length(groups, path)
    table = _stack(groups) if are_alike and not are_sensors else _columns(read_arrays(path))
    if table.empty:
        raise unreadable_file(path, problem="no array of numbers in it", advice=_ADVICE)
    return table


def _require_equal_length(sensors: dict[str, Arrays], path: Path) -> None:
    rows = {name: len(_columns(arrays)) for name, arrays in sensors.items()}
    if len(set(rows.values())) > 1:
        lengths = ", ".join(f"{name} {n:,}" for name, n in rows.items())
        problem = f"its sensors have different numbers of rows ({lengths})"
        raise unreadable_file(path, problem=problem, advice="Join them by time into one table.")


def _stack(recordings: dict[str, Arrays]) -> pd.DataFrame:
    facts = _facts(recordings)
    tables = [_columns(arrays).assign(**facts[name], **{RECORDING: name}) for name, arrays in recordings.items()]
    return pd.concat(tables, ignore_index=True)


def _columns(found: Arrays) -> pd.DataFrame:
    arrays = {name: array for name, array in found.items() if array.ndim in (1, 2) and array.size > 1}
    rows = max((max(array.shape) for array in arrays.values()), default=0)
    columns: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if rows not in array.shape:
            continue
        table = array[:, None] if array.ndim == 1 else array if len(array) == rows else array.T
        signs = _AXES if table.shape[1] == len(_AXES) else range(table.shape[1])
        names = [name] if table.shape[1] == 1 else [f"{name}_{sign}" for sign in signs]
        columns |= dict(zip(names, table.T, strict=True))
    return pd.DataFrame(columns)


def _facts(groups: dict[str, Arrays]) -> dict[str, dict[str, Any]]:
    """Return what each group has one of, such as a label, unless it is a number that all share, such as a rate."""
    single = {
        group: {name: each.item() for name, each in arrays.items() if each.size == 1}
        for group, arrays in groups.items()
    }
    values: dict[str, set[Any]] = {}
    for name, value in chain.from_iterable(facts.items() for facts in single.values()):
        values.setdefault(name, set()).add(value)
    kept = {name for name, some in values.items() if len(some) > 1 or isinstance(next(iter(some)), str)}
    return {group: {name: value for name, value in facts.items() if name in kept} for group, facts in single.items()}


def recording_column(path: Path, frame: pd.DataFrame) -> str | None:
    """Return the column that `read_arrays_as_table` added, if it did."""
    is_named = path.suffix.lower() in ARRAYS and RECORDING in frame.columns
    return RECORDING if is_named and not pd.api.types.is_numeric_dtype(frame[RECORDING]) else None


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Drop axes of length 1: MATLAB writes a vector as a matrix. An array of three axes stays as it is."""
    return array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array


def _read_netcdf3(path: Path) -> Arrays:
    from scipy.io import netcdf_file

    with netcdf_file(path, mmap=False) as file:
        arrays = {name: np.array(variable.data) for name, variable in file.variables.items()}
    return {name: array.astype(array.dtype.newbyteorder("=")) for name, array in arrays.items()}


def _read_hdf5(path: Path) -> Arrays:
    import h5py

    found: Arrays = {}

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or item.shape is None or item.size == 0 or name.startswith("#"):
            return
        if item.nbytes > _MOST_UNPACKED * max(item.id.get_storage_size(), 1):
            raise ValueError(f"{name} of {item.nbytes} bytes, which the file cannot hold")
        is_matlab = "MATLAB_class" in item.attrs
        if h5py.check_ref_dtype(item.dtype) is not None:
            if is_matlab:
                found[name] = np.array([_matlab_word(item.file[each]) for each in item[()].reshape(-1)])
        elif h5py.check_string_dtype(item.dtype) is not None:
            found[name] = np.asarray(item.asstr()[()], dtype=str)
        elif item.dtype.kind in _PLAIN:
            found[name] = item[()].T if is_matlab else item[()]  # MATLAB counts axes the other way round

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return {name: np.atleast_1d(array) for name, array in found.items()}


def _matlab_word(item: Any) -> str:
    return "".join(map(chr, item[()].reshape(-1))) if item.attrs.get("MATLAB_class") == b"char" else ""
