"""How a text file of numbers is written: its encoding, what separates the columns, and the decimal sign."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from transpl._utils.errors import check_choice, invalid, unreadable_file
from transpl._utils.files import third_party

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", r"\s+": "blanks"}
DECIMALS = {".": "point", ",": "comma"}
WRITE_AGAIN = "Check that it opens elsewhere, or write it again."

_WORDS = {name: sign for signs in (SEPARATORS, DECIMALS) for sign, name in signs.items()} | {r"\t": "\t", " ": r"\s+"}
_LINES = 50  # decide
_BYTES = 1 << 16  # decide the encoding
_QUOTED = re.compile(r'"[^"]*"')
_WITH_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
_WITH_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")


class Dialect(NamedTuple):
    """A separator and a decimal sign as pandas takes them, and an encoding."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8-sig"

    def words(self, line: str) -> list[str]:
        """Split a line into its fields."""
        if self.sep == r"\s+":
            return line.split()
        return [field.strip() for field in next(csv.reader([line], delimiter=self.sep, skipinitialspace=True), [])]


def check_dialect(sep: str | None, decimal: str | None) -> tuple[str | None, str | None]:
    """Return the signs for names such as "semicolon"; raise for others."""
    sep, decimal = (None if sign is None else _WORDS.get(sign, sign) for sign in (sep, decimal))
    if sep is not None and sep not in SEPARATORS:
        expected = f"one of {', '.join(SEPARATORS.values())}"
        raise invalid("sep", expected=expected, got=repr(sep), advice="Name the sign between columns.")
    if decimal is not None:
        check_choice("decimal", decimal, tuple(DECIMALS))
    return sep, decimal


def find_dialect(path: Path, sep: str | None = None, decimal: str | None = None) -> Dialect:
    """Find out how a file is written from its first lines; what is given is not guessed."""
    sep, decimal = check_dialect(sep, decimal)
    encoding = _find_encoding(path)
    with third_party(path, "not readable as .csv", WRITE_AGAIN), _open(path, encoding) as stream:
        lines = [line.rstrip("\r\n") for line in islice(_filled(stream), _LINES)]
    if not lines:
        raise unreadable_file(path, problem="the file is empty", advice="Write a header and one row per time step.")
    sep = sep or _find_separator(lines)
    return Dialect(sep, decimal or _find_decimal(lines, Dialect(sep)), encoding)


def read_header(path: Path, dialect: Dialect) -> list[str]:
    """Return the words of the first line that is not blank; pandas takes a minute for 100,000 of them."""
    with third_party(path, "not readable as .csv", WRITE_AGAIN), _open(path, dialect.encoding) as stream:
        if dialect.sep == r"\s+":
            return next(_filled(stream)).split()
        rows = csv.reader(stream, delimiter=dialect.sep, skipinitialspace=True)
        return [name.strip() for name in next(row for row in rows if "".join(row).strip() or len(row) > 1)]


def is_number(word: str, dialect: Dialect) -> bool:
    """Whether a field is a number as the file writes them."""
    try:
        float(word.replace(",", ".") if dialect.decimal == "," else word)
    except ValueError:
        return False
    return True


def _filled(stream: IO[str]) -> Iterator[str]:
    return (line for line in stream if line.strip())


def _find_encoding(path: Path) -> str:
    """UTF-8 or UTF-16 by its mark; what is not UTF-8 is taken as Windows writes western texts."""
    with third_party(path, "not readable as .csv", WRITE_AGAIN), _open(path) as stream:
        start = stream.read(_BYTES)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # a character may be cut at the end
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _open(path: Path, encoding: str | None = None) -> IO[Any]:
    unpack: Any = gzip.open if path.name.lower().endswith(".gz") else open
    stream: IO[Any] = unpack(path, "rb") if encoding is None else unpack(path, "rt", encoding=encoding, newline="")
    return stream


def _find_separator(lines: list[str]) -> str:
    """Take the sign that splits the header into most fields, if most lines have as many; blanks come last."""
    best, fields = ",", 1
    for sep in (",", ";", "\t", "|"):
        counts = [1 + _QUOTED.sub("", line).count(sep) for line in lines]
        same = sum(count == counts[0] for count in counts)
        if counts[0] > fields and same > len(counts) / 2:
            best, fields = sep, counts[0]
    blanks = [len(line.split()) for line in lines]
    if fields == 1 and len(lines) > 1 and blanks[0] > 1 and len(set(blanks)) == 1:
        return r"\s+"
    return best


def _find_decimal(lines: list[str], dialect: Dialect) -> str:
    words = [word for line in lines[1:] for word in dialect.words(line[:_BYTES])]
    commas = sum(_WITH_COMMA.fullmatch(word) is not None for word in words)
    return "," if commas > sum(_WITH_POINT.fullmatch(word) is not None for word in words) else "."
