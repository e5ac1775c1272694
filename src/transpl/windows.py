"""The array contract: windows are (n, channels, time), float32, finite; and the labels that belong to windows.

An argument called `X` takes three forms:

* an array of shape (n, channels, time);
* an array of shape (n, time): one channel;
* a list of arrays of shape (channels, T_i): windows of unequal length.

A memory-mapped array (`np.load(path, mmap_mode="r")`) is never copied as a whole: it is checked piece by piece and
converted to float32 only where a part of it is used.

Missing values are an error in a window. In a *recording* they are gaps: `cut` makes windows on both sides of a gap and
none across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from transpl._utils.errors import InputTypeError, check_int, invalid

UNKNOWN = -1  # the class index of a window without a label
BATCH = 32  # windows per forward pass of a network; larger batches no longer fit the processor's cache
CHUNK = 4096  # windows whose codes and likelihoods are in memory at once; a multiple of BATCH
MAX_VALUE = 1e15  # squares and their sums must fit float32 inside a network; fill values such as 1e36 do not
TRANSPOSED = "They seem to be (n, time, channels): pass X.transpose(0, 2, 1)."  # advice
_CHECKED_AT_ONCE = 1 << 20  # numbers
_PAIRS_COMPARED = 50  # neighbours that tell whether windows overlap
_MOST = 0.5  # some neighbours are of different recordings
_REAL = "biuf"  # numpy's kinds of real numbers
_TIMES = "mM"  # numpy's kinds of dates and durations, which it would convert to numbers
_SHAPE_ADVICE = "Reshape your data to (n, channels, time), or pass a list of (channels, time) arrays."
_NAN_ADVICE = "Fill the missing values, or cut the recording with transpl.windows.cut, which leaves gaps out."
_RANGE_ADVICE = "Rescale or clip them."


@dataclass(frozen=True)
class Windows:
    """Checked windows.

    Attributes
    ----------
    values : (n, channels, time) array
        float32, or a view of the caller's memory map. A shorter window is padded with zeros.
    lengths : (n,) int64 array
        The number of real time steps of each window.
    """

    values: NDArray[Any]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Windows:
        """Select rows: a slice gives a view, anything else a copy in memory."""
        chosen = Windows(self.values[rows], self.lengths[rows])
        return chosen if isinstance(rows, slice) else chosen.in_memory()

    def in_memory(self) -> Windows:
        """Return the windows as a writable, contiguous float32 array, copied only if they are not one yet."""
        if isinstance(self.values, np.memmap):
            return Windows(np.array(self.values, np.float32, order="C"), self.lengths)
        return Windows(np.require(self.values, np.float32, ["C", "A", "W"]), self.lengths)

    def chunks(self, size: int) -> Iterator[tuple[slice, Windows]]:
        """Yield consecutive parts of at most `size` windows, each with its rows."""
        for first in range(0, len(self), size):
            rows = slice(first, min(first + size, len(self)))
            yield rows, self[rows]

    def with_nan(self) -> NDArray[np.float32]:
        """Return the values, with NaN behind the end of shorter windows."""
        values = self.in_memory().values
        if not self.ragged:
            return values
        return np.where((np.arange(values.shape[2]) >= self.lengths[:, None])[:, None], np.float32(np.nan), values)

    @property
    def n_channels(self) -> int:
        return int(self.values.shape[1])

    @property
    def ragged(self) -> bool:
        """Whether some window is shorter than the array."""
        return bool((self.lengths < self.values.shape[2]).any())


@dataclass(frozen=True)
class Labelled:
    """Windows and their class indices `y` in 0..n_classes-1; a class may have no windows."""

    windows: Windows
    y: NDArray[np.int64]
    n_classes: int

    def __post_init__(self) -> None:
        if not isinstance(self.windows, Windows):
            got = type(self.windows).__name__
            raise invalid("windows", expected="Windows", got=got, advice="Call as_windows(X) first.")
        y = plain_array(self.y)
        if y.shape != (len(self.windows),):
            expected = f"one label per window ({len(self.windows)})"
            raise invalid("y", expected=expected, got=f"shape {y.shape}", advice="Check the lengths of X and y.")
        if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= self.n_classes:
            expected = f"class indices 0..{self.n_classes - 1}"
            got = f"{y.dtype} {y.min()}..{y.max()}" if y.dtype.kind in _REAL else str(y.dtype)
            raise invalid("y", expected=expected, got=got, advice="Number the classes.")


class LearntRows(NamedTuple):
    """The target rows that a method trained on in its last epoch, and the labels it used."""

    rows: NDArray[np.int64]  # (m,)
    labels: NDArray[np.int64]  # (m,)


class PseudoLabels(NamedTuple):
    """Labels that a method gave to unlabelled windows."""

    labels: NDArray  # (n,)
    confidence: NDArray[np.float64]  # (n,), for ranking
    probabilities: NDArray[np.float64]  # (n, K), rows sum to 1

    @classmethod
    def from_probabilities(cls, p: NDArray[np.float64]) -> PseudoLabels:
        """Label each window argmax_k p_k with confidence max_k p_k."""
        return cls(p.argmax(axis=1), p.max(axis=1), p)


@dataclass(frozen=True, eq=False)
class TargetInfo:
    """What is known about a target besides its windows; everything is optional.

    Attributes
    ----------
    prior : (K,) array or None
        Class proportions of the target.
    few_labels : (n,) int array or None
        Class indices that a person assigned to some windows, `UNKNOWN` (-1) for the others.
    groups : (n,) int array or None
        The recording or patient of each window. All windows of a group have one label, unless `smooth` is set.
    smooth : bool
        Windows are in time order (within each group) and seldom change class from one to the next.
    """

    prior: NDArray[np.float64] | None = None
    few_labels: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None
    smooth: bool = False

    def check(self, n: int, n_classes: int) -> None:
        """Raise unless everything fits a target of `n` windows and `n_classes` classes."""
        if self.prior is not None and np.shape(self.prior) != (n_classes,):
            expected = f"{n_classes} class proportions"
            raise invalid("prior", expected=expected, got=f"shape {np.shape(self.prior)}", advice="Pass one per class.")
        for name in ("few_labels", "groups"):
            values = getattr(self, name)
            if values is not None and (values.shape != (n,) or values.dtype.kind not in "iu"):
                got = f"{values.dtype} of shape {values.shape}"
                raise invalid(name, expected=f"{n} whole numbers", got=got, advice="Pass one per window.")
        if (
            self.few_labels is not None
            and n
            and not UNKNOWN <= self.few_labels.min() <= self.few_labels.max() < n_classes
        ):
            expected, got = (
                f"class indices 0..{n_classes - 1}, or -1",
                f"{self.few_labels.min()}..{self.few_labels.max()}",
            )
            raise invalid("few_labels", expected=expected, got=got, advice="Number the classes.")

    def at(self, rows: NDArray[np.int64]) -> TargetInfo:
        """Return what is known about some of the windows."""
        few_labels, groups = (None if part is None else part[rows] for part in (self.few_labels, self.groups))
        return replace(self, few_labels=few_labels, groups=groups)


def override_labels(labels: PseudoLabels, known: NDArray[np.int64] | None) -> PseudoLabels:
    """Replace pseudo-labels by known labels (n,), with confidence and probability 1; -1 keeps the pseudo-label."""
    if known is None:
        return labels
    is_known = known != UNKNOWN
    return PseudoLabels(
        np.where(is_known, known, labels.labels),
        np.where(is_known, 1.0, labels.confidence),
        override_probabilities(labels.probabilities, known),
    )


def override_probabilities(probabilities: NDArray[np.float64], known: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Set probabilities (n, K) to one-hot rows where the label is known; -1 keeps a row."""
    if known is None:
        return probabilities
    return np.where((known != UNKNOWN)[:, None], np.eye(probabilities.shape[1])[known], probabilities)


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """Return at most `at_most` evenly spaced row numbers of 0..n-1, the first and the last included.

    >>> evenly_spaced(10, 4)
    array([0, 3, 6, 9])
    """
    if n <= at_most:
        return np.arange(n)
    return np.linspace(0, n - 1, at_most).round().astype(np.int64)


