"""Reading tables (csv, parquet) and taking checked columns out of them."""

from __future__ import annotations

import csv
import gzip
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile, first_repeated, invalid, unreadable_file
from transpl._utils.files import third_party
from transpl._utils.locks import process_state
from transpl.windows import MAX_VALUE

Text = NDArray[np.str_]

CSV = (".csv", ".csv.gz")
PARQUET = (".parquet", ".pq")
_CHUNK_ROWS = 200_000
_ADVICE = "Check the columns of your file."
_WRITE_AGAIN = "Check that it opens elsewhere, or write it again."
_ENCODING = "utf-8-sig"
_CSV_OPTIONS: dict[str, Any] = {  # the same for every read_csv
    "index_col": False,
    "encoding": _ENCODING,
    "skipinitialspace": True,
    "compression": "infer",
}
_OTHER_SEPARATORS = (";", "\t", "|")
_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0*")  # with decimals that are all zero
_MISSING = (  # what pandas reads as a missing number
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)


def read_table(path: str | os.PathLike[str], *, text: Sequence[str] = (), exact: bool = False) -> pd.DataFrame:
    """Read a csv (also .csv.gz) or parquet file.

    text : columns of a csv to read as text ("01" stays "01", "None" is a word); only an empty field and "nan" are
        missing there
    exact : read exactly the float64 that was written; otherwise the last bit of a csv's numbers may differ, which is
        faster
    """
    path = Path(path)
    suffix = has_suffix(path, CSV + PARQUET)
    if suffix is None:
        expected = f"a file ending in {', '.join(CSV + PARQUET)}"
        raise invalid("path", expected=expected, got=path.name, advice="Convert the file or rename it.")
    return _read_parquet(path) if suffix in PARQUET else _read_csv(path, text, exact)


def read_csv_head(path: Path, rows: int) -> pd.DataFrame:
    """Read the first rows of a csv, to see its columns and their types."""
    _check_header(path)
    return _read_frame(path, low_memory=False, nrows=rows)


def read_csv_chunks(
    path: Path, rows: int, kinds: Mapping[str, type], signals: Sequence[str] = ()
) -> Iterator[pd.DataFrame]:
    """Read a csv in chunks of `rows` rows; the index counts the rows of the file.

    kinds : types of columns, so that they do not depend on a chunk. A cell that is not of this type is an error that
        names its row
    signals : columns of numbers that may hold a few words: numeric in chunks without words, text in others
    """
    # Other columns are read too: with `usecols` pandas would accept rows with too many fields.
    missing = {column: [] if kind is str else list(_MISSING) for column, kind in kinds.items()}
    missing |= {column: list(_MISSING) for column in signals}
    options: dict[str, Any] = {"dtype": dict(kinds), "keep_default_na": False, "na_values": missing}
    with _csv_reader(path, chunksize=rows, low_memory=False, **options) as reader:
        while (chunk := _next_chunk(reader, path, kinds)) is not None:
            types = chunk.dtypes.to_dict()
            words = {column: str for column in signals if pd.api.types.is_bool_dtype(types[column])}
            yield chunk.astype(words) if words else chunk  # "True" is a word in every chunk


def has_suffix(path: Path, suffixes: Sequence[str]) -> str | None:
    """Return the one of `suffixes` that the file's name ends in, in upper or lower case."""
    return next((suffix for suffix in suffixes if path.name.lower().endswith(suffix)), None)


def require_columns(frame: pd.DataFrame, path: Path, advice: str = _ADVICE, **columns: str | None) -> None:
    """Raise unless every argument is None or the name of a column."""
    for argument, column in columns.items():
        if column is not None and column not in frame.columns:
            expected = f"a column of {path.name} ({', '.join(map(repr, frame.columns))})"
            raise invalid(argument, expected=expected, got=repr(column), advice=advice)


