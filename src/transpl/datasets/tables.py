"""Reading a table from disk and taking checked columns out of it."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl.errors import InputError, unreadable, wrong

CSV = (".csv", ".csv.gz")
PARQUET = (".parquet", ".pq")
_ADVICE = "Check the columns of your file."


def read_table(path: str | os.PathLike[str], *, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read csv (also .csv.gz) or parquet.

    Columns named in `text` keep their wording in a csv ("01" stays "01", "None" is a word); only an empty
    field and "nan" are missing there.
    """
    path = Path(path)
    suffix = has_suffix(path, CSV + PARQUET)
    if suffix is None:
        expected = f"a file ending in {', '.join(CSV + PARQUET)}"
        raise wrong("path", expected=expected, got=path.name, advice="Convert the file or rename it.")
    try:
        frame = _read_parquet(path) if suffix in PARQUET else _read_csv(path, text)
    except InputError:
        raise
    except FileNotFoundError:
        raise unreadable(path, problem="no such file", advice="Check the path.") from None
    except pd.errors.EmptyDataError:
        raise unreadable(
            path, problem="the file is empty", advice="Write a header and one row per time step."
        ) from None
    except (ValueError, OSError, EOFError, zlib.error, NotImplementedError, pd.errors.ParserWarning) as error:
        problem = f"not readable as {suffix} ({' '.join(str(error).split())})"
        raise unreadable(path, problem=problem, advice="Check that it opens elsewhere, or write it anew.") from None
    frame.columns = frame.columns.map(str)
    return frame


def has_suffix(path: Path, suffixes: Sequence[str]) -> str | None:
    """Return which of `suffixes` the file's name ends in, in either case of letters."""
    return next((suffix for suffix in suffixes if path.name.lower().endswith(suffix)), None)


def require_columns(frame: pd.DataFrame, path: Path, **columns: str | None) -> None:
    """Raise unless each argument that names a column names one that there is."""
    for argument, column in columns.items():
        if column is not None and column not in frame.columns:
            present = ", ".join(map(repr, frame.columns))
            raise wrong(argument, expected=f"a column of {path.name} ({present})", got=repr(column), advice=_ADVICE)


def as_text(values: Any) -> NDArray[np.str_]:
    """Return any column or array as text, "" where it is missing; whole floats are written as integers."""
    series = pd.Series(values).astype(object)
    words = series.where(series.notna(), "").map(_word)
    return np.asarray(words, dtype=str)


def number_columns(frame: pd.DataFrame, columns: Sequence[str], path: Path) -> NDArray[np.float64]:
    """Return columns as numbers, (rows, columns), NaN where missing; words are an error that says where they are."""
    for column in columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            bad = pd.to_numeric(frame[column], errors="coerce").isna() & frame[column].notna()
            got = f"{frame[column][bad].iloc[0]!r} in row {frame.index[bad][0]}" if bad.any() else "text"
            advice = "Leave the column out of channels, or clean it."
            raise wrong(f"channel {column!r} of {path.name}", expected="numbers", got=got, advice=advice)
    return frame[list(columns)].to_numpy(dtype=np.float64, na_value=np.nan)


def seconds_column(frame: pd.DataFrame, column: str, path: Path) -> NDArray[np.float64]:
    """Return a time column as numbers from its earliest entry: its own unit if numeric, seconds if dates."""
    series = frame[column]
    if not pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_timedelta64_dtype(series):
        series = _dates(series)
    if series.isna().any():
        missing = series.isna()
        got = f"{frame[column][missing].iloc[0]!r} in row {frame.index[missing][0]}"
        advice = "Fill or remove such rows, or leave time_col out."
        raise wrong(
            f"time_col {column!r} of {path.name}", expected="a number or date in every row", got=got, advice=advice
        )
    since = series - series.min()  # before the conversion: nanosecond clocks do not fit float64
    numbers = since.dt.total_seconds() if pd.api.types.is_timedelta64_dtype(since) else since
    return np.asarray(numbers, dtype=np.float64)


def _word(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _dates(series: pd.Series[Any]) -> pd.Series[Any]:
    if pd.api.types.is_datetime64_any_dtype(series):
        return series
    dates = pd.to_datetime(series, errors="coerce", utc=True, format="ISO8601")
    if dates.isna().any():
        dates = pd.to_datetime(series, errors="coerce", utc=True, format="mixed")
    return dates


def _read_csv(path: Path, text: Sequence[str]) -> pd.DataFrame:
    frame = _csv(path, low_memory=False)
    present = [column for column in dict.fromkeys(text) if column in frame.columns]
    if present:
        words = _csv(path, usecols=present, dtype=str, keep_default_na=False)
        for column in present:
            plain = words[column].str.strip()
            frame[column] = plain.mask(plain.str.lower().isin(["", "nan"]))
    return frame


def _csv(path: Path, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        # pandas only warns when rows have more fields than the header, and drops what is over.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame: pd.DataFrame = pd.read_csv(
            path, index_col=False, encoding="utf-8-sig", skipinitialspace=True, compression="infer", **options
        )
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    path.stat()
    try:
        frame: pd.DataFrame = pd.read_parquet(path, engine="pyarrow")
    except ImportError:
        advice = 'Install it with: pip install "transpl[parquet]"'
        raise unreadable(path, problem="reading parquet needs pyarrow", advice=advice) from None
    return frame.reset_index(drop=not any(frame.index.names))  # an index with a name is a column: often the time
