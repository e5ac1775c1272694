"""How a command ends: with an exit code and, if it failed or was interrupted, with one line on stderr."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from transpl._utils.errors import OUT_OF_SPACE, InputError
from transpl._utils.progress import display
from transpl.cli.options import log

# Typer exports only this subclass of click's UsageError, and some versions bring their own copy of click.
UsageError: type[Any] = typer.BadParameter.__mro__[1]
_INTERRUPTED = 130
_TERMINATED = 128 + signal.SIGTERM
_RESUMABLE = ("adapt", "bench", "demo", "label")


def run_and_exit(command: Callable[[], int | None]) -> NoReturn:
    """Run a command line that returns its exit code or raises."""
    warnings.showwarning = lambda message, *_, **__: log(f"note: {message}")
    try:
        with _sigterm_exits(), _sigint_wins(), display(True):
            code = command() or 0
    except InputError as error:
        _fail(str(error), code=2)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # no command was given: typer answers with the help
            error.show()
            sys.exit(2)
        message = _named_argument(error) or error.format_message()
        _fail(f"{message}{'' if message.endswith(('.', '?')) else '.'} See {_command_of(error)} --help.", code=2)
    except SystemExit as leaving:
        if leaving.code == _TERMINATED:
            _say_how_to_go_on()
        raise
    except OSError as error:
        _fail(_file_error(error), code=1)
    except KeyboardInterrupt:  # before or after the command itself, as typer takes those inside
        _say_how_to_go_on()
        sys.exit(_INTERRUPTED)
    except typer.Abort as error:  # what typer makes of an EOFError
        _fail(f"EOFError: {error.__cause__}", code=1)
    except RuntimeError as error:
        _fail(f"{type(error).__name__}: {error}", code=1)
    if code == _INTERRUPTED:
        _say_how_to_go_on()
    sys.exit(code)


@contextmanager
def _sigterm_exits() -> Iterator[None]:
    """Treat SIGTERM, which batch systems send before they kill, like Ctrl-C: clean up, leave a record."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _sigint_wins() -> Iterator[None]:
    """End with KeyboardInterrupt after Ctrl-C, also where a library turned it into an error of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = []

    def interrupt(*_: object) -> None:
        pressed.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception:
        if pressed:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _command_of(error: Any) -> str:
    """The command whose help explains a usage error."""
    if error.ctx is not None:
        return str(error.ctx.command_path)
    command = [word for word in sys.argv[1:2] if not word.startswith("-")]  # the parser of options knows no context
    return " ".join(["transpl", *command])


def _named_argument(error: Any) -> str | None:
    """What to say of an option that is an argument of this command, such as --model, which other commands have."""
    name = getattr(error, "option_name", None)
    if name is None or error.ctx is None:
        return None
    arguments = [param.name for param in error.ctx.command.params if param.param_type_name == "argument"]
    if name.removeprefix("--") not in arguments:
        return None
    usage = " ".join([error.ctx.command_path, *map(str.upper, arguments)])
    return f"No such option: {name}. Leave out the word {name}: {usage}"


def _say_how_to_go_on() -> None:
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    how = "goes on where this one stopped" if command in _RESUMABLE else "starts again"
    typer.echo(f"interrupted. The same command {how}: {shlex.join(['transpl', *sys.argv[1:]])}", err=True)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"error: {' '.join(message.split())}", err=True)  # even with --quiet
    sys.exit(code)


def _file_error(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return f"{type(error).__name__}: {error}"
    full = error.errno in OUT_OF_SPACE
    advice = "Make room and run it again, or choose another path." if full else "Choose another path."
    return f"{error.filename}: {error.strerror.lower()}. {advice}"