def overlap(windows: Windows) -> int:
    """Return how many consecutive windows have a sample in common: 1 if none overlap, 2 if each starts half-way.

    Found in the values: neighbours overlap from the smallest step at which most of them agree to the last bit.

    >>> import numpy as np
    >>> recording = np.random.default_rng(0).normal(size=(1, 100))
    >>> overlap(as_windows(np.stack([recording[:, i : i + 20] for i in range(0, 80, 5)])))
    4
    """
    n, _, T = windows.values.shape
    first = evenly_spaced(max(n - 1, 0), _PAIRS_COMPARED)
    a, b = windows.values[first], windows.values[first + 1]
    varying = (a != a[:, :, :1]).any(axis=(1, 2))  # windows of one value agree at every step
    a, b = a[varying], b[varying]
    for step in range(1, T if len(a) else 1):
        if (a[:, :, step:] == b[:, :, : T - step]).all(axis=(1, 2)).mean() > _MOST:
            return -(-T // step)
    return 1


def as_windows(X: Any, *, name: str = "X", n_channels: int | None = None, min_length: int = 1) -> Windows:
    """Check `X` and convert it to `Windows`; the caller's array is never modified, and shared only if memory-mapped.

    Parameters
    ----------
    X : array (n, channels, time) or (n, time), list of arrays (channels, T_i), or Windows
    name : str
        What error messages call the argument.
    n_channels : int, optional
        Refuse any other number of channels.
    min_length : int
        Refuse windows with fewer time steps.

    Examples
    --------
    >>> windows = as_windows([np.ones((3, 50)), np.ones((3, 40))])
    >>> windows.values.shape, windows.lengths, windows.ragged
    ((2, 3, 50), array([50, 40]), True)
    """
    if isinstance(X, Windows):
        windows = _check_not_empty(X, name)
    elif isinstance(X, list | tuple) and any(_has_two_axes(series) for series in X):
        windows = _from_list(X, name)
    else:
        windows = _from_array(X, name)
    if n_channels is not None and windows.n_channels != n_channels:
        expected, advice = f"{n_channels} channel(s), as in fit", "Pass the same channels in the same order."
        if windows.values.shape[2] == n_channels and not windows.ragged:
            advice = TRANSPOSED
        raise invalid(name, expected=expected, got=windows.n_channels, advice=advice)
    shortest = int(windows.lengths.min())
    if shortest < min_length:
        expected = f"windows of at least {min_length} time steps (two patches)"
        got, advice = (
            f"a window of {shortest} (n_features = {shortest})",
            "Use longer windows or a smaller patch_length.",
        )
        raise invalid(name, expected=expected, got=got, advice=advice)
    return windows


class Cut(NamedTuple):
    """Windows cut from one recording, and the sample at which each starts."""

    windows: NDArray[np.float32]  # (n, channels, length)
    starts: NDArray[np.int64]  # (n,)


def cut(
    recording: ArrayLike, length: int, step: int, *, breaks: ArrayLike | None = None, name: str = "recording"
) -> Cut:
    """Cut a recording into windows of `length` samples, one every `step` samples.

    No window contains a missing value (NaN in any channel) and none spans a break. Each uninterrupted run is cut from
    its own start; the remainder at its end is dropped.

    Parameters
    ----------
    recording : (channels, time) array
    length, step : int
    breaks : (time,) bool array, optional
        True where a sample does not continue the one before; see `time_breaks` and `label_breaks`.
    name : str
        What error messages call the recording.

    Examples
    --------
    >>> recording = np.arange(10.0)[None]
    >>> recording[0, 4] = np.nan
    >>> cut(recording, length=3, step=2).starts
    array([0, 5, 7])
    """
    values = _as_float32(recording, name)
    if values.ndim != 2:
        raise invalid(
            name, expected="a (channels, time) array", got=f"shape {values.shape}", advice="Pass one recording."
        )
    check_int("length", length, least=1)
    check_int("step", step, least=1)
    _check_values(values, name, allow_missing=True)
    runs = _runs(values, breaks, name)
    starts = np.array([start for first, end in runs for start in range(first, end - length + 1, step)], np.int64)
    if len(starts) == 0:
        return Cut(np.empty((0, values.shape[0], length), np.float32), starts)
    view = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)  # (channels, T - length + 1, length)
    return Cut(np.ascontiguousarray(view[:, starts].transpose(1, 0, 2)), starts)


