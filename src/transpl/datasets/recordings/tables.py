"""Reading tables, whatever their format, and taking checked columns out of them."""

from __future__ import annotations

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

from transpl._utils.errors import InputError, UnreadableFile, first_repeated, invalid, unreadable_file
from transpl._utils.files import third_party
from transpl._utils.locks import process_state
from transpl.datasets.recordings.array_files import ARRAYS, read_arrays_as_table
from transpl.datasets.recordings.dialects import WRITE_AGAIN, Dialect, find_dialect, is_number, read_header
from transpl.windows import MAX_VALUE

Text = NDArray[np.str_]

CSV = tuple(f"{suffix}{packed}" for suffix in (".csv", ".tsv", ".txt") for packed in ("", ".gz"))
COLUMNAR = (".parquet", ".pq", ".feather", ".arrow")  # what a column holds is known
TABLES = (*CSV, *COLUMNAR, *ARRAYS)
_CHUNK_ROWS = 200_000
NAME_CHANNELS = "Name the channels that all files have (--channels)."
_ADVICE = "Check the columns of your file."
_COMMA_NUMBER = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"
_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0*")  # with decimals that are all zero
_MISSING = (  # what pandas reads as a missing number
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)


def read_table(
    path: str | os.PathLike[str],
    *,
    text: Sequence[str] = (),
    exact: bool = False,
    sep: str | None = None,
    decimal: str | None = None,
) -> pd.DataFrame:
    """Read a table: text (csv, also packed), parquet, feather, or the equally long arrays of MATLAB, HDF5 or NetCDF.

    text : columns of a csv to read as text ("01" stays "01", "None" is a word); only an empty field and "nan" are
        missing there
    exact : read exactly the float64 that was written; otherwise the last bit of a csv's numbers may differ, which is
        faster
    sep, decimal : of a csv; by default what its first lines look like
    """
    path = Path(path)
    suffix = has_suffix(path, TABLES)
    if suffix is None:
        raise unknown_format(path, TABLES)
    if suffix in CSV:
        return _read_csv(path, find_dialect(path, sep, decimal), text, exact)
    frame = _read_columnar(path) if suffix in COLUMNAR else read_arrays_as_table(path)
    refuse_repeated(path, frame.columns)
    return frame


def unknown_format(path: Path, known: Sequence[str]) -> InputError:
    """Return the error for a file whose name ends in something else."""
    advice = "Convert the file or rename it."
    if path.suffix.lower() in (".xls", ".xlsx", ".ods", ".numbers"):
        advice = "Save the sheet as csv."
    elif path.suffix == ".npy":
        advice = "transpl label labels windows in a .npy file."
    return invalid("path", expected=f"a file ending in {', '.join(known)}", got=path.name, advice=advice)


def read_csv_head(path: Path, rows: int, dialect: Dialect) -> pd.DataFrame:
    """Read the first rows of a csv, to see its columns and their types."""
    _check_header(path, dialect)
    return _read_frame(path, dialect, low_memory=False, nrows=rows)


