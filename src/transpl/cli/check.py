"""The command that looks at files before anything is trained: `transpl check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from transpl._utils.progress import task
from transpl.cli.options import AsJson, print_json
from transpl.cli.reading_options import READ, Reading

_UNUSABLE = 1


def check(
    files: Annotated[list[Path], typer.Argument(help="The source first, then targets. A folder is one person.")],
    label_col: Annotated[str | None, typer.Option(help="Column with the class.")] = None,
    reading: Reading = READ,
    as_json: AsJson = False,
) -> None:
    """Look at files before anything is trained: what is in them, what would be dropped, what looks odd.

    Columns for time, label, recording and person are guessed unless they are given. Exit code 1: a file cannot be used.
    """
    from transpl.jobs import check_files

    with task("reading files", None):
        found = check_files(files, label_col=label_col, **reading.given())
    if as_json:
        print_json(found.as_json())
    else:
        for line in found.lines():
            typer.echo(line)
    if not found.usable:
        raise typer.Exit(_UNUSABLE)
