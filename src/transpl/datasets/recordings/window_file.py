"""Windows on disk while they are made: appended one batch after the other, packed into a prepared npz at the end.

Neither needs more memory than a batch, so a data set may be larger than memory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.files import replacing

_AT_ONCE = 1 << 24  # bytes
_FAST = 1  # of zlib's levels: sensor noise hardly shrinks further


class WindowFile:
    """Windows (channels, time) float32 in a file of their own."""

    def __init__(self, path: Path) -> None:
        self.count = 0
        self.shape: tuple[int, ...] = ()
        self._path = path
        self._stream = open(path, "wb")  # noqa: SIM115  # closed by close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def append(self, windows: NDArray[np.float32]) -> None:
        """Add (n, channels, time)."""
        self.shape = windows.shape[1:]
        self.count += len(windows)
        self._stream.write(np.ascontiguousarray(windows, "<f4").tobytes())

    def pack(self, npz: Path, order: NDArray[np.int64], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write an npz with the windows `order` as X, and `arrays`, atomically."""
        self._stream.flush()
        with replacing(npz) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=_FAST) as archive:
            with archive.open("X.npy", "w", force_zip64=True) as member:
                header = {"descr": "<f4", "fortran_order": False, "shape": (len(order), *self.shape)}
                np.lib.format.write_array_header_1_0(member, header)
                for block in self._blocks(order):
                    member.write(block)
            for key, array in arrays.items():
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    def _blocks(self, order: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield the bytes of the windows `order`; those that lie together are read together."""
        size = 4 * int(np.prod(self.shape))
        most = max(1, _AT_ONCE // size)
        edges = np.flatnonzero(np.diff(order) != 1) + 1
        with open(self._path, "rb") as stream:
            for stretch in np.split(order, edges):
                for at in range(0, len(stretch), most):
                    stream.seek(int(stretch[at]) * size)
                    yield stream.read(min(most, len(stretch) - at) * size)
