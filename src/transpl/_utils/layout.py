"""What a file from elsewhere must hold, declared and checked before anything is built of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import invalid

Layout = Mapping[str, str]

_KINDS = {"f": "f", "p": "f", "i": "iu", "b": "b"}
_NAMES = {"f": "finite numbers", "p": "numbers above 0", "i": "whole numbers", "b": "booleans"}
_ADVICE = "Save it again, or get it from where it was made."
_SHOWN = 60  # characters of a wrong value


def check_arrays(arrays: Mapping[str, NDArray[Any]], layout: Layout, sizes: dict[str, int]) -> None:
    """Raise unless these are exactly the arrays of a layout.

    Parameters
    ----------
    arrays
        by name
    layout
        by name, kind and axes, as "f K D": finite numbers (f), numbers above 0 (p), whole numbers (i) or booleans (b).
        An axis is a number or a name; axes of one name have one size. "prefix.*" admits anything below a prefix
    sizes
        of axes that are known; those that the arrays show are added

    Examples
    --------
    >>> sizes = {"K": 2}
    >>> check_arrays({"mean": np.zeros(3), "share": np.ones((2, 3))}, {"mean": "f D", "share": "p K D"}, sizes)
    >>> sizes
    {'K': 2, 'D': 3}
    """
    prefixes = tuple(name.removesuffix("*") for name in layout if name.endswith("*"))
    named = {name: text for name, text in layout.items() if not name.endswith("*")}
    known = {name for name in arrays if name in named or not name.startswith(prefixes or "\0")}
    if odd := sorted(known ^ named.keys()):
        expected = "no such array" if odd[0] in arrays else "an array"
        raise _wrong(odd[0], expected, "one" if odd[0] in arrays else "none")
    for name, text in named.items():
        kind, *axes = text.split()
        array = arrays[name]
        if array.dtype.kind not in _KINDS[kind] or array.ndim != len(axes):
            expected = f"{_NAMES[kind]}, shape ({', '.join(axes)})"
            raise _wrong(name, expected, f"{array.dtype} of shape {array.shape}")
        for axis, n in zip(axes, array.shape, strict=True):
            wanted = int(axis) if axis.isdecimal() else sizes.setdefault(axis, n)
            if n != wanted:
                raise _wrong(name, f"{axis} = {wanted}, shape ({', '.join(axes)})", f"shape {array.shape}")
        if kind in "fp" and not (np.isfinite(array).all() and (kind == "f" or (array > 0).all())):
            raise _wrong(name, _NAMES[kind], "others")


def below(prefix: str, layout: Layout) -> dict[str, str]:
    """A layout under a prefix; axes in small letters are its own, those in capitals are shared."""

    def own(axis: str) -> str:
        return f"{prefix}.{axis}" if axis.islower() else axis

    return {
        f"{prefix}.{name}": " ".join([kind, *map(own, axes)]) if kind else ""
        for name, (kind, *axes) in ((name, text.split() or [""]) for name, text in layout.items())
    }


def prefixed(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Put "prefix." in front of the names of arrays."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with "prefix.", under the rest of their names."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def check_numbers(name: str, array: NDArray[Any], least: int, most: int) -> None:
    """Raise unless all entries lie in least..most."""
    if array.size and not (least <= array.min() and array.max() <= most):
        raise _wrong(name, f"numbers in {least}..{most}", f"{array.min()}..{array.max()}")


def check_facts(name: str, value: Any, kind: Any, advice: str = _ADVICE) -> None:
    """Raise unless plain data, as JSON holds them, are of a kind.

    kind : a type, where int is no bool and float may be a whole number; a tuple of kinds, of which one must fit; None;
        [kind] for a list of any length; {str: kind} for any keys; {"key": kind, "other?": kind} for these, the last of
        which may be missing

    >>> check_facts("model", {"sizes": [1, 2], "mode": None}, {"sizes": [int], "mode": (str, None), "prior?": [float]})
    """
    if isinstance(kind, tuple):
        if not any(_fits(value, each) for each in kind):
            raise _wrong(name, " or ".join(_described(each) for each in kind), _shown(value), advice)
        return
    if isinstance(kind, list) and isinstance(value, list):
        for position, each in enumerate(value):
            check_facts(f"{name}[{position}]", each, kind[0], advice)
    elif isinstance(kind, dict) and isinstance(value, dict):
        kinds = dict.fromkeys(value, kind[str]) if str in kind else _kinds_by_key(name, value, kind, advice)
        for key, each in value.items():
            check_facts(f"{name}.{key}", each, kinds[key], advice)
    elif not _is(value, kind):
        raise _wrong(name, _described(kind), _shown(value), advice)


def _kinds_by_key(name: str, value: dict[str, Any], kind: dict[str, Any], advice: str) -> dict[str, Any]:
    """The kind of each key; raise if keys are missing or unknown."""
    kinds = {key.removesuffix("?"): each for key, each in kind.items()}
    needed = {key for key in kind if not key.endswith("?")}
    if odd := sorted((needed - value.keys()) | (value.keys() - kinds.keys())):
        got = f"{odd[0]} as well" if odd[0] in value else f"no {odd[0]}"
        raise _wrong(name, f"the names {', '.join(kind)}", got, advice)
    return kinds


def _fits(value: Any, kind: Any) -> bool:
    try:
        check_facts("", value, kind)
    except ValueError:
        return False
    return True


def _is(value: Any, kind: Any) -> bool:
    if kind is None or not isinstance(kind, type):
        return kind is None and value is None
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _described(kind: Any) -> str:
    if isinstance(kind, list | dict):
        return "a list" if isinstance(kind, list) else "named values"
    return getattr(kind, "__name__", str(kind))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _wrong(name: str, expected: str, got: str, advice: str = _ADVICE) -> Exception:
    return invalid(name, expected=expected, got=got, advice=advice)