def name_channels(names: Sequence[str] | None, n_channels: int) -> tuple[str, ...]:
    """Return one name per channel: those given, or channel_0, channel_1 and so on."""
    if names is None:
        return tuple(f"channel_{c}" for c in range(n_channels))
    is_list = isinstance(names, Iterable) and not isinstance(names, str | Mapping)
    found = tuple(str(name) for name in names) if is_list else ()
    if len(found) != n_channels:
        got = len(found) if is_list else repr(names)
        raise invalid("channel_names", expected=f"{n_channels} names", got=got, advice="Pass one per channel.")
    return found


def time_breaks(time: ArrayLike, *, tolerance: float = 1.5) -> NDArray[np.bool_]:
    """Mark samples that follow the one before by more than `tolerance` median time steps, or do not follow it.

    >>> time_breaks([0.0, 0.1, 0.2, 0.9, 1.0])
    array([False, False, False,  True, False])
    """
    steps = np.diff(np.ma.filled(np.ma.asarray(time, dtype=np.float64), np.nan))
    forward = steps[steps > 0]
    usual = float(np.median(forward)) if len(forward) else 0.0
    follows = (steps > 0) & (steps <= tolerance * usual)  # false for a missing time
    return np.concatenate([[False], ~follows])[: np.size(time)]


