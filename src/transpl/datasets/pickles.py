"""Reading arrays that other projects have pickled, without running anything in the file.

A pickle is a program: it may name any function and call it. `numpy.load(allow_pickle=True)` runs it, and no library
reads pickled numpy arrays safely: even the functions that numpy itself names to rebuild an array trust what they are
given, and a forged dtype makes them follow any number as a pointer. So the unpickler below admits only those names,
puts checked functions of this module in their place, and refuses the file at any other name.

Files of `torch.save` are read by `torch.load(weights_only=True)`, with the same functions for the numpy arrays in them.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid, unreadable_file
from transpl._utils.files import read_npy_header, third_party
from transpl._utils.locks import process_state
from transpl.datasets.recipe import import_extra

_DTYPE = re.compile(r"[biufUSO]\d{0,9}")
_MAX_MEMO = 1 << 20  # the unpickler makes room for the highest number of an object at once
_EXPORT_AGAIN = "Export it again."


def read_pickle(path: Path) -> Any:
    """Return the object in a pickle of arrays, lists, dicts, text and numbers."""
    with _reading_pickle(path, _EXPORT_AGAIN):
        return _ArraysOnly(path.read_bytes()).load()


def read_pickled_npy(path: Path) -> Any:
    """Return the one object in an npy file written by `numpy.save(path, some_dict)`."""
    advice = "Install the package again."
    with _reading_pickle(path, advice), open(path, "rb") as stream:
        shape, dtype = read_npy_header(stream)
        array = _ArraysOnly(stream.read()).load() if shape == () and dtype.hasobject else None
    if not isinstance(array, np.ndarray) or array.shape != ():
        raise unreadable_file(path, problem="not an npy of one object", advice=advice)
    return array.item()


def read_torch(path: Path) -> Any:
    """Return the object in a file of `torch.save`, with arrays in place of tensors."""
    torch = import_extra("torch", f"reading {path.name}", "deep")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        advice = 'Install it with: pip install "torch>=2.6"'  # before, weights_only could run code (CVE-2025-32434)
        raise invalid("torch", expected="version 2.6 or newer", got=torch.__version__, advice=advice)
    with _reading_pickle(path, "Load it with torch and save it again with torch.save."):
        # torch does not compare checksums, so it gets a copy of what zipfile has checked.
        checked = io.BytesIO()
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(checked, "w") as copy:
            for entry in archive.infolist():
                if entry.compress_type != zipfile.ZIP_STORED:  # a small file stays small
                    raise ValueError(f"{entry.filename} is compressed, which torch never does")
                copy.writestr(entry.filename, archive.read(entry))
        checked.seek(0)
        admitted = torch.serialization.safe_globals([(f, name) for name, f in _ADMITTED.items()])
        with process_state, warnings.catch_warnings(), admitted:
            warnings.simplefilter("ignore")
            content = torch.load(checked, map_location="cpu", weights_only=True)
        return _with_arrays(content, torch.Tensor)


def _with_arrays(value: Any, tensor: Any) -> Any:
    """Replace a tensor, or those in a dict, by arrays."""
    if isinstance(value, dict):
        return {key: _with_arrays(entry, tensor) for key, entry in value.items()}
    if not isinstance(value, tensor):
        return value
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise ValueError("a tensor larger than its bytes")  # such as one entry, expanded
    return value.detach().numpy()


class _ArraysOnly(pickle.Unpickler):
    """An unpickler for numpy arrays and the plain types that need no name."""

    def __init__(self, content: bytes) -> None:
        for instruction, argument, _ in pickletools.genops(content):  # raises if one is cut off
            if instruction.name in ("PUT", "BINPUT", "LONG_BINPUT") and not 0 <= int(argument or 0) < _MAX_MEMO:
                raise pickle.UnpicklingError(f"an object with the number {argument}")
        super().__init__(io.BytesIO(content))

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[f"{module}.{name}"]
        except KeyError:
            raise pickle.UnpicklingError(f"the name {module}.{name}") from None


class _Function:
    """A function that a pickle may call but not alter."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("the state of a function")


class _Dtype:
    """In place of `numpy.dtype`: numbers, text or objects. The pickle gives the code, then the byte order."""

    __slots__ = ("real",)

    def __init__(self, code: str, align: bool = False, copy: bool = True) -> None:
        if not isinstance(code, str) or not _DTYPE.fullmatch(code):
            raise pickle.UnpicklingError(f"the dtype {code!r}")
        self.real: np.dtype[Any] = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, order, *structure = state[:5]
        if order not in ("<", ">", "|", "=") or any(part is not None for part in structure):
            raise pickle.UnpicklingError("a dtype of several fields")
        self.real = self.real.newbyteorder(order)


class _Array(np.ndarray):
    """In place of `numpy.ndarray`: it cannot be called, and it is filled only with content of the right size."""

    def __new__(cls, *arguments: Any) -> _Array:
        raise pickle.UnpicklingError("a call of numpy.ndarray")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, by_columns, content = state
        _check_content(shape, dtype, content)
        super().__setstate__((1, shape, dtype.real, bool(by_columns), content))  # type: ignore[arg-type]


def _reconstruct(cls: Any, shape: Any, code: Any) -> _Array:
    if cls is not _Array:
        raise pickle.UnpicklingError(f"an array of the class {cls!r}")
    return np.ndarray.__new__(_Array, 0)


def _frombuffer(content: Any, dtype: _Dtype, shape: tuple[int, ...], order: str) -> NDArray[Any]:
    content = bytes(memoryview(content))
    _check_content(shape, dtype, content)
    return np.frombuffer(content, dtype.real).reshape(shape, order="F" if order == "F" else "C")


def _check_content(shape: Any, dtype: Any, content: Any) -> None:
    """Raise unless `content` is what an array of this shape and dtype holds."""
    is_shape = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
    if not is_shape or not isinstance(dtype, _Dtype):
        raise pickle.UnpicklingError("an array without dtype or shape")
    of_objects = dtype.real.kind == "O"
    size = prod(shape) * (1 if of_objects else dtype.real.itemsize)
    if not isinstance(content, list if of_objects else bytes) or len(content) != size:
        raise pickle.UnpicklingError(f"{dtype.real} of shape {shape} with other content")


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":  # other codecs decompress or transform
        raise pickle.UnpicklingError(f"the encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED: dict[str, Any] = {
    "numpy.ndarray": _Array,
    "numpy.dtype": _Dtype,
    "_codecs.encode": _Function(_encode),
    # Old protocols call this for the content of an empty array.
    **{f"{module}.bytes": _Function(lambda: b"") for module in ("__builtin__", "builtins")},
    # numpy 2 has moved its modules
    **{f"numpy.{core}.multiarray._reconstruct": _Function(_reconstruct) for core in ("core", "_core")},
    **{f"numpy.{core}.numeric._frombuffer": _Function(_frombuffer) for core in ("core", "_core")},
}


@contextmanager
def _reading_pickle(path: Path, advice: str) -> Iterator[None]:
    """Turn whatever the reader of a pickle raises into one line about `path`."""
    with third_party(path, "damaged or of another kind", advice):
        try:
            yield
        except pickle.UnpicklingError as error:
            reason = " ".join(str(error).split())
            name = re.search(r"GLOBAL (\S+)", reason)  # torch's explanation is long
            reason = f"the name {name[1]}" if name else reason[:200]
            problem = f"its pickle holds more than arrays ({reason})"
            raise unreadable_file(path, problem=problem, advice=f"Nothing in it was run. {advice}") from None
