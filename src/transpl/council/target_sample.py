"""A bounded sample of a target that arrives in batches; it does not depend on their order or size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.hashing import hash_window
from transpl.windows import CHUNK, Windows

MAX_WINDOWS = 4096  # that a council adapts to; more hardly change how the witnesses are judged


@dataclass(frozen=True, eq=False)
class TargetSample:
    """The `MAX_WINDOWS` windows whose content has the smallest hashes, in the order of these hashes.

    A hash acts as a random number for each window, so this is a uniform sample without replacement that does not depend
    on when a window arrives.
    """

    windows: Windows
    digests: tuple[bytes, ...]

    @classmethod
    def of(cls, windows: Windows) -> Self:
        """Sample a single batch of any size, a chunk at a time."""
        first, *others = (cls._of_chunk(part.in_memory()) for _, part in windows.chunks(CHUNK))
        for other in others:
            first = first._joined_with(other)
        return first

    def with_more(self, windows: Windows) -> Self:
        """Return the sample after another batch."""
        return self._joined_with(type(self).of(windows))

    @classmethod
    def _of_chunk(cls, windows: Windows) -> Self:
        digests = [hash_window(values[:, :n]) for values, n in zip(windows.values, windows.lengths, strict=True)]
        return cls._smallest(windows, digests)

    def _joined_with(self, other: Self) -> Self:
        return self._smallest(_joined(self.windows, other.windows), [*self.digests, *other.digests])

    @classmethod
    def _smallest(cls, windows: Windows, digests: Sequence[bytes]) -> Self:
        order = sorted(range(len(digests)), key=digests.__getitem__)[:MAX_WINDOWS]
        return cls(_trimmed(windows[np.array(order)]), tuple(digests[i] for i in order))

    def arrays(self) -> dict[str, NDArray]:
        """Return the sample as named arrays, to save."""
        return {"values": self.windows.values, "lengths": self.windows.lengths}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray]) -> Self:
        """Restore the sample from the result of `arrays`."""
        return cls.of(Windows(arrays["values"], arrays["lengths"]))


def rows_in_even_steps(n: int, at_most: int) -> NDArray[np.int64]:
    """Return at most `at_most` row numbers of 0..n-1 in even steps, rounded down.

    `evenly_spaced` rounds to the nearest row. Here that would change the answers of every council that adapts to more
    than `MAX_WINDOWS` windows.
    """
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.int64)


def _joined(one: Windows, other: Windows) -> Windows:
    steps = max(one.values.shape[2], other.values.shape[2])
    values = [np.pad(w.values, ((0, 0), (0, 0), (0, steps - w.values.shape[2]))) for w in (one, other)]
    return Windows(np.concatenate(values), np.concatenate([one.lengths, other.lengths]))


def _trimmed(windows: Windows) -> Windows:
    """Drop padding that no remaining window needs."""
    return Windows(np.ascontiguousarray(windows.values[:, :, : int(windows.lengths.max())]), windows.lengths)