def read_csv_chunks(
    path: Path, rows: int, dialect: Dialect, kinds: Mapping[str, type], signals: Sequence[str] = ()
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
    with _csv_reader(path, dialect, chunksize=rows, low_memory=False, **options) as reader:
        while (chunk := _next_chunk(reader, path, dialect, kinds)) is not None:
            chunk = _with_points(chunk, dialect, keep=kinds)
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


def _word(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    word = str(value).strip()
    if len(word) == 3 and word.lower() == "nan":
        return ""
    whole = _WHOLE_NUMBER.fullmatch(word) if "." in word else None
    return whole[1] if whole else word


def refuse_repeated(path: Path, names: Iterable[str]) -> None:
    """Raise if two columns have the same name."""
    if (twice := first_repeated(names)) is not None:
        problem = f"two columns are called {twice!r}"
        raise unreadable_file(path, problem=problem, advice="Rename or remove one of them.")


def _read_csv(path: Path, dialect: Dialect, text: Sequence[str], exact: bool) -> pd.DataFrame:
    _check_header(path, dialect)
    frame = _read_frame(path, dialect, low_memory=False, float_precision="round_trip" if exact else None)
    present = [column for column in dict.fromkeys(text) if column in frame.columns]
    if present:
        words = _read_frame(path, dialect, usecols=present, dtype=str, keep_default_na=False)
        for column in present:
            plain = words[column].str.strip()
            frame[column] = plain.mask(plain.str.lower().isin(["", "nan"]))
    return _with_points(frame, dialect, keep=present)


def _check_header(path: Path, dialect: Dialect) -> None:
    """Raise if two columns have the same name, which pandas would rename, or if there are no names."""
    names = [name for name in read_header(path, dialect) if name]
    numbers = [name for name in names if is_number(name, dialect)]
    if 2 * len(numbers) > len(names) and not all(name.isdecimal() for name in numbers):  # columns may be counted
        problem = f"its first line has numbers, not names ({', '.join(names[:3])})"
        raise unreadable_file(path, problem=problem, advice="Let the first line name all columns.")
    refuse_repeated(path, names)


def _with_points(frame: pd.DataFrame, dialect: Dialect, keep: Iterable[str]) -> pd.DataFrame:
    """Write the numbers of columns that also hold words with a point, as pandas leaves such columns alone."""
    if dialect.decimal == ",":
        words = [name for name, kind in frame.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
        for column in set(words) - set(keep):
            frame[column] = frame[column].replace(_COMMA_NUMBER, r"\1.\2", regex=True)
    return frame


def _next_chunk(reader: Any, path: Path, dialect: Dialect, kinds: Mapping[str, type]) -> pd.DataFrame | None:
    try:
        with _reading(path):
            return next(reader, None)
    except UnreadableFile:
        _refuse_words(path, dialect, kinds)  # names the cell, if that is the reason
        raise


def _refuse_words(path: Path, dialect: Dialect, kinds: Mapping[str, type]) -> None:
    """Raise for the first cell that is not of its column's type."""
    columns = [column for column, kind in kinds.items() if kind is not str]
    if not columns:
        return
    options: dict[str, Any] = {"usecols": columns, "dtype": str, "keep_default_na": False, "chunksize": _CHUNK_ROWS}
    with _csv_reader(path, dialect, **options) as reader:
        while (chunk := _next_chunk(reader, path, dialect, {})) is not None:
            chunk = _with_points(chunk, dialect, keep=())
            for column in columns:
                cells = chunk[column]
                numbers = pd.to_numeric(cells, errors="coerce")
                expected, bad = "numbers", numbers.isna() & ~cells.str.strip().isin(_MISSING)
                if kinds[column] is int:
                    expected, bad = "whole numbers as in its first rows", numbers.isna() | (numbers % 1 != 0)
                if bad.any():
                    where, got = f"{column!r} of {path.name}", f"{cells[bad].iloc[0]!r} in row {cells.index[bad][0]}"
                    raise invalid(where, expected=expected, got=got, advice="Clean it or leave it out.")


def _read_frame(path: Path, dialect: Dialect, **options: Any) -> pd.DataFrame:
    with _reading(path):
        frame: pd.DataFrame = pd.read_csv(path, **_csv_options(dialect), **options)
    return frame


@contextmanager
def _csv_reader(path: Path, dialect: Dialect, **options: Any) -> Iterator[Any]:
    with _reading(path):
        reader = pd.read_csv(path, **_csv_options(dialect), **options)
    with reader:
        yield reader


def _csv_options(dialect: Dialect) -> dict[str, Any]:
    return {**dialect._asdict(), "index_col": False, "skipinitialspace": True, "compression": "infer"}


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn an error of reading a csv into one line that names the file; wrap it around pandas alone."""
    with third_party(path, "not readable as .csv", WRITE_AGAIN), process_state, warnings.catch_warnings():
        # pandas only warns when rows have more fields than the header, and drops the rest.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            yield
        except pd.errors.ParserWarning:
            problem = "not readable as .csv (rows have more fields than the first line)"
            raise unreadable_file(path, problem=problem, advice="Let the first line name all columns.") from None


def _read_columnar(path: Path) -> pd.DataFrame:
    kind = "parquet" if has_suffix(path, (".parquet", ".pq")) else "feather"
    try:
        with third_party(path, f"not readable as {path.suffix}", WRITE_AGAIN):
            frame = pd.read_parquet(path, engine="pyarrow") if kind == "parquet" else _read_feather(path)
            frame = frame.reset_index(drop=not any(frame.index.names))  # a named index is a column, often the time
            frame.columns = frame.columns.map(str)
    except ImportError:
        advice = 'Install it with: pip install "transpl[parquet]"'
        raise unreadable_file(path, problem=f"reading {kind} needs pyarrow", advice=advice) from None
    return frame


def _read_feather(path: Path) -> pd.DataFrame:
    from pyarrow import feather

    table = feather.read_table(path)
    table.validate(full=True)  # else pyarrow follows damaged offsets through memory
    frame: pd.DataFrame = table.to_pandas()
    return frame
