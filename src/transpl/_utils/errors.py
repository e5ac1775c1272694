"""Errors in one line: the argument, what was expected, what was given, and what to do."""

from __future__ import annotations

import errno
import math
from collections.abc import Hashable, Iterable
from importlib import import_module
from numbers import Integral, Real

OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # disk, quota or file size
_MOST = 500  # characters of a value in a message


class InputError(ValueError):
    """The caller's input cannot be used. The message is one line and says what to do."""


class InputTypeError(InputError, TypeError):
    """An `InputError` that can also be caught as the TypeError that scikit-learn expects."""


class MissingExtra(InputError):
    """An optional package is not installed."""


class UnreadableFile(InputError):
    """A file is missing, damaged, half-written or of another kind."""


def invalid(argument: str, *, expected: str, got: object, advice: str) -> InputError:
    """Build the error for an unusable argument; the caller raises it."""
    return InputError(_on_one_line(f"{argument}: expected {_cut(expected)}, got {_cut(got)}. {advice}"))


def unreadable_file(path: object, *, problem: str, advice: str) -> UnreadableFile:
    """Build the error for an unusable file; the caller raises it."""
    return UnreadableFile(_on_one_line(f"{path}: {_cut(problem)}. {advice}"))


def require_deep(what: str) -> None:
    """Raise, with the command that helps, unless torch and lightning-fabric are installed, which `what` needs."""
    require_extra(what, "deep", "torch", "lightning-fabric")


def require_extra(what: str, extra: str, *distributions: str) -> None:
    """Raise, with the command that helps, unless the distributions of an extra are installed, which `what` needs."""
    try:
        for name in distributions:
            import_module(name.replace("-", "_"))
    except ImportError:
        verb = "are" if len(distributions) > 1 else "is"
        problem = f"needs {' and '.join(distributions)}, which {verb} not installed"
        raise MissingExtra(f'{what}: {problem}. Install them with: pip install "transpl[{extra}]"') from None


def _on_one_line(message: str) -> str:
    """Escape what is not printable: line ends, and what would steer a terminal."""
    plain = " ".join(message.splitlines())
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in plain)


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."


def first_repeated(names: Iterable[Hashable]) -> Hashable | None:
    """Return the first name that occurs a second time; None if all differ."""
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def check_choice(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise unless `value` is one of the `allowed` names."""
    if value not in allowed:
        names = ", ".join(repr(name) for name in allowed)
        raise invalid(argument, expected=f"one of {names}", got=repr(value), advice="Choose one of these names.")


def check_int(argument: str, value: object, *, least: int) -> None:
    """Raise unless `value` is a whole number of at least `least` that fits 64 bits."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) < 1 << 63:
        expected = f"a whole number, {least} or more"
        raise invalid(argument, expected=expected, got=repr(value), advice="Choose such a number.")


def check_positive(argument: str, value: object) -> None:
    """Raise unless `value` is a finite number above 0."""
    if not 0 < _number(value) < math.inf:
        raise invalid(argument, expected="a positive number", got=repr(value), advice="Choose such a number.")


def check_not_negative(argument: str, value: object) -> None:
    """Raise unless `value` is a finite number, 0 or more."""
    if not 0 <= _number(value) < math.inf:
        raise invalid(argument, expected="a number, 0 or more", got=repr(value), advice="Choose such a number.")


def check_fraction(argument: str, value: object, *, zero: bool = False, one: bool = False) -> None:
    """Raise unless `value` lies between 0 and 1; `zero` and `one` admit the ends."""
    number = _number(value)
    if not (0 < number < 1 or (zero and number == 0) or (one and number == 1)):
        interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise invalid(argument, expected=f"a share in {interval}", got=repr(value), advice="Choose such a number.")


def _number(value: object) -> float:
    """Return a real number as a float, anything else as NaN, which fails every comparison."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