def refuse_huge(values: NDArray[np.float64], names: Sequence[str], index: pd.Index[Any], path: Path) -> None:
    """Raise if values (rows, channels) hold infinity or a fill value; `index` has the number of each row."""
    bad = np.argwhere(np.abs(values) > MAX_VALUE)
    if len(bad):
        row, c = bad[0]
        raise invalid(
            f"channel {names[c]!r} of {path.name}",
            expected=f"finite numbers of at most {MAX_VALUE:g}",
            got=f"{values[row, c]} in row {index[row]}",
            advice="Empty the cell if it is a fill value, or rescale.",
        )


def as_text(values: Any) -> NDArray[np.str_]:
    """Return a column or array as text, so that a name is the same text in every file.

    A missing entry and "nan" are "". A whole number has no decimals, whether it is a float or the text "1.0": most
    programs turn integers into floats where one is missing.
    """
    series = pd.Series(values).astype(object)
    words = series.where(series.notna(), "").map(_word)
    return np.asarray(words, dtype=str)


def require_filled(empty: NDArray[np.bool_], column: str, index: pd.Index[Any], path: Path) -> None:
    """Raise if a column has empty cells; `index` has the number of each row."""
    if empty.any():
        got = f"an empty one in row {index[int(np.flatnonzero(empty)[0])]}"
        raise invalid(
            f"{column!r} of {path.name}", expected="an entry in every row", got=got, advice="Fill or remove it."
        )


def seconds_column(frame: pd.DataFrame, column: str, path: Path) -> NDArray[np.float64]:
    """Return a time column as numbers from its earliest entry: in its own unit if numeric, in seconds if dates."""
    times = time_column(frame, column, path)
    return seconds_since(times, times.min())


def time_column(frame: pd.DataFrame, column: str, path: Path) -> pd.Series[Any]:
    """Return a time column as numbers, durations or dates; raise if a row has none."""
    series = frame[column]
    is_number = pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series)
    if not is_number and not pd.api.types.is_timedelta64_dtype(series):
        series = _dates(series)
    missing = series.isna() | series.isin([np.inf, -np.inf])
    if missing.any():
        words = missing & pd.to_numeric(frame[column].map(str, na_action="ignore"), errors="coerce").isna()
        missing = words if words.any() else missing  # in a column of numbers, point at the word
        first = int(np.flatnonzero(missing)[0])
        is_empty = bool(frame[column].isna().iloc[first])
        got = "an empty cell" if is_empty else repr(str(frame[column].iloc[first]))
        got = f"{got} in row {frame.index[first]}"
        advice = "Fill or remove such rows, or leave time_col out."
        raise invalid(
            f"time_col {column!r} of {path.name}", expected="a number or date in every row", got=got, advice=advice
        )
    return series


def seconds_since(times: pd.Series[Any], origin: Any) -> NDArray[np.float64]:
    """Return times as numbers from `origin` on; subtracted first, because nanosecond clocks do not fit float64."""
    since: Any = times - origin
    numbers = since.dt.total_seconds() if pd.api.types.is_timedelta64_dtype(since) else since
    return np.asarray(numbers, dtype=np.float64)


