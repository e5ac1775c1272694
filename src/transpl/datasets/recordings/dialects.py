"""How a text file of numbers is written: its encoding, where its header is, the separator and the decimal sign."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections import Counter
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
_COMMENT = ("#", "%", "//")
_EMPTY = ("", "na", "n/a", "nan", "null", "none", "<na>")  # what programs write where a value is missing
_BEGINS_WITH_NUMBER = re.compile(r"\s*\"?[-+]?[.,]?\d")
_QUOTED = re.compile(r'"[^"]*"')
_WITH_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
_WITH_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")


class Dialect(NamedTuple):
    """A separator, a decimal sign and an encoding as pandas takes them, and the lines above the header and of units."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8-sig"
    skiprows: tuple[int, ...] = ()

    def words(self, line: str) -> list[str]:
        """Split a line into its fields."""
        if self.sep == r"\s+":
            return line.split()
        return [field.strip() for field in next(csv.reader([line], delimiter=self.sep, skipinitialspace=True), [])]


_ANY_DECIMAL = Dialect(decimal=",")


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
        filled = ((number, line.rstrip("\r\n")) for number, line in enumerate(stream) if line.strip())
        some = dict(islice(filled, _LINES))
    numbers, lines = list(some), list(some.values())
    if not lines:
        raise unreadable_file(path, problem="the file is empty", advice="Write a header and one row per time step.")
    sep, header = _find_table(lines, sep)
    _refuse_more_names(path, [_split(line, sep) for line in lines[header:]])
    plain = Dialect(sep, decimal or _find_decimal(lines[header + 1 :], Dialect(sep)), encoding)
    units = numbers[header + 1 : header + 2] if _has_units(lines[header + 1 : header + 3], plain) else ()
    return plain._replace(skiprows=(*range(numbers[header]), *units))


def read_header(path: Path, dialect: Dialect) -> list[str]:
    """Return the words of the header; pandas takes a minute for 100,000 of them."""
    with third_party(path, "not readable as .csv", WRITE_AGAIN), _open(path, dialect.encoding) as stream:
        lines = (line for number, line in enumerate(stream) if number not in dialect.skiprows)
        if dialect.sep == r"\s+":
            return next(line for line in lines if line.strip()).split()
        rows = csv.reader(lines, delimiter=dialect.sep, skipinitialspace=True)
        return [name.strip() for name in next(row for row in rows if "".join(row).strip() or len(row) > 1)]


def is_number(word: str, dialect: Dialect) -> bool:
    """Whether a field is a number as the file writes them."""
    try:
        float(word.replace(",", ".") if dialect.decimal == "," else word)
    except ValueError:
        return False
    return True


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


def _find_table(lines: list[str], wanted: str | None) -> tuple[str, int]:
    """Return the separator, and which line is the header.

    That is the first line with as many fields as most lines, most of them filled and, unless it is the first line, none
    a number. The sign with the earliest header separates the columns; of equal ones that with most fields; blanks only
    if there is no other.
    """
    above = _count_comments(lines)
    lines = lines[above:]
    found = []
    for sep in (",", ";", "\t", "|") if wanted is None else (wanted,):
        fields = [_split(line, sep) for line in lines]
        (usual, often), *_ = Counter(map(len, fields)).most_common()
        ends = all(not words[-1] for words in fields if len(words) == usual)
        widths = (usual, usual - 1) if ends else (usual,)  # rows may end with the sign where the names do not
        header = next((i for i, words in enumerate(fields) if len(words) in widths and _mostly_filled(words)), 0)
        has_names = not any(is_number(word, _ANY_DECIMAL) for word in fields[header])
        if usual > 1 and 2 * often > len(lines) and (has_names or header == 0):
            found.append((not has_names, header, -usual, sep))
    if found:
        *_, header, _, sep = min(found)
        return sep, above + header
    blanks = {len(line.split()) for line in lines}
    is_blanks = wanted is None and len(lines) > 1 and len(blanks) == 1 and blanks != {1}
    return wanted or (r"\s+" if is_blanks else ","), above


def _count_comments(lines: list[str]) -> int:
    """Count the comments above the header; the last one is the header itself if a row of numbers follows."""
    comments = next((i for i, line in enumerate(lines) if not line.lstrip().startswith(_COMMENT)), 0)
    return comments - 1 if comments and _BEGINS_WITH_NUMBER.match(lines[comments]) else comments


def _refuse_more_names(path: Path, fields: list[list[str]]) -> None:
    """Raise if the header has more names than most rows have fields: which column a field is of is not known then."""
    header, *rows = fields
    names = max((i for i, name in enumerate(header, start=1) if name), default=0)
    ((usual, _),) = Counter(map(len, rows)).most_common(1) or [(names, 0)]
    if names > usual:
        problem = f"its header has {names} names, but most rows have {usual} fields"
        raise unreadable_file(path, problem=problem, advice="Let the header name the columns, and nothing else.")


def _mostly_filled(words: list[str]) -> bool:
    return 2 * sum(map(bool, words)) > len(words)


def _split(line: str, sep: str) -> list[str]:
    """Split a line into its fields, as if no separator were in quotes."""
    line = _QUOTED.sub(lambda quoted: quoted[0].strip('"').replace(sep, "."), line)
    return line.split() if sep == r"\s+" else [field.strip() for field in line.split(sep)]


def _has_units(rows: list[str], dialect: Dialect) -> bool:
    """Whether the first of two rows has words where the second one has numbers: the units."""
    if len(rows) < 2:
        return False
    units, values = map(dialect.words, rows)
    above = [word for word, value in zip(units, values, strict=False) if is_number(value, dialect)]
    filled = [word for word in above if word.lower() not in _EMPTY]
    return 2 * len(filled) > len(above) and not any(is_number(word, dialect) for word in units)


def _find_decimal(rows: list[str], dialect: Dialect) -> str:
    words = [word for line in rows for word in dialect.words(line[:_BYTES])]
    commas = sum(_WITH_COMMA.fullmatch(word) is not None for word in words)
    return "," if commas > sum(_WITH_POINT.fullmatch(word) is not None for word in words) else "."
