"""Reading pickled arrays without letting the pickle run anything.

A pickle is a program: it may name any function and call it. The reader here admits only the names that numpy itself
writes to rebuild arrays, and refuses the file at the first other name. Behind those names stand functions of this
file: numpy's own believe what they are told, and a forged dtype makes them follow any number as a pointer.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import InputError, unreadable_file

_PLAIN_DTYPE = re.compile(r"[biufUSO]\d{0,9}")
_NUMBERING = ("PUT", "BINPUT", "LONG_BINPUT")
_MOST_NUMBERED = 1 << 20  # the unpickler makes room for the highest number at once
_THE_CLASS = "numpy.ndarray"


class Admitted:
    """A function that a pickle may call and may not alter."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("the state of a function")


class _Dtype:
    """A dtype of numbers, text or objects; the pickle gives its code, then its byte order."""

    __slots__ = ("real",)

    def __init__(self, code: str, align: bool = False, copy: bool = True) -> None:
        if not isinstance(code, str) or not _PLAIN_DTYPE.fullmatch(code):
            raise pickle.UnpicklingError(f"the dtype {code!r}")
        self.real: np.dtype[Any] = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, order, *structure = state[:5]
        if order not in ("<", ">", "|", "=") or any(part is not None for part in structure):
            raise pickle.UnpicklingError("a dtype of several fields")
        self.real = self.real.newbyteorder(order)


class _Array(np.ndarray):
    """An array that the pickle names first and fills afterwards."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:  # type: ignore[override]
        _, shape, dtype, by_columns, content = state
        _check_content(shape, dtype, content)
        super().__setstate__((1, shape, dtype.real, bool(by_columns), content))  # type: ignore[arg-type]


def _empty_array(cls: str, shape: Any, code: Any) -> _Array:
    if cls != _THE_CLASS:
        raise pickle.UnpicklingError(f"an array of the class {cls!r}")
    return _Array(0)


def _array_from_buffer(content: Any, dtype: _Dtype, shape: tuple[int, ...], order: str) -> NDArray[Any]:
    """Stand in for the function that protocol 5 names."""
    content = bytes(memoryview(content))
    _check_content(shape, dtype, content)
    return np.frombuffer(content, dtype.real).reshape(shape, order="F" if order == "F" else "C")


def _check_content(shape: Any, dtype: Any, content: Any) -> None:
    """Raise unless `content` is what an array of this shape holds."""
    if not isinstance(dtype, _Dtype) or not is_shape(shape):
        raise pickle.UnpicklingError("an array without dtype or shape")
    of_objects = dtype.real.kind == "O"
    each = 1 if of_objects else dtype.real.itemsize
    if not isinstance(content, list if of_objects else bytes) or len(content) != prod(shape) * each:
        raise pickle.UnpicklingError(f"{dtype.real} of shape {shape} with other content")


def is_shape(value: Any) -> bool:
    """Say whether `value` is a tuple of whole numbers, 0 or more."""
    return isinstance(value, tuple) and all(type(size) is int and size >= 0 for size in value)


def _encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """Stand in for `codecs.encode`, which could also reach codecs that decompress or transform."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the encoding {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Stand in for `bytes`, which old protocols call for the content of an empty array."""
    return b""


ARRAYS: Mapping[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _THE_CLASS,
    ("numpy", "dtype"): Admitted(_Dtype),
    ("_codecs", "encode"): Admitted(_encode_latin1),
    ("__builtin__", "bytes"): Admitted(_no_bytes),
    # numpy 2 has moved its modules
    **{(f"numpy.{core}.multiarray", "_reconstruct"): Admitted(_empty_array) for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): Admitted(_array_from_buffer) for core in ("core", "_core")},
}


class ArraysOnly(pickle.Unpickler):
    """An unpickler for numpy arrays and the plain types (list, dict, text, numbers) that need no name."""

    admitted: ClassVar[Mapping[tuple[str, str], Any]] = ARRAYS

    def __init__(self, content: bytes) -> None:
        _check_instructions(content)
        super().__init__(io.BytesIO(content))

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.admitted[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"the name {module}.{name}") from None


def read_pickle(path: Path) -> Any:
    """Return the object in a pickle of arrays."""
    with running_nothing(path, "Write it anew."):
        return ArraysOnly(path.read_bytes()).load()


def read_pickled_npy(path: Path) -> Any:
    """Return the one object in an npy file written by `numpy.save(path, some_dict)`."""
    advice = "Install the package again."
    with running_nothing(path, advice), open(path, "rb") as stream:
        _skip_header(stream)
        array = ArraysOnly(stream.read()).load()
    if not isinstance(array, np.ndarray) or array.shape != ():
        raise unreadable_file(path, problem="not an npy of one object", advice=advice)
    return array.item()


@contextmanager
def running_nothing(path: Path, advice: str) -> Iterator[None]:
    """Turn whatever a pickle's reader raises into one line about `path`."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise unreadable_file(path, problem="no such file", advice="Check the path.") from None
    except pickle.UnpicklingError as error:
        problem = f"its pickle holds more than arrays, or is damaged ({' '.join(str(error).split())[:200]})"
        raise unreadable_file(path, problem=problem, advice=f"Nothing in it was run. {advice}") from None
    except Exception as error:  # a damaged pickle may raise anything at all
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise unreadable_file(path, problem=f"damaged or of another kind ({reason})", advice=advice) from None


def _check_instructions(content: bytes) -> None:
    """Raise if an instruction is cut off or would have the unpickler make room for more than the file holds."""
    for instruction, argument, _ in pickletools.genops(content):
        if instruction.name in _NUMBERING and not 0 <= int(argument or 0) < _MOST_NUMBERED:
            raise pickle.UnpicklingError(f"an object with the number {argument}")


def _skip_header(stream: BinaryIO) -> None:
    """Move to the first byte of the pickle."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if shape != () or not dtype.hasobject:
        raise ValueError(f"{dtype} of shape {shape}")