def label_breaks(labels: ArrayLike) -> NDArray[np.bool_]:
    """Mark samples whose label differs from the one before.

    >>> label_breaks(["sit", "sit", "walk"])
    array([False, False,  True])
    """
    values = plain_array(labels)
    return np.concatenate([[False], values[1:] != values[:-1]])[: len(values)]


def plain_array(values: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return what a caller passes as an array; a masked entry is None, so that nothing under a mask is used."""
    if np.ma.is_masked(values):
        hidden = np.asarray(np.ma.getdata(values)).astype(object)
        hidden[np.ma.getmaskarray(values)] = None
        return hidden
    return np.asarray(from_tensor(values), dtype)


def from_tensor(values: Any) -> Any:
    """Return a torch tensor as an array, wherever it is and whether or not it has a gradient; the rest as it is."""
    if type(values).__module__.partition(".")[0] != "torch" or not hasattr(values, "detach"):
        return values
    held = values.detach().cpu()
    return (held if held.dtype.itemsize != 2 or not held.is_floating_point() else held.float()).numpy()


def _has_two_axes(series: Any) -> bool:
    try:
        return np.ndim(series) == 2
    except ValueError:  # rows of unequal length: the conversion gives the better message
        return True


def _from_list(X: Sequence[Any], name: str) -> Windows:
    series = [_as_float32(window, f"{name}[{i}]") for i, window in enumerate(X)]
    if any(window.ndim != 2 for window in series) or len({len(window) for window in series}) != 1:
        expected = "a list of (channels, time) arrays with the same channels"
        got = f"shapes {sorted({str(window.shape) for window in series})}"
        raise invalid(name, expected=expected, got=got, advice=_SHAPE_ADVICE)
    lengths = np.array([window.shape[1] for window in series], dtype=np.int64)
    values = np.zeros((len(series), len(series[0]), int(lengths.max())), np.float32)
    for i, window in enumerate(series):
        _check_values(window, f"{name}[{i}]")
        values[i, :, : lengths[i]] = window
    return _check_not_empty(Windows(values, lengths), name)


def _check_not_empty(windows: Windows, name: str) -> Windows:
    if windows.values.size == 0:
        expected, got = "at least one window, channel and time step", f"shape {windows.values.shape}"
        raise invalid(name, expected=expected, got=got, advice="Pass data.")
    return windows


def _from_array(X: Any, name: str) -> Windows:
    values = X if isinstance(X, np.memmap) and X.dtype.kind in _REAL else _as_float32(X, name)
    if values.ndim == 2:
        values = values[:, None, :]
    if values.ndim != 3:
        raise invalid(name, expected="an array (n, channels, time)", got=f"shape {values.shape}", advice=_SHAPE_ADVICE)
    n, channels, time = values.shape
    if n == 0:  # this wording and the next are what scikit-learn's estimator checks look for
        got = f"0 sample(s) (shape={values.shape})"
        raise invalid(name, expected="at least one window", got=got, advice="Pass data.")
    if channels == 0 or time == 0:
        got = f"0 feature(s) (shape={np.shape(X)}) while a minimum of 1 is required"
        raise invalid(name, expected="at least one channel and time step", got=got, advice=_SHAPE_ADVICE)
    _check_values(values, name)
    return Windows(values, np.full(n, time, dtype=np.int64))


def _as_float32(X: Any, name: str) -> NDArray[np.float32]:
    if hasattr(X, "toarray"):
        got = f"a sparse {type(X).__name__}"
        raise invalid(name, expected="a dense array", got=got, advice="Call .toarray() on it.")
    if hasattr(X, "detach"):  # a tensor of torch, which numpy reads only on the CPU and without a gradient
        X = X.detach().cpu()
        X = X.float() if X.is_floating_point() else X
    try:
        array = np.asarray(_with_nan(X) if isinstance(X, np.ma.MaskedArray) else from_tensor(X))
    except ValueError:
        expected, got = "numbers in a regular array", "rows of unequal shape"
        raise invalid(name, expected=expected, got=got, advice=_SHAPE_ADVICE) from None
    if array.dtype.kind in _TIMES:
        raise invalid(name, expected="numbers", got=f"times ({array.dtype})", advice="Leave time out of the channels.")
    if np.iscomplexobj(array):
        advice = "Pass real and imaginary parts as channels."
        raise invalid(name, expected="real numbers", got="Complex data not supported", advice=advice)
    try:
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    except OverflowError:
        expected, got = "numbers that fit float32", "a larger whole number"
        raise invalid(name, expected=expected, got=got, advice=_RANGE_ADVICE) from None
    except ValueError as error:
        raise invalid(name, expected="numbers", got=f"{array.dtype} data ({error})", advice=_SHAPE_ADVICE) from None
    except TypeError as error:  # scikit-learn expects a TypeError where entries are not numbers at all
        line = invalid(name, expected="numbers", got=f"{array.dtype} data ({error})", advice=_SHAPE_ADVICE)
        raise InputTypeError(str(line)) from None


def _with_nan(X: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """Fill masked values with NaN, converting integers and booleans to float; leave times, which are refused later."""
    if X.dtype.kind in _TIMES:
        return np.asarray(X)
    filled: NDArray[Any] = np.ma.filled(X.astype(np.float64) if X.dtype.kind in "biu" else X, np.nan)
    return filled


@np.errstate(over="ignore")
def _check_values(values: NDArray[Any], name: str, *, allow_missing: bool = False) -> None:
    """Raise if the values, as float32, are NaN, infinite or too large."""
    missing = infinite = 0
    largest = 0.0
    parts = np.nditer(  # pieces of bounded size, whatever the layout and type
        values,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_dtypes=[np.dtype(np.float32)],
        casting="unsafe",
        buffersize=_CHECKED_AT_ONCE,
    )
    part: Any
    for part in parts:
        finite = np.isfinite(part)
        if not finite.all():
            n_nan = int(np.isnan(part).sum())
            missing += n_nan
            infinite += int(part.size - finite.sum()) - n_nan
            part = part[finite]
        largest = max(largest, float(np.abs(part).max(initial=0.0)))
    if missing and not allow_missing:
        raise invalid(name, expected="finite numbers", got=f"{missing} NaN value(s)", advice=_NAN_ADVICE)
    if infinite:
        expected, got = "finite numbers that fit float32", f"{infinite} infinite value(s) (infinity)"
        raise invalid(name, expected=expected, got=got, advice=_RANGE_ADVICE)
    if largest > MAX_VALUE:
        expected = f"values of moderate size (at most {MAX_VALUE:g})"
        raise invalid(name, expected=expected, got=largest, advice=_RANGE_ADVICE)


def _runs(values: NDArray[np.float32], breaks: ArrayLike | None, name: str) -> list[tuple[int, int]]:
    """Return (start, end) of every run without a missing value or a break."""
    complete = np.logical_not(np.isnan(values).any(axis=0))
    is_break = np.zeros(complete.shape, np.bool_) if breaks is None else np.ma.filled(breaks, True).astype(bool)
    if is_break.shape != complete.shape:
        expected = f"one entry per sample of {name} ({len(complete)})"
        raise invalid("breaks", expected=expected, got=is_break.shape, advice="Check its length.")
    joins_previous = np.concatenate([[False], complete[:-1] & complete[1:] & ~is_break[1:]])
    joins_next = np.concatenate([joins_previous[1:], [False]])
    starts = np.flatnonzero(complete & ~joins_previous)
    ends = np.flatnonzero(complete & ~joins_next) + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
