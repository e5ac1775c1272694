"""Reading an npy file that holds a pickled object, without letting the pickle run anything.

A pickle is a program: it may name any function and call it. The reader here admits only the four
names that numpy itself writes to rebuild arrays, and refuses the file at the first other name.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transpl.errors import unreadable

_rebuild_array: Any = np.empty(0).__reduce__()[0]  # its module has moved between numpy versions


def _encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """Stand in for `codecs.encode`, which could also reach codecs that decompress or transform."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode_latin1,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _rebuild_array for core in ("core", "_core")},
}


class _ArraysOnly(pickle.Unpickler):
    """An unpickler for numpy arrays and the plain types (list, dict, text, numbers) that need no name."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"the name {module}.{name}") from None


def read_pickled_npy(path: Path) -> Any:
    """Return the one object in an npy file written by `numpy.save(path, some_dict)`."""
    try:
        with open(path, "rb") as stream:
            _skip_header(stream)
            array = _ArraysOnly(stream).load()
    except FileNotFoundError:
        raise unreadable(path, problem="no such file", advice="Check the path.") from None
    except pickle.UnpicklingError as error:
        problem = f"its pickle holds more than arrays, or is damaged ({error})"
        raise unreadable(path, problem=problem, advice="Nothing in it was run. Install the package again.") from None
    except Exception as error:  # a damaged pickle may raise anything at all
        problem = f"damaged or not an npy of one object ({type(error).__name__}: {' '.join(str(error).split())})"
        raise unreadable(path, problem=problem, advice="Install the package again.") from None
    if not isinstance(array, np.ndarray) or array.shape != ():
        raise unreadable(path, problem="not an npy of one object", advice="Install the package again.")
    return array.item()


def _skip_header(stream: BinaryIO) -> None:
    """Move to the first byte of the pickle."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if shape != () or not dtype.hasobject:
        raise ValueError(f"{dtype} of shape {shape}")
