"""The array contract: windows are (n, channels, time), float32, finite.

Three forms are accepted wherever an argument is called `X`:

* an array of shape (n, channels, time);
* an array of shape (n, time): one channel;
* a list of arrays of shape (channels, T_i): windows of unequal length.

A memory-mapped array (`np.load(path, mmap_mode="r")`) is not copied as a whole: it is checked piece by piece, and
becomes float32 where a part of it is used.

Missing values are an error in a window. In a *recording* they are gaps: `cut` makes windows on
both sides of a gap and none across it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import check_int, invalid

BATCH = 32  # windows that pass a network at once; larger batches leave the processor's cache and are slower
CHUNK = 4096  # windows whose codes and likelihoods are in memory at once; whole batches
_CHECKED_AT_ONCE = 1 << 20  # numbers
LARGEST = 1e15  # squares and their sums must fit float32 inside a network; fill values such as 1e36 do not
_REAL = "biuf"
_TIMES = "mM"  # numpy's kinds of durations and dates, which it would take for numbers
_SHAPE_ADVICE = "Reshape your data to (n, channels, time), or pass a list of (channels, time) arrays."
_NAN_ADVICE = "Fill the missing values, or cut the recording with transpl.windows.cut, which leaves gaps out."


@dataclass(frozen=True)
class Windows:
    """Checked windows.

    values : (n, channels, time) float32, or a view of the caller's memory map; zeros behind the end of a shorter window
    lengths : (n,) int64; how many time steps of each window are real
    """

    values: NDArray[Any]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Windows:
        """Choose rows: a slice is a view, any other choice a copy in memory."""
        chosen = Windows(self.values[rows], self.lengths[rows])
        return chosen if isinstance(rows, slice) else chosen.in_memory()

    def in_memory(self) -> Windows:
        """The same windows as a contiguous float32 array that may be written to; themselves if they are one."""
        if isinstance(self.values, np.memmap):
            return Windows(np.array(self.values, np.float32, order="C"), self.lengths)
        return Windows(np.require(self.values, np.float32, ["C", "A", "W"]), self.lengths)

    def chunks(self, size: int) -> Iterator[tuple[slice, Windows]]:
        """Consecutive parts of at most `size` windows, each with the rows it takes."""
        for first in range(0, len(self), size):
            rows = slice(first, min(first + size, len(self)))
            yield rows, self[rows]

    @property
    def n_channels(self) -> int:
        return int(self.values.shape[1])

    @property
    def ragged(self) -> bool:
        """True if some window is shorter than the array."""
        return bool((self.lengths < self.values.shape[2]).any())


def as_windows(X: Any, *, name: str = "X", n_channels: int | None = None, min_length: int = 1) -> Windows:
    """Check `X` and return it as `Windows`; the caller's array is never modified, and shared only if memory-mapped.

    `n_channels` is demanded if given; every window must have at least `min_length` time steps.
    """
    if isinstance(X, Windows):
        windows = _refuse_empty(X, name)
    elif isinstance(X, list | tuple) and any(_has_two_axes(series) for series in X):
        windows = _from_list(X, name)
    else:
        windows = _from_array(X, name)
    _check_channels(windows, n_channels, name)
    _check_lengths(windows, min_length, name)
    return windows


class Cut(NamedTuple):
    """Windows cut from one recording, and where each starts in it."""

    windows: NDArray[np.float32]  # (n, channels, length)
    starts: NDArray[np.int64]  # (n,)


def cut(
    recording: ArrayLike, length: int, step: int, *, breaks: ArrayLike | None = None, name: str = "recording"
) -> Cut:
    """Cut a (channels, time) recording into windows of `length` samples, one every `step` samples.

    No window contains a missing value (NaN in any channel), and none spans a break: `breaks[t]`
    is true where sample t does not continue sample t - 1 (see `time_breaks`, `label_breaks`).
    Each uninterrupted run is cut from its own start; what is left at its end is dropped.
    """
    values = _as_float32(recording, name)
    if values.ndim != 2:
        raise invalid(
            name, expected="a (channels, time) array", got=f"shape {values.shape}", advice="Pass one recording."
        )
    check_int("length", length, least=1)
    check_int("step", step, least=1)
    _refuse_infinity(_look_through(values), name)
    starts = _window_starts(_runs(values, breaks, name), length, step)
    if len(starts) == 0:
        return Cut(np.empty((0, values.shape[0], length), np.float32), starts)
    view = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)  # (channels, T - length + 1, length)
    return Cut(np.ascontiguousarray(view[:, starts].transpose(1, 0, 2)), starts)


def name_channels(names: Sequence[str] | None, n_channels: int) -> tuple[str, ...]:
    """Return one name per channel; without names they are channel_0, channel_1 and so on."""
    if names is None:
        return tuple(f"channel_{c}" for c in range(n_channels))
    if isinstance(names, str) or len(names) != n_channels:
        got = repr(names) if isinstance(names, str) else len(names)
        raise invalid("channel_names", expected=f"{n_channels} names", got=got, advice="One per channel.")
    return tuple(str(name) for name in names)


def time_breaks(time: ArrayLike, *, tolerance: float = 1.5) -> NDArray[np.bool_]:
    """Mark samples that come more than `tolerance` usual steps after the one before, or not after it."""
    steps = np.diff(np.asarray(time, dtype=np.float64))
    forward = steps[steps > 0]
    usual = float(np.median(forward)) if len(forward) else 0.0
    follows = (steps > 0) & (steps <= tolerance * usual)  # false for a missing time
    return np.concatenate([[False], ~follows])[: np.size(time)]


def label_breaks(labels: ArrayLike) -> NDArray[np.bool_]:
    """Mark samples whose label differs from the label of the sample before."""
    values = np.asarray(labels)
    return np.concatenate([[False], values[1:] != values[:-1]])[: len(values)]


def _has_two_axes(series: Any) -> bool:
    try:
        return np.ndim(series) == 2
    except ValueError:  # rows of unequal length: let the conversion complain
        return True


def _from_list(X: Sequence[Any], name: str) -> Windows:
    series = [_as_float32(window, f"{name}[{i}]") for i, window in enumerate(X)]
    shapes = {window.shape[0] if window.ndim == 2 else None for window in series}
    if len(shapes) != 1 or None in shapes:
        raise invalid(
            name,
            expected="a list of (channels, time) arrays with the same channels",
            got=f"shapes {sorted({str(window.shape) for window in series})}",
            advice=_SHAPE_ADVICE,
        )
    lengths = np.array([window.shape[1] for window in series], dtype=np.int64)
    values = np.zeros((len(series), series[0].shape[0], int(lengths.max())), np.float32)
    for i, window in enumerate(series):
        _refuse_missing(window, f"{name}[{i}]")
        values[i, :, : lengths[i]] = window
    return _refuse_empty(Windows(values, lengths), name)


def _refuse_empty(windows: Windows, name: str) -> Windows:
    if windows.values.size == 0:
        shape = windows.values.shape
        raise invalid(
            name, expected="at least one window, channel and time step", got=f"shape {shape}", advice="Pass data."
        )
    return windows


def _from_array(X: Any, name: str) -> Windows:
    values = X if isinstance(X, np.memmap) and X.dtype.kind in _REAL else _as_float32(X, name)
    if values.ndim == 2:
        values = values[:, None, :]
    if values.ndim != 3:
        raise invalid(name, expected="an array (n, channels, time)", got=f"shape {values.shape}", advice=_SHAPE_ADVICE)
    n, channels, time = values.shape
    if n == 0:
        raise invalid(
            name, expected="at least one window", got=f"0 sample(s) (shape={values.shape})", advice="Pass data."
        )
    if channels == 0 or time == 0:
        raise invalid(
            name,
            expected="at least one channel and time step",
            got=f"0 feature(s) (shape={np.shape(X)}) while a minimum of 1 is required",
            advice=_SHAPE_ADVICE,
        )
    _refuse_missing(values, name)
    return Windows(values, np.full(n, time, dtype=np.int64))


def _as_float32(X: Any, name: str) -> NDArray[np.float32]:
    if hasattr(X, "toarray"):
        raise invalid(
            name, expected="a dense array", got=f"a sparse {type(X).__name__}", advice="Call .toarray() on it."
        )
    try:
        array = np.asarray(_with_nan(X) if isinstance(X, np.ma.MaskedArray) else X)
    except ValueError:
        raise invalid(
            name, expected="numbers in a regular array", got="rows of unequal shape", advice=_SHAPE_ADVICE
        ) from None
    if array.dtype.kind in _TIMES:
        raise invalid(name, expected="numbers", got=f"times ({array.dtype})", advice="Leave time out of the channels.")
    if np.iscomplexobj(array):
        raise invalid(
            name,
            expected="real numbers",
            got="Complex data not supported",
            advice="Pass real and imaginary parts as channels.",
        )
    try:
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    except OverflowError:
        advice = "Rescale or clip them."
        raise invalid(name, expected="numbers that fit float32", got="a larger whole number", advice=advice) from None
    except ValueError as error:
        raise invalid(name, expected="numbers", got=f"{array.dtype} data ({error})", advice=_SHAPE_ADVICE) from None
    except TypeError as error:  # scikit-learn's rules ask for a TypeError where entries are no numbers at all
        raise TypeError(f"{name}: expected numbers, got {array.dtype} data ({error}). {_SHAPE_ADVICE}") from None


def _with_nan(X: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """Masked values as NaN, which integers and booleans have no room for; times, which are refused, as they are."""
    if X.dtype.kind in _TIMES:
        return np.asarray(X)
    filled: NDArray[Any] = np.ma.filled(X.astype(np.float64) if X.dtype.kind in "biu" else X, np.nan)
    return filled


class _Found(NamedTuple):
    """What an array holds as float32: how many NaN, how many infinities, and its largest absolute value."""

    missing: int
    infinite: int
    largest: float


@np.errstate(over="ignore")
def _look_through(values: NDArray[Any]) -> _Found:
    missing = infinite = 0
    largest = 0.0
    for part in _float32_parts(values):
        finite = np.isfinite(part)
        if not finite.all():
            absent = int(np.isnan(part).sum())
            missing += absent
            infinite += int(part.size - finite.sum()) - absent
            part = part[finite]
        largest = max(largest, float(part.max(initial=0.0)), -float(part.min(initial=0.0)))
    return _Found(missing, infinite, largest)


def _float32_parts(values: NDArray[Any]) -> Iterator[NDArray[np.float32]]:
    """All numbers of an array of any layout and real type, in pieces of bounded size."""
    return np.nditer(  # type: ignore[return-value]  # of one operand it yields arrays, not tuples
        values,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_dtypes=[np.dtype(np.float32)],
        casting="unsafe",
        buffersize=_CHECKED_AT_ONCE,
    )


def _refuse_missing(values: NDArray[Any], name: str) -> None:
    found = _look_through(values)
    if found.missing:
        raise invalid(name, expected="finite numbers", got=f"{found.missing} NaN value(s)", advice=_NAN_ADVICE)
    _refuse_infinity(found, name)


def _refuse_infinity(found: _Found, name: str) -> None:
    if found.infinite:
        raise invalid(
            name,
            expected="finite numbers that fit float32",
            got=f"{found.infinite} infinite value(s) (infinity)",
            advice="Rescale or clip them.",
        )
    if found.largest > LARGEST:
        raise invalid(
            name,
            expected=f"values of moderate size (at most {LARGEST:g})",
            got=found.largest,
            advice="Rescale or clip them.",
        )


def _check_channels(windows: Windows, n_channels: int | None, name: str) -> None:
    if n_channels is not None and windows.n_channels != n_channels:
        raise invalid(
            name,
            expected=f"{n_channels} channel(s), as in fit",
            got=f"{windows.n_channels}",
            advice="Pass the same channels in the same order.",
        )


def _check_lengths(windows: Windows, min_length: int, name: str) -> None:
    shortest = int(windows.lengths.min())
    if shortest < min_length:
        raise invalid(
            name,
            expected=f"windows of at least {min_length} time steps (two patches)",
            got=f"a window of {shortest} (n_features = {shortest})",
            advice="Use longer windows or a smaller patch_length.",
        )


def _runs(values: NDArray[np.float32], breaks: ArrayLike | None, name: str) -> list[tuple[int, int]]:
    """Return (start, end) of every stretch without missing value and without break."""
    whole: NDArray[np.bool_] = np.logical_not(np.isnan(values).any(axis=0))
    fresh = np.zeros(whole.shape, np.bool_) if breaks is None else np.asarray(breaks, dtype=bool)
    if fresh.shape != whole.shape:
        raise invalid(
            "breaks", expected=f"one entry per sample of {name} ({len(whole)})", got=fresh.shape, advice="Check it."
        )
    previous_whole = np.concatenate([[False], whole[:-1]])
    next_whole = np.concatenate([whole[1:], [False]])
    next_fresh = np.concatenate([fresh[1:], [True]])
    starts = np.flatnonzero(whole & (fresh | ~previous_whole))
    ends = np.flatnonzero(whole & (next_fresh | ~next_whole)) + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _window_starts(runs: list[tuple[int, int]], length: int, step: int) -> NDArray[np.int64]:
    starts = [np.arange(begin, end - length + 1, step, dtype=np.int64) for begin, end in runs if end - begin >= length]
    return np.concatenate(starts) if starts else np.empty(0, np.int64)
