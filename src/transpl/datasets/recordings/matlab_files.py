"""MATLAB's files of version 5 to 7 (.mat): numbers and texts, out of structs and cells.

A file is a header and elements: type, number of bytes, content, padded to 8 bytes. An array is an element of elements:
flags, shape, name, values. scipy's reader follows wrong sizes out of its memory and ends the process; this one slices.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_HEADER = 128  # bytes
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_UTF8 = 16
_TEXTS = {_UTF8: "utf-8", 17: "utf-16", 18: "utf-32"}
_ARRAY, _PACKED = 14, 15
_CELL, _STRUCT, _TEXT = 1, 2, 4
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_DEEPEST = 20  # arrays in arrays
_MOST_UNPACKED = 1100  # bytes that a packed byte may become; zlib's limit


def read_matlab(path: Path) -> Arrays:
    """Return the arrays of numbers and texts by name, "struct/field" in a struct, "name/1", "name/2" in several.

    A cell of texts is one array; complex numbers, sparse arrays, functions and objects are left out.
    """
    content = path.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(content[126:_HEADER])
    if order is None:
        raise ValueError("not of version 5 to 7.2; save it with -v7")
    found: Arrays = {}
    for kind, part in _elements(content[_HEADER:], order):
        if kind == _PACKED:
            unpacked = zlib.decompressobj().decompress(part, _MOST_UNPACKED * len(part))
            kind, part = next(_elements(unpacked, order), (0, b""))
        if kind == _ARRAY:
            name, value = _array(part, order, 0)
            found |= _flatten(name, value)
    return found


class _Several(NamedTuple):
    """The values of a cell."""

    values: list[Any]


def _flatten(name: str, value: Any) -> Arrays:
    """Name the arrays inside a value: of a struct by its fields, of several values by their number."""
    if isinstance(value, dict):
        return {key: array for field, each in value.items() for key, array in _flatten(f"{name}/{field}", each).items()}
    if isinstance(value, _Several):
        if value.values and all(isinstance(each, np.ndarray) and each.dtype.kind == "U" for each in value.values):
            return {name: np.array([" ".join(each.tolist()) for each in value.values])}
        numbered = enumerate(value.values, start=1)
        return {key: array for i, each in numbered for key, array in _flatten(f"{name}/{i}", each).items()}
    return {} if value is None else {name: value}


def _array(content: bytes, order: str, depth: int) -> tuple[str, Any]:
    """Read an array: its name, and its numbers or text, a dict, `_Several` values, or None for what is left out."""
    if depth > _DEEPEST:
        raise ValueError(f"arrays in arrays, {depth} deep")
    parts = _elements(content, order)
    try:
        flags = int(_numbers(next(parts), order)[0])
        shape = tuple(_numbers(next(parts), order).tolist())
        name = next(parts)[1].decode("latin-1")
        kind, is_complex = flags & 0xFF, bool(flags & 0x800)
        if kind == _CELL:
            return name, _Several([_array(part, order, depth + 1)[1] for _, part in parts])
        if kind == _STRUCT:
            return name, _struct(parts, order, depth)
        if kind == _TEXT:
            return name, _text(next(parts), shape, order)
        if kind in _CLASSES and not is_complex:
            values = _numbers(next(parts), order).astype(_CLASSES[kind])
            return name, values.reshape(shape, order="F")
    except (StopIteration, IndexError):
        raise ValueError("an array without its parts") from None
    return name, None


def _struct(parts: Iterator[tuple[int, bytes]], order: str, depth: int) -> Any:
    """Read a struct, or several of the same fields."""
    length = int(_numbers(next(parts), order)[0])
    letters = next(parts)[1]
    if length < 1:
        raise ValueError("fields without names")
    fields = [letters[at : at + length].split(b"\0")[0].decode("latin-1") for at in range(0, len(letters), length)]
    values = [_array(part, order, depth + 1)[1] for _, part in parts]
    if not fields or len(values) % len(fields):
        raise ValueError(f"{len(values)} values for {len(fields)} fields")
    structs = [dict(zip(fields, values[at:], strict=False)) for at in range(0, len(values), len(fields))]
    return structs[0] if len(structs) == 1 else _Several(structs)


def _text(part: tuple[int, bytes], shape: tuple[int, ...], order: str) -> NDArray[np.str_]:
    """Read rows of letters as words."""
    kind, content = part
    if kind in _TEXTS:
        encoding = _TEXTS[kind] + ("" if kind == _UTF8 else {"<": "-le", ">": "-be"}[order])
        letters = np.array(list(content.decode(encoding)))
    else:
        letters = np.array([chr(code) for code in _numbers(part, order).tolist()])
    if letters.size == 0:
        return np.array([""])
    return np.array(["".join(row).rstrip() for row in letters.reshape(shape, order="F").reshape(shape[0], -1)])


def _numbers(part: tuple[int, bytes], order: str) -> NDArray[Any]:
    kind, content = part
    if kind not in _NUMBERS:
        raise ValueError(f"values of type {kind}")
    return np.frombuffer(content, np.dtype(order + _NUMBERS[kind]))


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of each element."""
    at = 0
    while at + 8 <= len(content):
        kind, size = np.frombuffer(content, order + "u4", 2, at).tolist()
        if kind >> 16:  # a short one: size, type and content in 8 bytes
            kind, size, begin, following = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            begin = at + 8
            following = begin + size + (0 if kind == _PACKED else -size % 8)
        if begin + size > len(content) or (following == at + 8 and size > 4 and begin == at + 4):
            raise ValueError(f"an element of {size} bytes, which are not there")
        yield kind, content[begin : begin + size]
        at = following
