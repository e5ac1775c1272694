"""Reading what `torch.save` wrote, as numpy arrays, without torch and without letting the file run anything.

Such a file is a zip: `data.pkl` says which tensors there are, `data/<key>` holds their bytes. The pickle is read by
the unpickler of `transpl.datasets.pickled`, which knows here a few names more. `torch.load(weights_only=True)` is no
substitute: before torch 2.6 it can be made to run code (CVE-2025-32434), and for arrays in the file it calls numpy's
own functions, which believe a forged dtype. This room needs no torch, besides.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import unreadable_file
from transpl.datasets.pickled import ARRAYS, Admitted, ArraysOnly, is_shape, running_nothing

_DTYPES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}
_RESAVE = "Load it with torch and save it anew with torch.save."


def read_torch(path: Path) -> Any:
    """Return the object in a file of `torch.save`, with arrays in the place of tensors."""
    with running_nothing(path, _RESAVE), open(path, "rb") as stream:
        if stream.read(2) != b"PK":
            raise unreadable_file(path, problem="not a file of torch 1.6 or newer", advice=_RESAVE)
        with zipfile.ZipFile(stream) as archive:
            return _Tensors(archive).load()


def _rebuild_tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> NDArray[Any]:
    """Return a tensor's entries; a shape that does not lie within its bytes is refused."""
    sound = isinstance(storage, np.ndarray) and is_shape((offset,)) and is_shape(size) and is_shape(stride)
    if not sound or len(size) != len(stride) or prod(size) > len(storage):
        raise pickle.UnpicklingError("a tensor without shape, or larger than its bytes")
    if prod(size) == 0:
        return np.empty(size, storage.dtype)
    if offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) >= len(storage):
        raise pickle.UnpicklingError("a tensor that reaches beyond its bytes")
    steps = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps).copy()


class _Tensors(ArraysOnly):
    """An unpickler for tensors and numpy arrays."""

    admitted: ClassVar[Mapping[tuple[str, str], Any]] = {
        **ARRAYS,
        ("torch._utils", "_rebuild_tensor_v2"): Admitted(_rebuild_tensor),
        ("collections", "OrderedDict"): Admitted(OrderedDict),
        **{("torch", name): dtype for name, dtype in _DTYPES.items()},
    }

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive, self._names = archive, set(archive.namelist())
        pickles = [name for name in self._names if name.split("/")[1:] == ["data.pkl"]]
        if len(pickles) != 1:
            raise ValueError("no data.pkl in it")
        self._prefix = pickles[0].removesuffix("data.pkl")
        self._order = "<" if self._text("byteorder", "little") == "little" else ">"
        super().__init__(self._content("data.pkl"))

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        """Return the bytes that a tensor is a view of; the pickle calls them by (kind, type, key, device, length)."""
        kind, dtype, key, _, length = pid
        if kind != "storage" or dtype not in _DTYPES.values() or not isinstance(key, str):
            raise pickle.UnpicklingError(f"an object of the kind {kind!r}")
        entries = np.frombuffer(self._content(f"data/{key}"), np.dtype(dtype).newbyteorder(self._order))
        if len(entries) != length:
            raise pickle.UnpicklingError(f"{len(entries)} entries where {length} should be")
        return entries

    def _content(self, name: str) -> bytes:
        info = self._archive.getinfo(f"{self._prefix}{name}")
        if info.compress_type != zipfile.ZIP_STORED:  # torch never compresses; a small file stays small
            raise ValueError(f"{name} is compressed")
        return self._archive.read(info)

    def _text(self, name: str, default: str) -> str:
        present = f"{self._prefix}{name}" in self._names
        return self._content(name).decode("ascii").strip() if present else default