def _word(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    word = str(value).strip()
    if len(word) == 3 and word.lower() == "nan":
        return ""
    whole = _WHOLE_NUMBER.fullmatch(word) if "." in word else None
    return whole[1] if whole else word


def _dates(series: pd.Series[Any]) -> pd.Series[Any]:
    if pd.api.types.is_datetime64_any_dtype(series):
        return series
    dates = pd.to_datetime(series, errors="coerce", utc=True, format="ISO8601")
    if dates.isna().any():
        dates = pd.to_datetime(series, errors="coerce", utc=True, format="mixed")
    return dates


def _read_csv(path: Path, text: Sequence[str], exact: bool) -> pd.DataFrame:
    _check_header(path)
    frame = _read_frame(path, low_memory=False, float_precision="round_trip" if exact else None)
    present = [column for column in dict.fromkeys(text) if column in frame.columns]
    if present:
        words = _read_frame(path, usecols=present, dtype=str, keep_default_na=False)
        for column in present:
            plain = words[column].str.strip()
            frame[column] = plain.mask(plain.str.lower().isin(["", "nan"]))
    return frame


def _check_header(path: Path) -> None:
    """Raise if columns are not separated by commas, or if two have the same name, which pandas would rename."""
    names = _header(path)
    other = next((sign for sign in _OTHER_SEPARATORS if len(names) == 1 and sign in names[0]), None)
    if other is not None:
        advice = "Separate them by commas, and write decimals with a point."
        raise unreadable_file(path, problem=f"its columns are separated by {other!r}, not by commas", advice=advice)
    _refuse_repeated(path, [name for name in names if name])


def _header(path: Path) -> list[str]:
    """Return the words of the first line that is not blank; pandas takes a minute for 100,000 of them."""
    unpack = gzip.open if path.name.lower().endswith(".gz") else open
    with _reading(path), unpack(path, "rt", encoding=_ENCODING, newline="") as stream:
        lines: Iterator[list[str]] = csv.reader(stream, skipinitialspace=True)
        names = next((line for line in lines if "".join(line).strip() or len(line) > 1), None)
    if names is None:
        raise unreadable_file(path, problem="the file is empty", advice="Write a header and one row per time step.")
    return [name.strip() for name in names]


def _refuse_repeated(path: Path, names: Iterable[str]) -> None:
    if (twice := first_repeated(names)) is not None:
        problem = f"two columns are called {twice!r}"
        raise unreadable_file(path, problem=problem, advice="Rename or remove one of them.")


def _next_chunk(reader: Any, path: Path, kinds: Mapping[str, type]) -> pd.DataFrame | None:
    try:
        with _reading(path):
            return next(reader, None)
    except UnreadableFile:
        _refuse_words(path, kinds)  # names the cell, if that is the reason
        raise


def _refuse_words(path: Path, kinds: Mapping[str, type]) -> None:
    """Raise for the first cell that is not of its column's type."""
    columns = [column for column, kind in kinds.items() if kind is not str]
    if not columns:
        return
    with _csv_reader(path, usecols=columns, dtype=str, keep_default_na=False, chunksize=_CHUNK_ROWS) as reader:
        while (chunk := _next_chunk(reader, path, {})) is not None:
            for column in columns:
                cells = chunk[column]
                numbers = pd.to_numeric(cells, errors="coerce")
                expected, bad = "numbers", numbers.isna() & ~cells.str.strip().isin(_MISSING)
                if kinds[column] is int:
                    expected, bad = "whole numbers as in its first rows", numbers.isna() | (numbers % 1 != 0)
                if bad.any():
                    where, got = f"{column!r} of {path.name}", f"{cells[bad].iloc[0]!r} in row {cells.index[bad][0]}"
                    raise invalid(where, expected=expected, got=got, advice="Clean it or leave it out.")


def _read_frame(path: Path, **options: Any) -> pd.DataFrame:
    with _reading(path):
        frame: pd.DataFrame = pd.read_csv(path, **_CSV_OPTIONS, **options)
    return frame


@contextmanager
def _csv_reader(path: Path, **options: Any) -> Iterator[Any]:
    with _reading(path):
        reader = pd.read_csv(path, **_CSV_OPTIONS, **options)
    with reader:
        yield reader


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn an error of reading a csv into one line that names the file; wrap it around pandas alone."""
    with third_party(path, "not readable as .csv", _WRITE_AGAIN), process_state, warnings.catch_warnings():
        # pandas only warns when rows have more fields than the header, and drops the rest.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            yield
        except pd.errors.ParserWarning:
            problem = "not readable as .csv (rows have more fields than the first line)"
            raise unreadable_file(path, problem=problem, advice="Let the first line name all columns.") from None


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        with third_party(path, "not readable as .parquet", _WRITE_AGAIN):
            frame: pd.DataFrame = pd.read_parquet(path, engine="pyarrow")
            frame = frame.reset_index(drop=not any(frame.index.names))  # a named index is a column, often the time
            frame.columns = frame.columns.map(str)
    except ImportError:
        advice = 'Install it with: pip install "transpl[parquet]"'
        raise unreadable_file(path, problem="reading parquet needs pyarrow", advice=advice) from None
    _refuse_repeated(path, frame.columns)
    return frame
