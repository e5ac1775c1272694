"""A command that was typed wrongly, in one line as all other errors: what was expected, what came, where help is.

Typer keeps the classes of these errors to itself, and where they live differs between its versions; so they are told
apart by what they carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from transpl._utils.errors import InputError, invalid

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
_EXPECTS, _LEAST = "Input should be ", "greater than or equal to "


def complaint(error: Any, words: Sequence[str]) -> InputError:
    """Say what was wrong with the `words` of a command line."""
    command = _command(error, words)
    advice = f"See {command} --help."
    if isinstance(error, typer.BadParameter):
        return _about_value(error, words, advice)
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities") and option is not None:
        similar = " or ".join(sorted(error.possibilities or ()))
        meant = f"Did you mean {similar}? " if similar else ""
        return invalid(option, expected=f"an option of {command}", got="an unknown one", advice=meant + advice)
    return _as_typer_says(option or command, error, advice)


def asks_for_help(error: Any) -> bool:
    """Whether nothing is wrong but that no command was given, which typer answers with the help."""
    return type(error).__name__ == "NoArgsIsHelpError"


def _about_value(error: Any, words: Sequence[str], advice: str) -> InputError:
    """A value that is missing or cannot be used."""
    name, value = _name(error), _given(error, words)
    if type(error).__name__ == "MissingParameter":
        return invalid(name, expected="a value", got="none", advice=advice)
    if not error.message.startswith(_EXPECTS):
        return _as_typer_says(name, error, advice)
    expected = error.message.removeprefix(_EXPECTS).split(", unable to")[0]
    if expected.startswith(_LEAST):
        expected = f"{expected.removeprefix(_LEAST)} or more"
    return invalid(name, expected=expected, got="another" if value is None else repr(value), advice=advice)


def _name(error: Any) -> str:
    """The option or argument, as the help calls it."""
    if error.param is None:
        return str(error.param_hint or "a value")
    return max(error.param.opts, key=len) if error.param.param_type_name == "option" else error.param.name.upper()


def _given(error: Any, words: Sequence[str]) -> str | None:
    """What was typed behind an option, the last time; None for an argument."""
    options = () if error.param is None else error.param.opts
    found = None
    for word, following in zip(words, [*words[1:], None], strict=True):
        option, equals, value = word.partition("=")
        if option in options:
            found = value if equals else following
    return found


def _command(error: Any, words: Sequence[str]) -> str:
    """Whose help to read; the parser of options does not tell typer where it was."""
    if error.ctx is not None:
        started_as = error.ctx.find_root().command_path
        return f"transpl{error.ctx.command_path.removeprefix(started_as)}"
    return f"transpl {words[0]}" if words and not words[0].startswith("-") else "transpl"


def _as_typer_says(name: str, error: Any, advice: str) -> InputError:
    sentence = error.message[:1].lower() + error.message[1:]
    return InputError(f"{name}: {sentence}{'' if sentence.endswith(('.', '?')) else '.'} {advice}")
