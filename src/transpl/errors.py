"""How the package complains: one line that names the argument, what was expected, what came, and what to do."""

from __future__ import annotations

import math
from numbers import Integral, Real


class InputError(ValueError):
    """The caller's input cannot be used. The message is one line and says what to do."""


class NotReadable(InputError):
    """A file is missing, damaged, half-written or not ours."""


def wrong(argument: str, *, expected: str, got: object, advice: str) -> InputError:
    """Build the standard complaint; the caller raises it."""
    return InputError(_on_one_line(f"{argument}: expected {expected}, got {got}. {advice}"))


def unreadable(path: object, *, problem: str, advice: str) -> NotReadable:
    """Build the standard complaint about a file; the caller raises it."""
    return NotReadable(_on_one_line(f"{path}: {problem}. {advice}"))


def _on_one_line(message: str) -> str:
    return " ".join(message.splitlines())


def one_of(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise unless `value` is one of the `allowed` names."""
    if value not in allowed:
        names = ", ".join(repr(name) for name in allowed)
        raise wrong(argument, expected=f"one of {names}", got=repr(value), advice="Choose one of these names.")


def whole_number(argument: str, value: object, *, least: int) -> None:
    """Raise unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        expected = f"a whole number, {least} or more"
        raise wrong(argument, expected=expected, got=repr(value), advice="Choose such a number.")


def positive(argument: str, value: object) -> None:
    """Raise unless `value` is a finite number above 0."""
    if not _is_real(value) or not 0 < float(value) < math.inf:  # type: ignore[arg-type]
        raise wrong(argument, expected="a positive number", got=repr(value), advice="Choose such a number.")


def not_negative(argument: str, value: object) -> None:
    """Raise unless `value` is a finite number, 0 or more."""
    if not _is_real(value) or not 0 <= float(value) < math.inf:  # type: ignore[arg-type]
        raise wrong(argument, expected="a number, 0 or more", got=repr(value), advice="Choose such a number.")


def share(argument: str, value: object, *, zero: bool = False, one: bool = False) -> None:
    """Raise unless `value` lies between 0 and 1; `zero` and `one` admit the ends."""
    if not _is_real(value) or not (0 < value < 1 or (zero and value == 0) or (one and value == 1)):  # type: ignore[operator]
        interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise wrong(argument, expected=f"a share in {interval}", got=repr(value), advice="Choose such a number.")


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
