"""How the package complains: one line that names the argument, what was expected, what came, and what to do."""

from __future__ import annotations


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


def one_of(argument: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise unless `value` is one of the `allowed` names."""
    if value not in allowed:
        names = ", ".join(repr(name) for name in allowed)
        raise wrong(argument, expected=f"one of {names}", got=repr(value), advice="Choose one of these names.")
