"""How a command ends: with an exit code and, if something went wrong or was interrupted, with one line on stderr."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from transpl._utils.errors import OUT_OF_SPACE, InputError
from transpl.cli.options import say
from transpl.cli.usage import UsageError, asks_for_help, complaint

_INTERRUPTED = 130
_TERMINATED = 128 + signal.SIGTERM
_AFTER_INTERRUPTION = (
    "Run the same command again: adapt, bench, demo and label go on from what they have saved; "
    "other commands start again."
)


def run_and_exit(command: Callable[[], int | None]) -> NoReturn:
    """Run a command line that returns its exit code or raises."""
    warnings.showwarning = _show_warning
    try:
        with _leaving_when_told():
            code = command() or 0
    except InputError as error:
        _fail(str(error), code=2)
    except UsageError as error:
        _fail_usage(error)
    except SystemExit as leaving:
        if leaving.code == _TERMINATED:
            _say_interrupted()
        raise
    except OSError as error:
        _fail(_about_file(error), code=1)
    except typer.Abort as error:  # typer's word for an EOFError
        _fail(f"EOFError: {error.__cause__}", code=1)
    except RuntimeError as error:
        _fail(f"{type(error).__name__}: {error}", code=1)
    if code == _INTERRUPTED:
        _say_interrupted()
    sys.exit(code)


@contextmanager
def _leaving_when_told() -> Iterator[None]:
    """Take a SIGTERM, as batch systems send it before they kill, like Ctrl-C: clean up, leave a record, say a line."""

    def leave(*_: Any) -> None:
        sys.exit(_TERMINATED)

    if threading.current_thread() is not threading.main_thread():  # others may not take signals
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail_usage(error: Any) -> NoReturn:
    if not asks_for_help(error):
        _fail(str(complaint(error, sys.argv[1:])), code=2)
    if error.message.strip():  # with rich, typer has printed the help already
        error.show()
    sys.exit(2)


def _fail(message: str, code: int) -> NoReturn:
    say(f"error: {' '.join(message.split())}")
    sys.exit(code)


def _say_interrupted() -> None:
    say(f"interrupted. {_AFTER_INTERRUPTION}")


def _about_file(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return f"{type(error).__name__}: {error}"
    full = error.errno in OUT_OF_SPACE
    advice = (
        "Make room and run it again, or choose another path." if full else "Choose a path that can be read or written."
    )
    return f"{error.filename}: {error.strerror.lower()}. {advice}"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"note: {message}")
