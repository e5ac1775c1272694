"""What several commands share: options, models, settings as text, notes on stderr."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transpl._utils.errors import invalid
from transpl._utils.progress import is_silent
from transpl.cli.command import CHOICE, FILES, RUNNING

if TYPE_CHECKING:
    from transpl import TransPL

OnlyDomain = Annotated[str | None, typer.Option(help="Use only these rows.", rich_help_panel=FILES)]
Threads = Annotated[
    int | None, typer.Option(min=1, help="CPU threads. Default: the libraries' choice.", rich_help_panel=RUNNING)
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.", rich_help_panel=RUNNING)]
ModelFolder = Annotated[Path, typer.Option(help="Folder written by adapt or demo, or by TransPL.save.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: JSON on stdout.")]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="A .py file or installed module that registers further methods. May be repeated.",
        rich_help_panel=CHOICE,
    ),
]

_NEXT_ASSIGNMENT = re.compile(r",(?=\s*[A-Za-z_]\w*\s*=)")


def log(line: str) -> None:
    """Write a note to stderr, unless `--quiet`; stdout is for results."""
    if not is_silent():
        typer.echo(line, err=True)


def print_json(value: Any) -> None:
    """Write plain values to stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def open_model(folder: Path, threads: int | None, device: str) -> tuple[TransPL, dict[str, Any]]:
    """Load a fitted model to run here, and how its recordings were read."""
    from transpl import jobs

    fitted, reading = jobs.load_model(folder)
    return fitted.set_params(n_threads=threads, device=device), reading


def refuse_to_replace(recordings: Sequence[Path | None], out: Path | None) -> None:
    """Raise if results would replace the recordings that they are made of."""
    for path in recordings:
        if path and out and path.exists() and out.exists() and out.samefile(path):
            raise invalid("--out", expected="another file than the recordings", got=out, advice="Choose another name.")


def split_names(text: str | None) -> list[str] | None:
    """Split comma-separated names."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def split_commas(values: list[str] | None) -> list[str] | None:
    """Make one list of an option's values, each of which may be a list with commas."""
    if values is None:
        return None
    return [part for value in values for part in split_names(value) or ()]


def split_assignments(values: list[str] | None) -> list[str] | None:
    """Make one list of an option's values such as a=1,b=2; a comma inside a value stays."""
    if values is None:
        return None
    return [part.strip() for value in values for part in _NEXT_ASSIGNMENT.split(value) if part.strip()]


def read_seeds(text: str) -> tuple[int, ...]:
    """Read a number of seeds, 3 for 0, 1 and 2, or seeds with commas between them."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    is_list = "," in text
    if not numbers or min(numbers) < (0 if is_list else 1) or len(set(numbers)) < len(numbers):
        expected = "how many (3 is 0, 1 and 2), or a list as 0,1,2"
        raise invalid("--seeds", expected=expected, got=repr(text), advice="Correct it.")
    return tuple(numbers) if is_list else tuple(range(numbers[0]))


def read_settings(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Read texts such as max_epochs=40; errors name `option`."""
    return {name: setting_value(value) for name, value in (split_setting(text, option) for text in texts or ())}


def split_setting(text: str, option: str) -> tuple[str, str]:
    """Split name=value; errors name `option`."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not name or not value:
        raise invalid(option, expected="name=value", got=repr(text), advice="Write both, and = between them.")
    return name, value


def setting_value(text: str) -> Any:
    """Read a number, true, false, None or a list as Python writes it; keep anything else as text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
